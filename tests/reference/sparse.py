"""The default mixture under l1 and l2, in dense NumPy: every slot's weights at every event.

The penalty of a member, with which the mixture charges it, is the sum over slots of the penalties
when each was last touched: an event changes it only where its features are.
"""

import numpy as np

from .losses import Loss
from .penalties import ElasticNet, Penalty
from .rule import Rule, Vector
from .tuned import BaseRate, Clip, implicit, leaving

ADAPTIVE, NEWTON, COIN, FOLLOWER, AVERAGE, BASE = range(6)


def ratio(a: Vector, b: Vector) -> Vector:
    """Divide a by b, with 0 where b is 0."""
    return np.where(b > 0.0, a / np.where(b > 0.0, b, 1.0), 0.0)


class _SparseMixture(Rule):
    """`free`: how many of the first slots are outside the penalty."""

    batches = False

    def __init__(
        self, n: int, loss: Loss, penalty: Penalty, share: float = 1e-3, free: int = 0
    ) -> None:
        super().__init__(n, loss, penalty)
        assert isinstance(penalty, ElasticNet)
        self.share, self.clip, self.score = share, Clip(loss), 0.0
        outside = np.arange(n) < free
        self.l1 = np.where(outside, 0.0, penalty.l1)
        self.l2 = np.where(outside, 0.0, penalty.l2)
        self.outside = outside
        self.M, self.roots, self.count, self.last = np.zeros((4, n))
        self.z = np.zeros((3, n))
        self.G, self.E, self.C, self.R, self.A, self.m = np.zeros((6, n))
        self.follower, self.follower_G, self.follower_E, self.average = np.zeros((4, n))
        self.psi = np.zeros((6, n))
        self.base = BaseRate(n, loss, penalty, free)
        self.N, self.V = 0.0, 0.0
        self.pi, self.c = np.full(6, 1.0 / 6.0), np.zeros(6)

    def size(self) -> Vector:
        return np.asarray(ratio(self.roots, self.count) ** 2)

    def soft(self, k: int, t: float) -> Vector:
        """S(z, T), with a margin from the adaptive member's G."""
        T = self.l1 * t
        T = np.where(self.outside, 0.0, T + np.minimum(np.sqrt(self.G), 30.0 * T))
        return np.asarray(-np.sign(self.z[k]) * np.maximum(0.0, np.abs(self.z[k]) - T))

    def coin(self, m: Vector, t: float) -> Vector:
        rich = 1.0 + self.R
        return ratio(rich * self.soft(COIN, t), m * (self.A + m) + rich * t * self.l2)

    def shrunk(self, w: Vector, D: Vector, steps: Vector) -> Vector:
        a = ratio(steps, D)
        left = np.maximum(0.0, np.abs(w) - self.l1 * a)
        return np.sign(w) * left / (1.0 + self.l2 * a)

    def members(self, t: float) -> Vector:
        s = self.size()
        w = np.zeros((6, self.n))
        w[BASE] = self.base.w
        w[ADAPTIVE] = ratio(self.soft(ADAPTIVE, t), s * self.E + t * self.l2)
        w[NEWTON] = ratio(self.soft(NEWTON, t), 3.0 * s**2 + self.C + t * self.l2)
        w[COIN] = self.coin(self.m, t)
        voters = self.pi[:3] >= 0.1 * np.max(self.pi[:3])
        support = (self.l1 == 0.0) | np.any((w[:3] != 0.0) & voters[:, None], axis=0)
        shrunk = self.shrunk(self.follower, s * self.follower_E, t - self.last)
        w[FOLLOWER] = np.where(support, shrunk, 0.0)
        w[AVERAGE] = np.where(w[FOLLOWER] != 0.0, self.average, 0.0)
        return w

    def audible(self) -> Vector:
        pi = np.where(self.pi >= 0.05, self.pi, 0.0)
        return np.asarray(pi / pi.sum())

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        x, label, a, t = X[0], float(y[0]), float(weight[0]), self.t
        on = x != 0.0
        w = self.members(t - 1)
        w[COIN] = np.where(
            np.abs(x) > self.m, self.coin(np.maximum(self.m, np.abs(x)), t - 1), w[2]
        )
        clipped = np.clip(x, -self.M, self.M)
        raw = np.array([w[k] @ (x if k == COIN else clipped) for k in range(6)])
        p = np.array([self.clip(score) for score in raw])
        P = self.audible()
        self.score = float(P @ p)
        g = np.array([a * float(self.loss.slope(score, label)) for score in p])
        bend = a * float(self.loss.curvature(p[NEWTON], label)) or g[NEWTON] ** 2 / a
        if g[COIN] * (raw[COIN] - p[COIN]) < 0.0:
            g[COIN] = 0.0
        before = self.size()
        self.M = np.maximum(self.M, np.abs(x))
        self.roots = self.roots + np.sqrt(np.abs(x))
        self.count = self.count + on
        self.N += float(on.sum())
        if self.N > 0.0:
            self.learn(x, on, label, a, t, w, p, g, bend, before)
        psi = self.psi.sum(axis=1)
        d = a * float(self.loss.slope(self.score, label)) * (p - self.score) + psi - P @ psi
        self.c = self.c + d
        self.V += float(self.pi @ d**2)
        if self.V > 0.0:
            power = -np.sqrt(np.log(6.0) / self.V) * self.c
            pi = np.exp(power - np.max(power))
            self.pi = (1.0 - self.share) * pi / pi.sum() + self.share / 6.0
        self.clip.see(label)
        self.base.step(X, y, weight)
        self.w = self.audible() @ self.members(t)

    def learn(
        self,
        x: Vector,
        on: Vector,
        y: float,
        a: float,
        t: float,
        w: Vector,
        p: Vector,
        g: Vector,
        bend: float,
        before: Vector,
    ) -> None:
        s, pace = self.size(), np.sqrt(t / self.N)
        self.G = self.G + (g[ADAPTIVE] * x) ** 2
        self.follower_G = self.follower_G + (g[FOLLOWER] * x) ** 2
        E = np.sqrt(self.G) / (2.0 * pace)
        self.z[ADAPTIVE] += g[ADAPTIVE] * x - np.where(on, (E - self.E) * before * w[ADAPTIVE], 0)
        self.E = np.where(on, E, self.E)
        q = 3.0 * s**2 + self.C
        B = a * float(np.sum(ratio(x**2, q)))
        h = a * leaving(self.loss, p[NEWTON], y, implicit(self.loss, p[NEWTON], y, B))
        self.z[NEWTON] += h * x
        self.z[NEWTON] -= bend * x**2 * ratio(self.soft(NEWTON, t), q + t * self.l2)
        self.C = self.C + bend * x**2
        gx = g[COIN] * x
        paid = self.l1 * np.abs(w[COIN]) * (t - self.last)
        self.R = np.where(on, np.maximum(0.0, self.R - gx * w[COIN] - paid), self.R)
        self.A = self.A + np.abs(gx)
        self.z[COIN] += gx
        self.m = np.maximum(self.m, np.maximum(np.abs(x), np.abs(gx)))
        E = np.sqrt(self.follower_G) / (16.0 * pace)
        D = s * E
        B = a * float(np.sum(ratio(x**2, D)))
        h = a * self.flow(p[FOLLOWER], y, B)
        start = w[FOLLOWER] * ratio(before, s)
        moved = np.where(D > 0.0, start - ratio(h * x, D), 0.0)
        self.follower = np.where(on, self.shrunk(moved, D, np.ones(self.n)), self.follower)
        self.follower_E = np.where(on, E, self.follower_E)
        self.last = np.where(on, t, self.last)
        now = self.members(t)[FOLLOWER]
        rho = np.minimum(1.0, 4.0 / (self.count + 3.0))
        mean = np.where(self.average == 0.0, now, self.average + rho * (now - self.average))
        self.average = np.where(on, np.where(now == 0.0, 0.0, mean), self.average)
        size = np.abs(self.members(t))
        self.psi = np.where(on, self.l1 * size + 0.5 * self.l2 * size**2, self.psi)

    def flow(self, p: float, y: float, B: float) -> float:
        h = -self.loss.flow(p, y, B) / B if B > 0.0 else float(self.loss.slope(p, y))
        return leaving(self.loss, p, y, h)
