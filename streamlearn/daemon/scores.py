"""Scores of learners: progressive means over the lifetime, and over a window of recent events.

Sums are bit-identical for any split into batches. A window slides by blocks of about a hundredth of
its events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core import sums
from streamlearn.core.progressive import WeightedMean, mean_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array

WINDOW = 10_000  # events that recent scores are of
BLOCKS_PER_WINDOW, MIN_BLOCK = (
    100,
    20,
)  # blocks in a window; events in a block, if the window has as many


def block_layout(window: int) -> tuple[int, int]:
    """Return the number of events in a block, and of blocks in a window.

    >>> block_layout(10_000), block_layout(100), block_layout(3)
    ((100, 100), (20, 5), (3, 1))
    """
    size = max(window // BLOCKS_PER_WINDOW, min(window, MIN_BLOCK))
    return size, window // size


class BlockSums:
    """Sums of several rows of numbers over the recent blocks of events, oldest first."""

    def __init__(self, rows: int, window: int) -> None:
        self.size, self.capacity = block_layout(window)
        self.count = 0
        self.open = np.zeros(rows)  # the current, incomplete block
        self.full = np.zeros((rows, self.capacity))

    def add(self, values: Array) -> Array:
        """Add events, a column each; return the sums of the blocks that became full."""
        new = sums.add_in_blocks(self.open, values, self.count % self.size, self.size)
        self.count += values.shape[1]
        if new.size:
            self.full = np.concatenate([self.full, new], 1)[:, -self.capacity :]
        return new

    def join(self, others: Sequence[BlockSums]) -> None:
        """Append the blocks of others, which saw other events at the same time.

        >>> window, one, two = (BlockSums(1, 40) for _ in range(3))
        >>> one.add(np.ones((1, 30))), two.add(np.ones((1, 5)))
        (array([[20.]]), array([], shape=(1, 0), dtype=float64))
        >>> window.join([one, two])
        >>> window.total()
        array([15.])
        """
        share = max(self.capacity // max(len(others), 1), 1)
        blocks = [self.full]
        for one in others:
            complete = min(one.count // one.size, share)
            blocks += [one.full[:, one.capacity - complete :], one.open[:, None]]
        self.full = np.concatenate(blocks, 1)[:, -self.capacity :]

    def total(self) -> Array:
        """Sum over the window, including the incomplete block."""
        total = self.open.copy()
        sums.add_in_order(total, self.full)
        return total

    def state(self) -> dict[str, Any]:
        """Copy the state for a checkpoint."""
        return {
            "size": self.size,
            "count": self.count,
            "open": self.open.copy(),
            "full": self.full.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state; after a change of its size the window starts empty."""
        if state["size"] == self.size and state["full"].shape == self.full.shape:
            self.count = state["count"]
            self.open, self.full = state["open"].copy(), state["full"].copy()


class ProgressiveMean(WeightedMean):
    """The weighted mean of a number over all events, and over the recent ones.

    >>> loss = ProgressiveMean(window=200)
    >>> loss.add(np.array([1.0, 0.0, 0.5]), np.array([1.0, 2.0, 1.0]))
    >>> loss.mean, loss.recent, loss.count
    (0.375, 0.375, 3)
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.blocks = BlockSums(2, window)

    @property
    def recent(self) -> float:
        """Return the mean over the window; NaN before the first event."""
        return mean_of(*self.blocks.total().tolist())

    def add_pairs(self, pairs: Array) -> None:
        """Add events, also to the window."""
        super().add_pairs(pairs)
        self.blocks.add(pairs)

    def join(self, others: Sequence[ProgressiveMean]) -> None:
        """Add the events of others, which saw them at the same time."""
        for one in others:
            self.total += one.total
            self.weight += one.weight
            self.count += one.count
        self.blocks.join([one.blocks for one in others])

    def state(self) -> dict[str, Any]:
        """Copy the state for a checkpoint."""
        return super().state() | {"blocks": self.blocks.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        super().restore(state)
        self.blocks.restore(state["blocks"])


def comparable_means(sums: Array, counts: Array) -> Array:
    """Return the means of learners (rows); infinite for those with too few events to compare."""
    enough = (counts > 0.0) & (counts >= 0.9 * counts.max(axis=0))
    return np.where(enough, sums / np.where(enough, counts, 1.0), np.inf)


class BestLearner:
    """The currently best learner, by the mean of a measure over a window.

    The choice is reconsidered after each block of the window. It changes only to a learner whose
    mean is lower by the fraction `hysteresis`. The first learner is the initial choice.
    """

    def __init__(self, names: list[str], window: int, hysteresis: float) -> None:
        self.names = names
        self.hysteresis = hysteresis
        self.name = names[0]
        self.switches = 0
        # the values of each learner, then their counts
        self.blocks = BlockSums(2 * len(names), window)

    def add(self, values: Array) -> list[tuple[int, str]]:
        """Add labeled events, a row for each learner; return the changes as (event, name).

        NaN means that a learner has no value for an event.
        """
        missing = np.isnan(values)
        first = self.blocks.size - self.blocks.count % self.blocks.size
        before = self.blocks.full
        new = self.blocks.add(np.concatenate([np.where(missing, 0.0, values), ~missing]))
        if not new.shape[1]:
            return []
        all_blocks = np.concatenate([before, new], 1)[:, 1:]
        windows = np.lib.stride_tricks.sliding_window_view(all_blocks, self.blocks.capacity, axis=1)
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
        """Tell whether this learner is better than the current one by the hysteresis."""
        now = self.names.index(self.name)
        return best != now and bool(means[best] < (1.0 - self.hysteresis) * means[now])

    def state(self) -> dict[str, Any]:
        """Copy the state for a checkpoint."""
        return {
            "names": list(self.names),
            "name": self.name,
            "switches": self.switches,
            "blocks": self.blocks.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state; new learners have no values yet."""
        self.switches = state["switches"]
        if state["name"] in self.names:
            self.name = state["name"]
        known = {name: i for i, name in enumerate(state["names"])}
        n = len(known)
        rows = [known.get(name, 2 * n) for name in self.names]  # row 2 n has no values
        rows += [known[name] + n if name in known else 2 * n for name in self.names]
        blocks = state["blocks"]
        full = np.vstack([blocks["full"], np.zeros((1, blocks["full"].shape[1]))])[rows]
        incomplete = np.append(blocks["open"], 0.0)[rows]
        self.blocks.restore({**blocks, "full": full, "open": incomplete})
