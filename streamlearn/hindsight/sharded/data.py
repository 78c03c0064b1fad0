"""Where a shard's rows come from: a source is small and can travel, the rows it loads stay."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from streamlearn.hindsight.methods import AnyLoss


@dataclass(frozen=True)
class ShardData:
    """The rows of a shard, as they were read.

    X: scipy CSR or an array. y: the labels. groups: the query of each row. names: the names of the
    columns, in the shard's own order; None: column j is the same feature in every shard. columns:
    the number of columns that any row may have. types, buckets: how the columns
    of a table were read, and which boundaries fields got from their values; these must be alike.
    invalid: examples of records that were skipped, and how many there were.
    """

    X: Any
    y: Any
    weights: Any = None
    groups: Any = None
    names: Sequence[Hashable] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    buckets: Mapping[str, Any] = field(default_factory=dict)
    invalid: int = 0
    examples: Sequence[str] = ()
    positive_seen: Sequence[Any] = ()


class ShardSource(Protocol):
    """A shard's origin. It is sent to the shard's worker, and again if that is restarted."""

    @property
    def name(self) -> str:
        """What errors call the shard."""

    def load(self, loss: AnyLoss) -> ShardData:
        """Read the rows, with labels for this loss; the same ones every time."""


@dataclass(frozen=True)
class ArrayShard:
    """Rows in memory: X, y, and the weights and groups of `hindsight.solve`."""

    X: Any
    y: Any
    weights: Any = None
    groups: Any = None
    name: str = "shard"

    def load(self, loss: AnyLoss) -> ShardData:  # noqa: ARG002 - of an interface
        """Return the rows."""
        return ShardData(self.X, self.y, self.weights, self.groups)


def packed(values: Any) -> Any:
    """Return float64 values as float32 if that is exact, which saves a third of a row.

    >>> packed(np.array([1.0, 0.5])).dtype, packed(np.array([0.1])).dtype
    (dtype('float32'), dtype('float64'))
    """
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values
