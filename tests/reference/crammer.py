"""Passive-aggressive learning and AROW (Crammer et al. 2006; Crammer, Kulesza, Dredze 2009)."""

import numpy as np

from .losses import Loss
from .penalties import Penalty
from .rule import Rule, Vector


class PassiveAggressive(Rule):
    """Figures 1 and 3; an event of weight a has the aggressiveness a C."""

    batches = False

    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, variant: str = "I", C: float = 1.0
    ) -> None:
        super().__init__(n, loss, penalty)
        self.variant, self.C = variant, C

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        (x,), p, C = X, X @ self.w, self.C * float(weight[0])
        loss, square = float(self.loss.value(p, y)[0]), float(x @ x)
        if loss == 0.0 or square == 0.0:
            return
        tau = {
            "": loss / square,
            "I": min(C, loss / square),
            "II": loss / (square + 1.0 / (2.0 * C)),
        }[self.variant]
        self.w = self.w - tau * float(self.loss.slope(p, y)[0]) * x


class AROW(Rule):
    """Figure 1, with the diagonal of the full covariance update."""

    batches = False

    def __init__(self, n: int, loss: Loss, penalty: Penalty, r: float = 1.0) -> None:
        super().__init__(n, loss, penalty)
        self.r = r
        self.sigma = np.ones(n)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        (x,), p = X, X @ self.w
        if float(self.loss.slope(p, y)[0]) == 0.0:
            return
        beta = 1.0 / (float(x @ (self.sigma * x)) + self.r / float(weight[0]))
        alpha = float(self.loss.value(p, y)[0]) * beta
        self.w = self.w + alpha * self.sigma * float(y[0]) * x
        self.sigma = self.sigma - beta * np.diag(np.outer(self.sigma * x, x * self.sigma))
