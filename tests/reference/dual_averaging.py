"""Regularized dual averaging: [Xiao10] Algorithms 1 and 2, section 7.2 and section 2.1.

In the form of (43): s_t = g_1 + ... + g_t and
w_{t+1} = argmin_w <s_t, w> + t Psi(w) + beta_t h(w).
"""

from collections.abc import Callable

import numpy as np

from .losses import Loss
from .penalties import KL, ElasticNet, Penalty, Simplex, dual_map, gibbs, soft
from .rule import Rule, Vector

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "sqrt": lambda gamma, t: gamma * t**0.5,
    "constant": lambda gamma, t: gamma,
    "log": lambda gamma, t: gamma * (1.0 + float(np.log(t))),
    "zero": lambda gamma, t: 0.0,
}


class DualAveraging(Rule):
    """[Xiao10] Algorithm 1; with L1 and rho, Algorithm 2."""

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        gamma: float | str = 1.0,
        rho: float = 0.0,
        schedule: str = "sqrt",
    ) -> None:
        super().__init__(n, loss, penalty)
        self.gamma, self.rho, self.schedule = gamma, rho, SCHEDULES[schedule]
        self.s = np.zeros(n)
        self.squares = self.pace = self.pace_squares = 0.0

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        g = self.gradient(X, y, weight)
        self.s = self.s + g
        if isinstance(self.gamma, str):
            beta = self.learned_beta(g)
        else:
            beta = self.schedule(self.gamma, self.t)
        self.w = self.penalty.argmin(self.s, float(self.t), beta, self.rho)

    def learned_beta(self, g: Vector) -> float:
        """AdaGrad on a, where beta = e^-a sqrt(sum |g|^2)."""
        slope = float(g @ self.w)
        self.squares += float(g @ g)
        self.pace_squares += slope**2
        if self.pace_squares > 0.0:
            self.pace -= 0.25 * slope / self.pace_squares**0.5
        return float(np.exp(-self.pace)) * self.squares**0.5 if self.squares > 0.0 else 1.0


class PNormDualAveraging(Rule):
    """[Xiao10] section 7.2: h = |w|_p^2/(2 (p - 1)), L1 or no penalty; p None: q = max(2, ln n)."""

    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, gamma: float = 1.0, p: float | None = None
    ) -> None:
        super().__init__(n, loss, penalty)
        assert isinstance(penalty, ElasticNet), "the closed form is for l1"
        assert penalty.l2 == 0.0, "the closed form is for l1"
        self.gamma, self.l1 = gamma, penalty.l1
        q = max(2.0, float(np.log(n)))
        self.p = q / (q - 1.0) if p is None else p
        self.s = np.zeros(n)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        self.s = self.s + self.gradient(X, y, weight)
        beta = self.gamma * np.sqrt(self.t)
        self.w = dual_map(soft(-self.s, self.t * self.l1) / beta, self.p)


class ExponentiatedDualAveraging(Rule):
    """[Xiao10] section 2.1: the simplex with the entropy, or KL with D(. | prior)."""

    def __init__(self, n: int, loss: Loss, penalty: Penalty, gamma: float = 1.0) -> None:
        super().__init__(n, loss, penalty)
        assert isinstance(penalty, Simplex | KL), "exponentiation needs the simplex"
        self.gamma = gamma
        self.strength = penalty.strength if isinstance(penalty, KL) else 0.0
        self.s = np.zeros(n)

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        self.s = self.s + self.gradient(X, y, weight)
        heat = self.t * self.strength + self.gamma * np.sqrt(self.t)
        self.w = gibbs(self.s / heat, self.penalty.start(self.n))
