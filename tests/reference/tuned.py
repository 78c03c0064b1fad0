"""Rules that need no tuning of steps, and their mixture.

Normalized adaptive (Ross, Mineiro, Langford 2013), diagonal second order with an implicit step,
coin betting (Orabona, Tommasi 2017). One row at a time; features with x = 0 are left out; an event
of weight a has loss a l.

`w` predicts. Learning has its own score: with the weights `rescaled`, in which the sizes of this
row already count, clipped by `Clip`. `seen_weights` and `score` are those of the last event.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import brentq

from .losses import EPS, Loss
from .penalties import Penalty
from .rule import Rule, Vector


class Clip:
    """[-50, 50]; for regression the range of the labels seen before, as scores (none yet: 0)."""

    def __init__(self, loss: Loss) -> None:
        self.loss, self.regression = loss, loss.regression
        self.low, self.high = np.inf, -np.inf

    def __call__(self, score: float) -> float:
        if not self.regression:
            return float(np.clip(score, -50.0, 50.0))
        return float(np.clip(score, self.low, self.high)) if self.low <= self.high else 0.0

    def see(self, y: float) -> None:
        score = self.loss.score(y)
        self.low, self.high = min(self.low, score), max(self.high, score)


class _Tuned(Rule):
    """`free`: how many of the first slots are outside the penalty.

    `composite` takes l1 and l2 (composite.py). `selects`: its zeros decide for others of a mixture,
    which `support` gives to them.
    """

    batches = False
    free = 0
    selects = True
    composite: ClassVar[Any] = None

    def __new__(cls, *given: Any, **_: Any) -> Self:
        penalty: Penalty = given[2]
        kind: Any = cls.composite if penalty.shrinks and cls.composite is not None else cls
        made: Self = object.__new__(kind)
        return made

    def __init__(self, n: int, loss: Loss, penalty: Penalty) -> None:
        super().__init__(n, loss, penalty)
        self.clip = Clip(loss)
        self.score = 0.0
        self.seen_weights = self.w
        self.support: Callable[[], Any] = lambda: True

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        if len(X) != 1:
            raise ValueError("one row at a time")
        self.learn(X[0], float(y[0]), float(weight[0]))
        self.clip.see(float(y[0]))
        self.refresh()

    def refresh(self) -> None:
        """Set the weights, where those of all slots follow from the event or from others."""

    def rescaled(self, x: Vector) -> Vector:
        """The weights with which an event with this row is learned."""
        return self.w

    def see(self, x: Vector) -> float:
        self.seen_weights = self.rescaled(x)
        self.score = self.clip(float(x @ self.seen_weights))
        return self.score

    def learn(self, x: Vector, y: float, weight: float) -> None:
        raise NotImplementedError


class _Scaled(_Tuned):
    """Each feature has a size s_j; when it changes, w_j is multiplied by s_old/s_new.

    "largest": the largest |x_j| so far. "typical": the square of the mean of sqrt|x_j|, over the
    events where it is not 0. A value larger than all before is predicted with as the largest.
    """

    def __init__(self, n: int, loss: Loss, penalty: Penalty, size: str = "largest") -> None:
        super().__init__(n, loss, penalty)
        self.size = size
        self.s = np.zeros(n)
        self.largest = np.zeros(n)
        self.roots = np.zeros(n)
        self.count = np.zeros(n)

    def rescaled(self, x: Vector) -> Vector:
        above = np.abs(x) > self.largest
        return np.where(above, self.w * self.largest / np.where(above, np.abs(x), 1.0), self.w)

    def measure(self, x: Vector) -> Vector:
        """The sizes with this row; what it is in units of them, 0 where there is no feature."""
        before = self.s
        self.largest = np.maximum(self.largest, np.abs(x))
        self.roots = self.roots + np.sqrt(np.abs(x))
        self.count = self.count + (x != 0.0)
        typical = (self.roots / np.maximum(self.count, 1.0)) ** 2
        self.s = self.largest if self.size == "largest" else typical
        self.w = self.w * before / np.where(self.s > 0.0, self.s, 1.0)
        return x / np.where(self.s > 0.0, self.s, 1.0)


class BaseRate(_Tuned):
    """The score of the mean label, on the free slots: an intercept."""

    selects = False

    def __init__(self, n: int, loss: Loss, penalty: Penalty) -> None:
        super().__init__(n, loss, penalty)
        self.labels = self.mass = 0.0

    def learn(self, x: Vector, y: float, weight: float) -> None:
        self.see(x)
        self.labels += weight * y
        self.mass += weight

    def refresh(self) -> None:
        level = self.clip(self.loss.constant(self.labels / (1.0 + self.mass)))
        self.w = np.where(np.arange(self.n) < self.free, level, 0.0)


class PolynomialAverage(_Tuned):
    """The average of a rule's weights with polynomial decay (Shamir, Zhang 2013)."""

    selects = False

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        rule: Callable[[int, Loss, Penalty], Any],
        eta: float = 3.0,
    ) -> None:
        super().__init__(n, loss, penalty)
        self.inner, self.eta = rule(n, loss, penalty), eta
        self.mean, self.largest, self.count = np.zeros((3, n))

    def rescaled(self, x: Vector) -> Vector:
        above = np.abs(x) > self.largest
        return np.where(above, self.w * self.largest / np.where(above, np.abs(x), 1.0), self.w)

    def learn(self, x: Vector, y: float, weight: float) -> None:
        self.see(x)
        self.inner.free, self.inner.support = self.free, self.support
        self.inner.step(x, y, weight)
        self.largest = np.maximum(self.largest, np.abs(x))
        self.count = self.count + (x != 0.0)
        w = self.inner.w
        share = (1.0 + self.eta) / (self.count + self.eta)
        going = (w != 0.0) & (self.mean != 0.0)
        mean = np.where(going, self.mean + share * (w - self.mean), w)
        self.mean = np.where(x != 0.0, mean, self.mean)

    def refresh(self) -> None:
        self.inner.refresh()
        self.w = np.where(self.inner.w != 0.0, self.mean, 0.0)


