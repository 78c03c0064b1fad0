"""Adaptive subgradients and FTRL-Proximal, for penalties that are sums over the coordinates.

Duchi, Hazan, Singer 2011, diagonal; McMahan et al. 2013, Algorithm 1.
"""

import numpy as np

from .losses import Loss
from .penalties import Penalty
from .rule import Rule, Vector


class AdaGrad(Rule):
    """Composite mirror descent: every coordinate feels the penalty at every step."""

    def __init__(self, n: int, loss: Loss, penalty: Penalty, step: float) -> None:
        super().__init__(n, loss, penalty)
        self.eta = step
        self.H = np.zeros(n)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        g = self.gradient(X, y, weight)
        self.H = self.H + g**2
        eta = np.where(self.H > 0.0, self.eta / np.sqrt(np.where(self.H > 0.0, self.H, 1.0)), 0.0)
        self.w = self.penalty.prox(self.w - eta * g, eta)


class AdaGradDualAveraging(Rule):
    """w_j = argmin s_j w + t Psi_j(w) + (delta + sqrt(H_j))/(2 step) w^2."""

    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, step: float, delta: float = 1.0
    ) -> None:
        super().__init__(n, loss, penalty)
        self.eta, self.delta = step, delta
        self.s = np.zeros(n)
        self.H = np.zeros(n)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        g = self.gradient(X, y, weight)
        self.s = self.s + g
        self.H = self.H + g**2
        b = (self.delta + np.sqrt(self.H)) / self.eta
        # b = 0 only where s = 0, and there w = 0 whatever b
        self.w = self.penalty.argmin(self.s, float(self.t), np.where(b > 0.0, b, 1.0))


class FTRLProximal(Rule):
    """Per coordinate; the penalty weighs once, not t times."""

    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, alpha: float | str = 0.1, beta: float = 1.0
    ) -> None:
        super().__init__(n, loss, penalty)
        self.auto, self.beta = isinstance(alpha, str), beta
        self.alpha = 1.0 if isinstance(alpha, str) else alpha
        self.events = self.features = self.roots = 0.0
        self.z = np.zeros(n)
        self.n_sum = np.zeros(n)  # the paper's n_i

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        g = self.gradient(X, y, weight)
        before = (self.beta + np.sqrt(self.n_sum)) / self.alpha
        self.events += len(X)
        self.features += float(np.count_nonzero(X))
        self.roots += float(np.sum(np.sqrt(np.abs(X))))
        if self.auto and self.roots > 0.0:
            size = (self.roots / self.features) ** 2
            self.alpha = 2.0 * float(np.sqrt(self.events / self.features)) / size
        sigma = (self.beta + np.sqrt(self.n_sum + g**2)) / self.alpha - before
        self.z = self.z + g - np.where(np.any(X != 0.0, axis=0), sigma, 0.0) * self.w
        self.n_sum = self.n_sum + g**2
        # for l1 and l2: 0 if |z| <= l1, else -(z - sgn(z) l1)/((beta + sqrt n)/alpha + l2)
        seen = self.n_sum > 0.0
        b = np.where(seen, (self.beta + np.sqrt(self.n_sum)) / self.alpha, 1.0)
        self.w = np.where(seen, self.penalty.argmin(self.z, 1.0, b), 0.0)
