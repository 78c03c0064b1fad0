"""The self-tuning rules under l1 and l2, with dense vectors: all weights after every event.

In FTRL-proximal form (McMahan 2011) a weight is S(z, T) / (D + t l2), where S is the soft threshold
and T = l1 t + min(sqrt G, 30 l1 t). Mirror descent (Duchi and others 2010) shrinks its last weight.
"""

from typing import Any

import numpy as np

from .rule import Vector
from .tuned import (
    CoinBetting,
    DiagonalNewton,
    MirrorDescent,
    NormalizedAdaptive,
    _Tuned,
    implicit,
    leaving,
)


def ratio(a: Vector, b: Vector) -> Vector:
    """Divide a by b, with 0 where b is 0."""
    return np.where(b > 0.0, a / np.where(b > 0.0, b, 1.0), 0.0)


class _Composite(_Tuned):
    """`margin` is the G of the thresholds, and `clock` the events so far."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.z, self.squares, self.last, self.margin = np.zeros((4, self.n))
        self.clock = 0
        self.leader: _Composite = self

    def strengths(self) -> tuple[Vector, Vector]:
        inside = np.arange(self.n) >= self.free
        return np.where(inside, self.penalty.l1, 0.0), np.where(inside, self.penalty.l2, 0.0)

    def soft(self) -> Vector:
        l1, _ = self.strengths()
        T = l1 * self.clock
        T = T + np.minimum(np.sqrt(self.margin), 30.0 * T)
        return np.asarray(-np.sign(self.z) * np.maximum(0.0, np.abs(self.z) - T))

    def ridge(self) -> Vector:
        return np.asarray(self.strengths()[1] * self.clock)

    def add_gradients(self, gx: Vector) -> None:
        """After the score: the thresholds are those of this event from now on."""
        self.squares = self.squares + gx**2
        self.clock, self.margin = self.t, self.leader.squares

    def refresh(self) -> None:
        self.margin = self.leader.squares
        self.w = self.weights_now()

    def weights_now(self) -> Vector:
        raise NotImplementedError


class _AdaptiveSteps(_Composite, NormalizedAdaptive):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.E = np.zeros(self.n)

    def learn(self, x: Vector, y: float, weight: float) -> None:
        start = self.s * self.w
        p = self.see(x)
        u = self.measure(x)
        self.N += float(np.sum(u**2) if self.size == "largest" else np.sum(x != 0.0))
        self.add_gradients(weight * float(self.loss.slope(p, y)) * x)
        if self.N > 0.0:
            E = np.sqrt(self.squares) / (self.rate * np.sqrt(self.t / self.N))
            B = weight * float(np.sum(ratio(x * u, E)))
            h = weight * self.slope(p, y, B)
            self.go(x, h, start, np.where(x != 0.0, E, self.E))
        self.last = np.where(x != 0.0, self.t, self.last)

    def go(self, x: Vector, h: float, start: Vector, E: Vector) -> None:
        """Step with slope h from `start`, which is s w, to the scales E."""
        raise NotImplementedError


class _Adaptive(_AdaptiveSteps):
    def go(self, x: Vector, h: float, start: Vector, E: Vector) -> None:
        self.z = self.z + h * x - (E - self.E) * start
        self.E = E

    def weights_now(self) -> Vector:
        return ratio(self.soft(), self.s * self.E + self.ridge())


class _Mirror(_AdaptiveSteps, MirrorDescent):
    selects = False

    def go(self, x: Vector, h: float, start: Vector, E: Vector) -> None:
        D = self.s * E
        moved = np.where(D > 0.0, ratio(start, self.s) - ratio(h * x, D), 0.0)
        self.z = np.where(x != 0.0, self.shrunk(moved, D, np.ones(self.n)), self.z)
        self.E = E

    def shrunk(self, w: Vector, D: Vector, steps: Vector) -> Vector:
        l1, l2 = self.strengths()
        a = ratio(steps, D)
        return np.sign(w) * np.maximum(0.0, np.abs(w) - l1 * a) / (1.0 + l2 * a)

    def weights_now(self) -> Vector:
        w = self.shrunk(self.z, self.s * self.E, self.clock - self.last)
        allowed = (np.arange(self.n) < self.free) | self.support()
        return np.where(allowed, w, 0.0)


class _Newton(_Composite, DiagonalNewton):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.C = np.zeros(self.n)

    def denominator(self) -> Vector:
        return self.prior * self.s**2 + self.C

    def learn(self, x: Vector, y: float, weight: float) -> None:
        p = self.see(x)
        self.measure(x)
        slope = float(self.loss.slope(p, y))
        self.add_gradients(weight * slope * x)
        bend = weight * (float(self.loss.curvature(p, y)) or slope**2)
        B = weight * float(np.sum(ratio(x**2, self.denominator())))
        self.z = self.z + weight * leaving(self.loss, p, y, implicit(self.loss, p, y, B)) * x
        self.z = self.z - bend * x**2 * self.weights_now()
        self.C = self.C + bend * x**2

    def weights_now(self) -> Vector:
        return ratio(self.soft(), self.denominator() + self.ridge())


class _Coin(_Composite, CoinBetting):
    def weights(self, m: Vector) -> Vector:
        rich = self.alpha + self.R
        return ratio(rich * self.soft(), m * (self.G + self.beta * m) + rich * self.ridge())

    def learn(self, x: Vector, y: float, weight: float) -> None:
        p = self.see(x)
        w, l1 = self.seen_weights, self.strengths()[0]
        g = weight * float(self.loss.slope(p, y))
        if g * (float(x @ w) - p) < 0.0:
            g = 0.0
        gx, on = g * x, x != 0.0
        self.add_gradients(gx)
        left = self.R - gx * w - l1 * np.abs(w) * (self.t - self.last)
        self.R = np.where(on, np.maximum(0.0, left), self.R)
        self.m = np.maximum(self.m, np.maximum(np.abs(x), np.abs(gx)))
        self.G = self.G + np.abs(gx)
        self.z = self.z + gx
        self.last = np.where(on, self.t, self.last)

    def weights_now(self) -> Vector:
        return self.weights(self.m)


NormalizedAdaptive.composite = _Adaptive
MirrorDescent.composite = _Mirror
DiagonalNewton.composite = _Newton
CoinBetting.composite = _Coin
