"""Hosts of shards: where their rows are loaded and computed on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from streamlearn.hindsight.executor import Threads
from streamlearn.hindsight.sharded.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.hindsight.executor import Executor
    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.hindsight.scored_shard import ScoredShard
    from streamlearn.hindsight.sharded.agreement import Agreements, Survey
    from streamlearn.hindsight.sharded.data import ShardSource


class Host(Protocol):
    """Loads shards, and computes on them."""

    def load(self, sources: Sequence[ShardSource], loss: AnyLoss) -> list[Survey]:
        """Load the shards, and return what is in each."""

    def bind(self, agreements: Agreements) -> Executor[ScoredShard]:
        """Return the shards that have rows, ready to compute."""


class LocalHost:
    """Shards in this process, with a thread each."""

    def __init__(self) -> None:
        self._shards: list[Shard] = []

    def load(self, sources: Sequence[ShardSource], loss: AnyLoss) -> list[Survey]:
        """Load the shards, and return what is in each."""
        self._shards = [Shard(source, loss) for source in sources]
        with ThreadPoolExecutor(len(sources), thread_name_prefix="load") as threads:
            return list(threads.map(Shard.survey, self._shards))

    def bind(self, agreements: Agreements) -> Threads[ScoredShard]:
        """Return the shards that have rows, ready to compute."""
        used = [self._shards[i] for i in agreements.used]
        self._shards = []
        return Threads([one.bind(each) for one, each in zip(used, agreements.each, strict=True)])
