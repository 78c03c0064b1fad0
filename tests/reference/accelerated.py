"""Accelerated dual averaging: [Xiao10] Algorithm 3 with (37) and (38), h = 1/2 |w|^2."""

import numpy as np

from .losses import Loss
from .penalties import Penalty
from .rule import Rule, Vector


class AcceleratedDualAveraging(Rule):
    """`w` is the output w_t, `query` the point u_{t+1} of the next gradient.

    smoothness None: L = the loss's curvature bound times the largest weight |x|^2 so far.
    """

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        gamma: float = 1.0,
        smoothness: float | None = None,
    ) -> None:
        super().__init__(n, loss, penalty)
        if smoothness is None and loss.smoothness is None:
            raise ValueError("the loss has no curvature bound: give the smoothness")
        self.gamma, self.smoothness = gamma, smoothness
        self.largest = 0.0
        self.v = self.w
        self.s = np.zeros(n)  # A_t times the paper's weighted average of the gradients

    @property
    def query(self) -> Vector:
        theta = 2.0 / (self.t + 2.0)  # theta_{t+1}
        return (1.0 - theta) * self.w + theta * self.v

    def lipschitz(self, X: Vector, weight: Vector) -> float:
        self.largest = max(self.largest, float(np.max(weight * np.sum(X**2, axis=1))))
        if self.smoothness is not None:
            return self.smoothness
        assert self.loss.smoothness is not None
        return self.loss.smoothness * self.largest

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        t = self.t
        # 1. the coefficients, (37) and (38)
        alpha, A, theta = t / 2.0, t * (t + 1) / 4.0, 2.0 / (t + 1)
        beta = self.gamma * (t + 1) ** 1.5 / 2.0
        # 2. the query point
        u = (1.0 - theta) * self.w + theta * self.v
        # 3. the gradient there
        g = (weight * self.loss.slope(X @ u, y)) @ X / len(y)
        self.s = self.s + alpha * g
        # 4. the exploration point: with h = 1/2 |v|^2 the problem is a prox
        curvature = self.lipschitz(X, weight) + beta
        if curvature > 0.0:
            self.v = self.penalty.prox(-self.s / curvature, A / curvature)
        # 5. the output by interpolation
        self.w = (1.0 - theta) * self.w + theta * self.v
