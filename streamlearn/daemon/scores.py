"""How good a learner is: progressive means over its life, and over a window counted in events.

Sums are the same to the last bit whatever the batches were. A window slides by blocks of events,
about a hundredth of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.daemon import sums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.estimators.frames import Array

BLOCKS_PER_WINDOW, MIN_BLOCK = (
    100,
    20,
)  # blocks in a window; events in a block, where the window has room


def block_layout(window: int) -> tuple[int, int]:
    """Events in a block, and blocks in a window.

    >>> block_layout(10_000), block_layout(100), block_layout(3)
    ((100, 100), (20, 5), (3, 1))
    """
    size = max(window // BLOCKS_PER_WINDOW, min(window, MIN_BLOCK))
    return size, max(window // size, 1)


class BlockSums:
    """Sums of several rows of numbers over the latest blocks of events; the oldest first."""

    def __init__(self, rows: int, window: int) -> None:
        self.size, self.kept = block_layout(window)
        self.count = 0
        self.open = np.zeros(rows)  # the block that is not yet full
        self.full = np.zeros((rows, self.kept))

    def add(self, values: Array) -> Array:
        """The next events, a column each; the sums of the blocks that they filled."""
        new = sums.blocks(self.open, values, self.count % self.size, self.size)
        self.count += values.shape[1]
        if new.size:
            self.full = np.concatenate([self.full, new], 1)[:, -self.kept :]
        return new

    def total(self) -> Array:
        """The sums over the window, the open block included."""
        total = self.open.copy()
        sums.add_in_order(total, self.full)
        return total

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "size": self.size,
            "count": self.count,
            "open": self.open.copy(),
            "full": self.full.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there; with another window than before, the window begins afresh."""
        if state["size"] == self.size and state["full"].shape == self.full.shape:
            self.count = state["count"]
            self.open, self.full = state["open"].copy(), state["full"].copy()


class ProgressiveMean:
    """The mean of one number over all events, and over the last of them.

    >>> loss = ProgressiveMean(window=200)
    >>> loss.add(np.array([1.0, 0.0, 0.5]), np.array([1.0, 2.0, 1.0]))
    >>> loss.mean, loss.recent, loss.count
    (0.375, 0.375, 3)
    """

    def __init__(self, window: int) -> None:
        self.count = 0
        self.sums = np.zeros(2)  # of value times weight, and of weight
        self.blocks = BlockSums(2, window)

    @property
    def mean(self) -> float:
        """Over all events; NaN before the first."""
        return mean_of(*self.sums.tolist())

    @property
    def recent(self) -> float:
        """Over the window; NaN before the first event."""
        return mean_of(*self.blocks.total().tolist())

    def add(self, values: Array, weights: Array) -> None:
        """The next events, all of them of a finite value."""
        pairs = np.empty((2, len(values)))
        np.multiply(values, weights, out=pairs[0])
        pairs[1] = weights
        self.count += len(values)
        sums.add_in_order(self.sums, pairs)
        self.blocks.add(pairs)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"count": self.count, "sums": self.sums.copy(), "blocks": self.blocks.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.count, self.sums = state["count"], state["sums"].copy()
        self.blocks.restore(state["blocks"])


def mean_of(total: float, weight: float) -> float:
    """A mean; NaN of nothing."""
    return total / weight if weight > 0.0 else math.nan


def comparable_means(sums: Array, counts: Array) -> Array:
    """Means of learners (rows); infinite for one that has seen less than the others yet."""
    ripe = (counts > 0.0) & (counts >= 0.9 * counts.max(axis=0))
    return np.where(ripe, sums / np.where(ripe, counts, 1.0), np.inf)


class BestLearner:
    """The learner that did best of late, by what all of them are measured by.

    It is looked at whenever a block of the window has passed, and changed only for one whose mean
    is lower by the share `hysteresis`. The first learner is chosen to begin with.
    """

    def __init__(self, names: list[str], window: int, hysteresis: float) -> None:
        self.names = names
        self.hysteresis = hysteresis
        self.name = names[0]
        self.switches = 0
        # each learner's values, and how many it had
        self.blocks = BlockSums(2 * len(names), window)

    def add(self, values: Array) -> list[tuple[int, str]]:
        """The next labeled events, a row for each learner; where the choice changes, and to whom.

        NaN: this learner has no value for this event.
        """
        missing = np.isnan(values)
        first = self.blocks.size - self.blocks.count % self.blocks.size
        before = self.blocks.full
        new = self.blocks.add(np.concatenate([np.where(missing, 0.0, values), ~missing]))
        if not new.shape[1]:
            return []
        all_blocks = np.concatenate([before, new], 1)[:, 1:]
        windows = np.lib.stride_tricks.sliding_window_view(all_blocks, self.blocks.kept, axis=1)
        totals = np.add.accumulate(windows, axis=2)[:, -new.shape[1] :, -1]
        means = comparable_means(*np.split(totals, 2))
        changes = []
        for i, (best, column) in enumerate(zip(means.argmin(0).tolist(), means.T, strict=True)):
            if self._better(best, column):
                self.name = self.names[best]
                self.switches += 1
                changes.append((first + i * self.blocks.size, self.name))
        return changes

    def _better(self, best: int, means: Array) -> bool:
        """Whether this learner is better than the chosen one by enough."""
        now = self.names.index(self.name)
        return best != now and bool(means[best] < (1.0 - self.hysteresis) * means[now])

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "names": list(self.names),
            "name": self.name,
            "switches": self.switches,
            "blocks": self.blocks.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there; learners that have come since have no values yet."""
        self.switches = state["switches"]
        if state["name"] in self.names:
            self.name = state["name"]
        known = {name: i for i, name in enumerate(state["names"])}
        there = len(known)
        place = [known.get(name, 2 * there) for name in self.names]
        place += [known[name] + there if name in known else 2 * there for name in self.names]
        blocks = state["blocks"]
        full = np.vstack([blocks["full"], np.zeros((1, blocks["full"].shape[1]))])[place]
        opened = np.append(blocks["open"], 0.0)[place]
        self.blocks.restore({**blocks, "full": full, "open": opened})
