"""Batch problems in shards, larger than one machine ([Teo07] section 4, Figure 2)."""

from streamlearn.hindsight.sharded.data import ArrayShard, ShardData, ShardSource
from streamlearn.hindsight.sharded.host import Host, LocalHost
from streamlearn.hindsight.sharded.solve import solve_shards

__all__ = [
    "ArrayShard",
    "Host",
    "LocalHost",
    "ShardData",
    "ShardSource",
    "solve_shards",
]
