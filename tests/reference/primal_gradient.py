"""The Primal Gradient Solver: [Zhu09] Figures 1 and 2 (section III)."""

import numpy as np

from .losses import Loss
from .penalties import Entropy, LpSquared, Penalty, pnorm
from .rule import Rule, Vector


class PrimalGradient(Rule):
    """w_t = grad r*(lambda/((t + 1) sigma)), lambda the sum of negative gradients.

    radius B: the result is scaled back to |w|_p <= B (Figure 2, line 6, whose |w|_q is a
    misprint: Corollary 2). For Entropy it is the exact argmax inside |w|_1 <= B.
    """

    def __init__(self, n: int, loss: Loss, penalty: Penalty, radius: float | None = None) -> None:
        super().__init__(n, loss, penalty)
        assert isinstance(penalty, LpSquared | Entropy), "the rule needs its conjugate"
        self.sigma = penalty.strength
        self.p = penalty.p if isinstance(penalty, LpSquared) else 1.0
        self.radius = radius
        if isinstance(penalty, Entropy) and radius is not None:
            self.penalty = Entropy(penalty.strength, min(radius, penalty.radius), penalty.scale)
        self.theta = np.zeros(n)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        self.theta = self.theta - self.gradient(X, y, weight)
        scaled = self.theta / ((self.t + 1) * self.sigma)
        # Lemma 2: grad r*(scaled) = argmax <w, scaled> - r(w), over the domain of r
        w = self.penalty.argmin(-scaled, 0.0, 1.0)
        if self.radius is not None and self.p > 1.0:
            size = pnorm(w, self.p)
            w = w * (self.radius / size) if size > self.radius else w
        self.w = w