def implicit(loss: Loss, p: float, y: float, B: float) -> float:
    """Solve h = l'(p - h B, y): the slope after the step instead of before it."""
    g = float(loss.slope(p, y))

    def excess(h: float) -> float:
        return float(h - loss.slope(p - h * B, y))

    if g == 0.0 or excess(g) == 0.0:
        return g
    return float(brentq(excess, min(0.0, g), max(0.0, g), xtol=1e-300, rtol=EPS, maxiter=2000))


def leaving(loss: Loss, p: float, y: float, h: float) -> float:
    """At a kink such a step stands still; the slope that the papers choose leaves it."""
    return h if abs(h) > 1e-200 else float(loss.slope(p, y))


class NormalizedAdaptive(_Scaled):
    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        rate: float = 1.0,
        update: str = "explicit",
        size: str = "largest",
    ) -> None:
        super().__init__(n, loss, penalty, size)
        self.rate, self.update = rate, update
        self.N = 0.0
        self.G = np.zeros(n)

    def learn(self, x: Vector, y: float, weight: float) -> None:
        p = self.see(x)
        u = self.measure(x)
        # where |x| has no mean, neither has u^2: then features are counted
        self.N += float(np.sum(u**2) if self.size == "largest" else np.sum(x != 0.0))
        g = weight * float(self.loss.slope(p, y))
        self.G = self.G + (g * x) ** 2
        on = (x != 0.0) & (self.G > 0.0)
        step = np.zeros(self.n)  # times g: the move of w
        if on.any():
            scale = self.s[on] * np.sqrt(self.G[on])
            step[on] = self.rate * np.sqrt(self.t / self.N) * x[on] / scale
        B = weight * float(step @ x)
        self.w = self.w - weight * self.slope(p, y, B) * step

    def slope(self, p: float, y: float, B: float) -> float:
        if self.update == "explicit" or B == 0.0:
            return float(self.loss.slope(p, y))
        if self.update == "implicit":
            h = implicit(self.loss, p, y, B)
        else:
            h = -self.loss.flow(p, y, B) / B  # invariant: p - h B ends the gradient flow
        return leaving(self.loss, p, y, h)


class MirrorDescent(NormalizedAdaptive):
    """The same steps without a penalty; with one they differ."""

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        rate: float = 1.0,
        update: str = "invariant",
        size: str = "typical",
    ) -> None:
        super().__init__(n, loss, penalty, rate, update, size)


class DiagonalNewton(_Scaled):
    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, prior: float = 3.0, size: str = "largest"
    ) -> None:
        super().__init__(n, loss, penalty, size)
        self.prior, self.q = prior, np.full(n, prior)

    def learn(self, x: Vector, y: float, weight: float) -> None:
        p = self.see(x)
        u = self.measure(x)
        s = np.where(x != 0.0, self.s, 1.0)
        B = weight * float(np.sum(u**2 / self.q))
        h = leaving(self.loss, p, y, implicit(self.loss, p, y, B))
        self.w = self.w - weight * h * u / (self.q * s)
        bend = self.loss.curvature(p, y)
        if bend == 0.0:  # straight pieces: the squared slope, as in online Newton steps
            bend = float(self.loss.slope(p, y)) ** 2
        self.q = self.q + weight * bend * u**2


class CoinBetting(_Tuned):
    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, alpha: float = 1.0, beta: float = 1.0
    ) -> None:
        super().__init__(n, loss, penalty)
        self.alpha, self.beta = alpha, beta
        self.m = np.zeros(n)  # the larger of largest |x| and largest |g x|
        self.G = np.zeros(n)  # sum |g x|
        self.theta = np.zeros(n)  # -sum g x
        self.R = np.zeros(n)  # the reward won so far

    def weights(self, m: Vector) -> Vector:
        stake = m * (self.G + self.beta * m)
        return (self.alpha + self.R) * self.theta / np.where(stake > 0.0, stake, 1.0)

    def rescaled(self, x: Vector) -> Vector:
        return np.where(x != 0.0, self.weights(np.maximum(self.m, np.abs(x))), self.w)

    def learn(self, x: Vector, y: float, weight: float) -> None:
        p = self.see(x)
        g = weight * float(self.loss.slope(p, y))
        if g * (float(x @ self.seen_weights) - p) < 0.0:
            g = 0.0  # further out than the guard lets the score go there is nothing to win
        gx = g * x
        self.m = np.maximum(self.m, np.maximum(np.abs(x), np.abs(gx)))
        self.G = self.G + np.abs(gx)
        self.theta = self.theta - gx
        self.R = np.maximum(0.0, self.R - gx * self.seen_weights)
        self.w = np.where(x != 0.0, self.weights(self.m), self.w)
