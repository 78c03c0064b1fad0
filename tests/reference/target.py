"""The default mixture when a number of weights is given, and the strength of l1 follows from it.

The strength from which a weight is 0 is found by bisection on the thresholds of the members.
"""

from typing import Any

import numpy as np

from .mixture import Mixture
from .rule import Vector

COUNTED = 3  # adaptive, coin and newton
FOLLOWERS = (3, 4)
BASE = 5


def bisected(z: float, squares: float, t: float) -> float:
    """The strength l1 at which l1 t + min(sqrt(squares), 30 l1 t) reaches |z|."""
    low, high = 0.0, abs(z) / t
    for _ in range(200):
        middle = 0.5 * (low + high)
        T = middle * t
        if T + min(np.sqrt(squares), 30.0 * T) < abs(z):
            low = middle
        else:
            high = middle
    return high


class _Targeted(Mixture):
    """The weight of the k-th largest strength remains, that of the next is 0."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.target = int(given[2].k)
        self.features, self.set_at, self.speaking = 0.0, 0.0, [False] * 8

    def heard(self) -> Vector:
        audible = super().heard()
        if audible[BASE] == 1.0:
            best = int(np.argmax(self.pi[:BASE]))
            audible = np.zeros(len(self.pi))
            audible[[best, BASE]] = self.pi[[best, BASE]]
        return np.asarray(audible / audible.sum())

    def charges(self) -> Vector:
        return np.zeros(len(self.pi))

    def steer(self, x: Vector) -> None:
        self.features += np.count_nonzero(x)
        seen = np.flatnonzero(self.members[0].count)
        seen = seen[seen >= self.free]
        voters = self.pi[:COUNTED] >= 0.1 * np.max(self.pi[:COUNTED])
        speaking = [*(self.heard()[:BASE] > 0.0), *voters]
        pause = 2.0 if speaking == self.speaking else 0.125
        if self.features - self.set_at < pause * len(seen):
            return
        self.set_at, self.speaking = self.features, speaking
        limits = sorted([self.limit(int(j), voters) for j in seen], reverse=True)
        k, scale = self.target, 0.5 * (1.0 + 1e-9)
        self.penalty.l1 = scale * (limits[k - 1] + limits[k]) if len(seen) > k else 0.0

    def limit(self, j: int, voters: Any) -> float:
        heard = self.heard()
        squares = self.members[0].squares[j]
        own = [bisected(member.z[j], squares, self.t) for member in self.members[:COUNTED]]
        voted = max([one for one, votes in zip(own, voters, strict=True) if votes], default=0.0)
        found = max([one for k, one in enumerate(own) if heard[k] > 0.0], default=0.0)
        if any(heard[k] > 0.0 for k in FOLLOWERS):
            mirror = self.members[3]
            idle = self.t - mirror.last[j]
            if idle > 0.0:
                voted = min(voted, abs(mirror.z[j]) * mirror.s[j] * mirror.E[j] / idle)
            found = max(found, voted)
        return found


Mixture.targeted = _Targeted
