"""Adaptive regularization: [Do09] equation (4) and footnote 3, Algorithms 2 and 3.

f_t(w) = lambda/2 |w|^2 + loss; g_t is its whole subgradient at w_t. G_t is the constant G, or
the largest |g_t| so far.
"""

from typing import Any

import numpy as np
from scipy.optimize import brentq

from .losses import EPS, Loss
from .pegasos import SafeRadius
from .penalties import Penalty
from .rule import Rule, Vector, norm, project


class _Curved(Rule):
    """The running sums of Algorithms 2 and 3: lambda_{1:t} = lambda t and tau_{1:t}."""

    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, gradient_bound: float | None = None
    ) -> None:
        super().__init__(n, loss, penalty)
        self.gradient_bound = gradient_bound
        self.largest = 0.0
        self.rounds = 0
        self.tau_sum = 0.0

    def bound(self, g: Vector) -> float:
        self.largest = max(self.largest, norm(g))
        return self.largest if self.gradient_bound is None else self.gradient_bound

    def balance(self, ratio: float) -> float:
        """The tau >= 0 with tau (lambda_{1:t} + tau_{1:t-1} + tau) = ratio/4."""
        curvature = self.penalty.l2 * self.rounds + self.tau_sum
        return float((-curvature + np.sqrt(curvature**2 + ratio)) / 2.0)

    def descend(self, g: Vector) -> None:
        """Go to w - eta_t g with eta_t = 1/(lambda_{1:t} + tau_{1:t}); no curvature, no step."""
        curvature = self.penalty.l2 * self.rounds + self.tau_sum
        if curvature > 0.0:
            self.w = self.w - g / curvature


class Adaptive(_Curved):
    """Bartlett, Hazan, Rakhlin: f_t + tau_t/2 |w|^2, tau_t from 3 tau R^2 = 2 G^2/(...)."""

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        radius: float | None = None,
        gradient_bound: float | None = None,
        project: float | None = None,
    ) -> None:
        super().__init__(n, loss, penalty, gradient_bound)
        if radius is None and not penalty.l2 > 0:
            raise ValueError("radius=None is 1/sqrt(lambda): it needs an L2 strength above 0")
        self.radius = 1.0 / np.sqrt(penalty.l2) if radius is None else radius
        self.project = project

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        g = self.penalty.l2 * self.w + self.gradient(X, y, weight)
        G = self.bound(g)
        self.rounds += 1
        tau = self.balance(8.0 * G**2 / (3.0 * self.radius**2))
        self.tau_sum += tau
        self.descend(g + tau * self.w)
        if self.project is not None:
            self.w = project(self.w, self.project)


class OptimisticProximal(_Curved):
    """[Do09] Algorithm 3, one stream instead of samples, and w carried over between the phases."""

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        gradient_bound: float | None = None,
        accuracy: float = 0.0,
        project: Any = True,
        restrained: bool = False,
    ) -> None:
        super().__init__(n, loss, penalty, gradient_bound)
        self.project = project
        self.restrained = restrained
        strength = penalty.l2
        if strength == 0.0 and accuracy > 0.0:
            raise ValueError("accuracy is measured by lambda: it needs an L2 strength above 0")
        self.near = np.sqrt(2.0 * accuracy / strength) if accuracy > 0.0 else 0.0
        self.R = min(1.0, 1.0 / np.sqrt(strength)) if strength > 0.0 else 1.0
        self.safe = SafeRadius(loss, strength) if strength > 0.0 else None

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        g = self.penalty.l2 * self.w + self.gradient(X, y, weight)
        G = self.bound(g)
        self.rounds += 1
        if self.restrained and self.tau_sum == 0.0:
            self.tau_sum = G / self.R
        self.tau_sum += self.balance(G**2 / self.R**2)
        self.descend(g)
        safe = self.safe.see(y, weight) if self.safe is not None else np.inf
        if self.project is True:
            self.w = project(self.w, safe)
        elif self.project is not None and self.project is not False:
            self.w = project(self.w, float(self.project))
        if norm(self.w) >= self.R - self.near:
            self.R *= np.sqrt(2.0)
            self.rounds = 0
            self.tau_sum = 0.0


class Proximal(_Curved):
    """[Do09] Algorithm 2 (strategy 1); with a horizon strategy 2; without a radius Algorithm 3."""

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        radius: float | None = None,
        gradient_bound: float | None = None,
        project: Any = None,
        horizon: int | None = None,
    ) -> None:
        super().__init__(n, loss, penalty, gradient_bound)
        self.radius, self.project, self.horizon = radius, project, horizon
        if horizon is not None and (radius is None or gradient_bound is None):
            raise ValueError("a horizon needs the constants: a radius and a gradient_bound")
        self.inner = None
        if radius is None:
            self.inner = OptimisticProximal(n, loss, penalty, gradient_bound, 0.0, project)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        if self.inner is not None:
            self.inner.step(X, y, weight)
            self.w = self.inner.w
            return
        assert self.radius is not None
        g = self.penalty.l2 * self.w + self.gradient(X, y, weight)
        G = self.bound(g)
        self.rounds += 1
        if self.horizon is None:
            self.tau_sum += self.balance(G**2 / self.radius**2)
        elif self.rounds == 1:
            self.tau_sum = best_tau(self.penalty.l2, G, self.radius, self.horizon)
        self.descend(g)
        if self.project is not None:
            self.w = project(self.w, self.project)


def best_tau(strength: float, G: float, R: float, T: int) -> float:
    """[Do09] Theorem 2: the tau >= 0 that makes B(tau) least; G sqrt(T)/(2R) when lambda is 0."""
    limit = G * np.sqrt(T) / (2.0 * R)
    if strength == 0.0 or limit == 0.0:
        return float(limit)

    def slope(tau: float) -> float:
        """B'(tau), whose terms in the brackets are written over a common denominator."""
        a, b = strength + tau, strength * T + tau
        return float(4.0 * R**2 - G**2 * (1.0 / a**2 + (T - 1.0) / (a * b)))

    if slope(0.0) >= 0.0:
        return 0.0
    if slope(limit) <= 0.0:
        return float(limit)
    return float(brentq(slope, 0.0, limit, xtol=1e-300, rtol=EPS, maxiter=2000))
