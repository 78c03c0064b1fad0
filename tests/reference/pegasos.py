"""Pegasos: [Do09] section 3.3 (Algorithm 1 on the functions (8)), batches as in [Takac13] Th. 1."""

from typing import Any

import numpy as np

from .losses import Exponential, Hinge, Logistic, Loss
from .penalties import Penalty
from .rule import Rule, Vector, project


class SafeRadius:
    """The radius of a ball that holds the best w, from what has been seen.

    1/sqrt(lambda) where duality proves it: hinge with threshold <= 1, logistic, exponential, all
    weights <= 1. Elsewhere lambda/2 |w*|^2 <= f(w*) <= f(0), the largest loss at 0 so far.
    """

    def __init__(self, loss: Loss, strength: float) -> None:
        self.loss, self.strength = loss, strength
        self.heaviest = 0.0
        self.dearest = 0.0

    def see(self, y: Vector, weight: Vector) -> float:
        self.heaviest = max(self.heaviest, float(np.max(weight)))
        at_zero = weight * np.asarray([self.loss.value(0.0, label) for label in y])
        self.dearest = max(self.dearest, float(np.max(at_zero)))
        hinge = isinstance(self.loss, Hinge) and self.loss.threshold <= 1.0
        proved = hinge or isinstance(self.loss, Logistic | Exponential)
        if proved and self.heaviest <= 1.0:
            return float(1.0 / np.sqrt(self.strength))
        return float(np.sqrt(2.0 * self.dearest / self.strength))


class Pegasos(Rule):
    def __init__(self, n: int, loss: Loss, penalty: Penalty, project: Any = True) -> None:
        super().__init__(n, loss, penalty)
        if not penalty.l2 > 0:
            raise ValueError("Pegasos steps by 1/(lambda t): it needs an L2 strength above 0")
        self.project = project
        self.safe = SafeRadius(loss, penalty.l2)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        strength = self.penalty.l2
        safe = self.safe.see(y, weight)
        g = strength * self.w + self.gradient(X, y, weight)
        eta = 1.0 / (strength * self.t)
        self.w = self.w - eta * g
        if self.project is True:
            self.w = project(self.w, safe)
        elif self.project is not False:
            self.w = project(self.w, float(self.project))
