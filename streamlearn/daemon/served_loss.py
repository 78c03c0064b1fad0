"""The loss of the scores that were served, by learner and arm, with confidence intervals.

One user's events resemble each other, so they count together: sums are kept by bucket, into which
users are hashed, and the interval follows from the differences between buckets. It is that of a
ratio of two sums over clusters [Cochran77, section 6.3], with Student's t.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from streamlearn.stream.impressions import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamlearn.core.arrays import Array

QUANTILE = 0.975
MAX_ARMS = 100  # pairs of a learner and an arm; further ones are not measured


class Interval(NamedTuple):
    """An estimate with its 95% confidence interval; infinite with fewer than two users."""

    mean: float
    low: float
    high: float


class ArmLoss:
    """The loss of one learner in one arm, by bucket.

    >>> loss = ArmLoss()
    >>> loss.add(np.array([3, 3, 9, 40]), np.array([0.5, 0.5, 0.2, 0.4]), np.ones(4))
    >>> loss.events, [round(x, 2) for x in loss.interval()]
    (4, [0.4, 0.03, 0.77])
    """

    def __init__(self) -> None:
        self.loss = np.zeros(BUCKETS)
        self.weight = np.zeros(BUCKETS)
        self.events = 0

    def add(self, buckets: Array, losses: Array, weights: Array) -> None:
        """Add events."""
        self.loss += np.bincount(buckets, losses * weights, BUCKETS)
        self.weight += np.bincount(buckets, weights, BUCKETS)
        self.events += len(buckets)

    @property
    def mean(self) -> float:
        """The weighted mean of the loss."""
        total = float(self.weight.sum())
        return float(self.loss.sum()) / total if total else math.nan

    def influence(self) -> Array:
        """Return by how much each bucket moves the mean."""
        return np.asarray((self.loss - self.mean * self.weight) / self.weight.sum())

    def interval(self) -> Interval:
        """Return the mean with its confidence interval."""
        return around(self.mean, self.influence(), self.weight > 0.0)

    def difference(self, other: ArmLoss) -> Interval:
        """Return this mean minus another one, whose users may be the same."""
        used = (self.weight > 0.0) | (other.weight > 0.0)
        return around(self.mean - other.mean, self.influence() - other.influence(), used)


def around(mean: float, influence: Array, used: Array) -> Interval:
    """Return the confidence interval of a mean."""
    count = int(np.count_nonzero(used))
    if count < 2:
        return Interval(mean, -math.inf, math.inf)
    error = math.sqrt(count / (count - 1) * float(influence @ influence))
    width = float(stdtrit(count - 1, QUANTILE)) * error
    return Interval(mean, mean - width, mean + width)


class ServedLosses:
    """The losses of all learners and arms, in the order in which they were first served."""

    def __init__(self) -> None:
        self.arms: dict[tuple[str, str], ArmLoss] = {}

    def number_of(self, learner: str, arm: str) -> int:
        """Return the number of a learner and an arm, new or not; -1 if there are too many."""
        key = (learner, arm)
        if key not in self.arms:
            if len(self.arms) == MAX_ARMS:
                return -1
            self.arms[key] = ArmLoss()
        return list(self.arms).index(key)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the values of each learner and arm, compared with the one of the most events."""
        measured = {key: one for key, one in self.arms.items() if one.events}
        most = max(measured.values(), key=lambda one: one.events, default=None)
        for (learner, arm), one in measured.items():
            found = one.interval()
            row = {
                "learner": learner, "arm": arm, "events": one.events,
                "loss": found.mean, "low": found.low, "high": found.high,
            }  # fmt: skip
            if most is not None and len(measured) > 1:
                versus = None if one is most else one.difference(most)
                names = ("difference", "difference_low", "difference_high")
                row |= dict(zip(names, versus or (None,) * 3, strict=True))
            yield row

    def state(self) -> list[dict[str, Any]]:
        """Copy the state for a checkpoint."""
        return [
            {
                "learner": learner, "arm": arm, "events": one.events,
                "loss": one.loss.copy(), "weight": one.weight.copy(),
            }
            for (learner, arm), one in self.arms.items()
        ]  # fmt: skip

    def restore(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore the state."""
        for saved in state:
            one = self.arms[saved["learner"], saved["arm"]] = ArmLoss()
            one.events = saved["events"]
            one.loss, one.weight = saved["loss"].copy(), saved["weight"].copy()
