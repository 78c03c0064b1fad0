"""The baselines of [Xiao10]: SGD (section 6.2), truncated gradient (29), FOBOS (28)."""

from collections.abc import Callable

import numpy as np

from .losses import Loss
from .penalties import ElasticNet, Penalty
from .rule import Rule, Vector

Step = float | tuple[str, float] | Callable[[int], float]


def schedule(step: Step) -> Callable[[int], float]:
    """A number, ("constant" | "inverse_sqrt" | "inverse", c), or a function of t = 1, 2, ..."""
    if callable(step):
        return step
    name, c = step if isinstance(step, tuple) else ("constant", step)
    power = {"constant": 0.0, "inverse_sqrt": 0.5, "inverse": 1.0}[name]
    return lambda t: c / t**power


class _Stepped(Rule):
    def __init__(self, n: int, loss: Loss, penalty: Penalty, step: Step) -> None:
        super().__init__(n, loss, penalty)
        self.alpha = schedule(step)


class GradientDescent(_Stepped):
    """w <- Pi(w - alpha_t (g + xi)), xi a subgradient of the soft part of Psi at w."""

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        g = self.gradient(X, y, weight) + self.penalty.subgradient(self.w)
        self.w = self.penalty.project(self.w - self.alpha(self.t) * g)


class TruncatedGradient(_Stepped):
    """(29): every K-th step truncates at alpha_t lambda K what is not beyond the ceiling."""

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        step: Step,
        every: int = 1,
        ceiling: float = np.inf,
    ) -> None:
        super().__init__(n, loss, penalty, step)
        assert isinstance(penalty, ElasticNet), "the truncation is that of l1"
        assert penalty.l2 == 0.0, "the truncation is that of l1"
        self.l1, self.every, self.ceiling = penalty.l1, every, ceiling

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        alpha = self.alpha(self.t)
        omega = self.w - alpha * self.gradient(X, y, weight)
        if self.t % self.every == 0:
            threshold = alpha * self.l1 * self.every
            shrunk = omega - threshold * np.sign(omega)
            kept = np.where(np.abs(omega) <= self.ceiling, shrunk, omega)
            omega = np.where(np.abs(omega) <= threshold, 0.0, kept)
        self.w = omega


class ForwardBackward(_Stepped):
    """(28): a gradient step, then the prox of alpha_t Psi."""

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        alpha = self.alpha(self.t)
        half = self.w - alpha * self.gradient(X, y, weight)
        self.w = self.penalty.prox(half, alpha)
