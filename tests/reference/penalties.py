"""The penalties Psi(w).

Each has `value(w)`; `prox(v, step)` = argmin_w step Psi(w) + 1/2 |w - v|^2; and the step of dual
averaging ([Xiao10] equation (43)), `argmin(s, a, b, rho)` = argmin_w <s, w> + a Psi(w) + b h(w),
where h = 1/2 |w|^2 + rho |w|_1, or the penalty's own h (KL, LpSquared, Entropy).

`start(n)` is the minimizer of h: 0, or the middle of the simplex. Penalties that are sums over
the coordinates also take arrays for `step`, `a` and `b`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import wrightomega, xlogy

Vector = NDArray[np.float64]
Number = float | Vector  # an array has one value per coordinate

EPS = 4 * np.finfo(float).eps  # the finest relative tolerance that brentq accepts
TOLERANCE = 1e-9  # how far outside a set rounding may carry a point of it


def soft(v: Vector, threshold: Number) -> Vector:
    """Soft thresholding: [Xiao10] Appendix A."""
    return np.where(np.abs(v) <= threshold, 0.0, v - np.sign(v) * threshold)


def pnorm(w: Vector, p: float) -> float:
    top = float(np.max(np.abs(w), initial=0.0))
    return top * float(np.sum((np.abs(w) / top) ** p)) ** (1.0 / p) if top > 0 else 0.0


def dual_map(theta: Vector, p: float) -> Vector:
    """Gradient of |theta|_q^2 / (2 (q - 1)), the conjugate of |w|_p^2 / (2 (p - 1))."""
    q = p / (p - 1.0)
    size = pnorm(theta, q)
    if size == 0.0:
        return np.zeros_like(theta)
    return np.sign(theta) * (np.abs(theta) / size) ** (q - 1.0) * (size / (q - 1.0))


def level(v: Vector, total: float) -> float:
    """The c with sum_i max(0, v_i - c) = total > 0 (Duchi et al. 2008, by sorting)."""
    falling = np.sort(v)[::-1]
    count = np.arange(1, len(v) + 1)
    levels = (np.cumsum(falling) - total) / count
    return float(levels[np.nonzero(falling > levels)[0][-1]])


class Penalty:
    l1 = 0.0
    l2 = 0.0  # the strength of the quadratic part, for the rules that step by it

    @property
    def shrinks(self) -> bool:
        return self.l1 > 0.0 or self.l2 > 0.0

    def start(self, n: int) -> Vector:
        return np.zeros(n)

    def value(self, w: Vector) -> float:
        raise NotImplementedError

    def prox(self, v: Vector, step: Number) -> Vector:
        raise NotImplementedError

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        # true where |w_i| falling does not raise Psi: the prox keeps signs and zeros, so the
        # subgradient of rho |.|_1 at soft(...) is also one at the result
        return self.prox(soft(-s / b, rho), a / b)

    def subgradient(self, w: Vector) -> Vector:
        """Of the soft part of Psi, with sgn(0) = 0."""
        raise NotImplementedError

    def project(self, w: Vector) -> Vector:
        """On the domain of Psi."""
        return w


class ElasticNet(Penalty):
    """l1 |w|_1 + l2/2 |w|^2."""

    def __init__(self, l1: float, l2: float) -> None:
        self.l1, self.l2 = l1, l2

    def value(self, w: Vector) -> float:
        return float(self.l1 * np.sum(np.abs(w)) + 0.5 * self.l2 * (w @ w))

    def prox(self, v: Vector, step: Number) -> Vector:
        return soft(v, step * self.l1) / (1.0 + step * self.l2)

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        return soft(-s, a * self.l1 + b * rho) / (a * self.l2 + b)

    def subgradient(self, w: Vector) -> Vector:
        return self.l1 * np.sign(w) + self.l2 * w


class Zero(ElasticNet):
    def __init__(self) -> None:
        super().__init__(0.0, 0.0)


class L1(ElasticNet):
    """strength |w|_1."""

    def __init__(self, strength: float) -> None:
        super().__init__(strength, 0.0)


class L2(ElasticNet):
    """strength/2 |w|^2."""

    def __init__(self, strength: float) -> None:
        super().__init__(0.0, strength)


class TargetNonzero(Zero):
    """Nothing is paid; a rule changes l1 so that about k weights remain."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    @property
    def shrinks(self) -> bool:
        return True

    def value(self, w: Vector) -> float:
        return 0.0

    def prox(self, v: Vector, step: Number) -> Vector:
        return v

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        return soft(-s, b * rho) / b


class Berhu(Penalty):
    """strength |w| up to the threshold, strength (w^2 + threshold^2)/(2 threshold) beyond."""

    def __init__(self, strength: float, threshold: float) -> None:
        self.strength, self.threshold = strength, threshold

    def value(self, w: Vector) -> float:
        size = np.abs(w)
        far = (size**2 + self.threshold**2) / (2.0 * self.threshold)
        return float(self.strength * np.sum(np.where(size <= self.threshold, size, far)))

    def prox(self, v: Vector, step: Number) -> Vector:
        return self.argmin(-v, step, 1.0)

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        near = soft(-s, a * self.strength + b * rho) / b
        far = soft(-s, b * rho) / (a * self.strength / self.threshold + b)
        return np.where(np.abs(near) <= self.threshold, near, far)

    def subgradient(self, w: Vector) -> Vector:
        far = w / self.threshold
        return self.strength * np.where(np.abs(w) <= self.threshold, np.sign(w), far)


class LInfinity(Penalty):
    """strength max |w_i|; the prox cuts the largest down to a common level."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def value(self, w: Vector) -> float:
        return float(self.strength * np.max(np.abs(w), initial=0.0))

    def prox(self, v: Vector, step: Any) -> Vector:
        budget = step * self.strength
        if budget == 0.0:
            return v
        if np.sum(np.abs(v)) <= budget:
            return np.zeros_like(v)
        cap = level(np.abs(v), budget)
        return np.clip(v, -cap, cap)


class _Set(Penalty):
    """0 in the set, infinite outside: the prox is the projection, whatever the step."""

    def prox(self, v: Vector, step: Number) -> Vector:
        return self.project(v)

    def value(self, w: Vector) -> float:
        inside = np.allclose(self.project(w), w, rtol=TOLERANCE, atol=TOLERANCE)
        return 0.0 if inside else float("inf")

    def subgradient(self, w: Vector) -> Vector:
        return np.zeros_like(w)


class Ball(_Set):
    """|w| <= radius."""

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def project(self, w: Vector) -> Vector:
        size = float(np.sqrt(w @ w))
        return w * (self.radius / size) if size > self.radius else w


class L1Ball(_Set):
    """|w|_1 <= radius."""

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def project(self, w: Vector) -> Vector:
        if np.sum(np.abs(w)) <= self.radius:
            return w
        return soft(w, level(np.abs(w), self.radius))


class Simplex(_Set):
    """w >= 0, sum w = 1. There |w|_1 is constant, so rho plays no part."""

    def start(self, n: int) -> Vector:
        return np.full(n, 1.0 / n)

    def project(self, w: Vector) -> Vector:
        return np.maximum(0.0, w - level(w, 1.0))

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        return self.project(-s / b)


def gibbs(energy: Vector, prior: Vector) -> Vector:
    """prior_i exp(-energy_i), normalized."""
    w = prior * np.exp(np.min(energy) - energy)
    return w / np.sum(w)


class KL(Penalty):
    """strength D(w | prior) on the simplex; own h: D(w | prior). Prior None: uniform."""

    def __init__(self, strength: float, prior: ArrayLike | None = None) -> None:
        self.strength = strength
        self.prior = None if prior is None else np.asarray(prior, dtype=float)

    def start(self, n: int) -> Vector:
        return np.full(n, 1.0 / n) if self.prior is None else self.prior / np.sum(self.prior)

    def value(self, w: Vector) -> float:
        if np.any(w < 0) or abs(np.sum(w) - 1.0) > TOLERANCE:
            return float("inf")
        return float(self.strength * np.sum(xlogy(w, w / self.start(len(w)))))

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        return gibbs(s / (a * self.strength + b), self.start(len(s)))

    def prox(self, v: Vector, step: Number) -> Vector:
        c, prior, n = step * self.strength, self.start(len(v)), len(v)
        if c == 0.0:
            return Simplex().project(v)

        # w_i + c (log(w_i / prior_i) + 1) = v_i - mu, with mu such that sum w = 1
        def weights(mu: float) -> Vector:
            return c * np.real(wrightomega(np.log(prior / c) + (v - mu) / c - 1.0))

        low = np.max(v - 1.0 - c * (1.0 - np.log(prior)))  # some w_i = 1
        high = np.max(v - 1.0 / n - c * (1.0 - np.log(n * prior)))  # all w_i <= 1/n
        w = weights(root(lambda mu: float(np.sum(weights(mu)) - 1.0), low, high))
        return w / np.sum(w)


class LpSquared(Penalty):
    """strength/(2 (p - 1)) |w|_p^2, 1 < p <= 2; own h: the same without the strength."""

    def __init__(self, strength: float, p: float) -> None:
        self.strength, self.p = strength, p

    def value(self, w: Vector) -> float:
        return self.strength / (2.0 * (self.p - 1.0)) * pnorm(w, self.p) ** 2

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        return dual_map(-s / (a * self.strength + b), self.p)

    def prox(self, v: Vector, step: Number) -> Vector:
        p, c, size = self.p, step * self.strength / (self.p - 1.0), np.abs(v)
        if p == 2.0:
            return v / (1.0 + c)

        # |w_i| + c N^(2-p) |w_i|^(p-1) = |v_i| for N = |w|_p: bisect w for given N, then N
        def weights(length: float) -> Vector:
            low, high = np.zeros_like(size), size
            for _ in range(100):
                middle = 0.5 * (low + high)
                over = middle + c * length ** (2.0 - p) * middle ** (p - 1.0) > size
                low, high = np.where(over, low, middle), np.where(over, middle, high)
            return high

        length = root(lambda n: pnorm(weights(n), p) - n, 0.0, pnorm(v, p))
        return np.sign(v) * weights(length)


class Entropy(Penalty):
    """strength sum [(|w| + e) log(1 + |w|/e) - |w|], e = scale, on |w|_1 <= radius ([Zhu09] VII).

    Own h: the same without the strength.
    """

    def __init__(self, strength: float, radius: float, scale: float = 1.0) -> None:
        self.strength, self.radius, self.scale = strength, radius, scale

    def value(self, w: Vector) -> float:
        size, e = np.abs(w), self.scale
        if np.sum(size) > self.radius * (1.0 + TOLERANCE):
            return float("inf")
        return float(self.strength * np.sum((size + e) * np.log1p(size / e) - size))

    def argmin(self, s: Vector, a: Number, b: Number, rho: float = 0.0) -> Vector:
        theta, e = -s / (a * self.strength + b), self.scale

        # log(1 + |w_i|/e) = max(0, |theta_i| - mu), mu >= 0 the multiplier of the ball
        def sizes(mu: float) -> Vector:
            return e * np.expm1(np.maximum(0.0, np.abs(theta) - mu))

        top = float(np.max(np.abs(theta)))
        return np.sign(theta) * self.fill(sizes, max(0.0, top - np.log1p(self.radius / e)), top)

    def prox(self, v: Vector, step: Number) -> Vector:
        c, e = step * self.strength, self.scale

        # |w_i| + c log(1 + |w_i|/e) = max(0, |v_i| - mu)
        def sizes(mu: float) -> Vector:
            left = np.maximum(0.0, np.abs(v) - mu)
            if c == 0.0:
                return left
            return np.maximum(0.0, c * np.real(wrightomega((left + e) / c + np.log(e / c))) - e)

        return np.sign(v) * self.fill(sizes, 0.0, float(np.max(np.abs(v))))

    def fill(self, sizes: Any, low: float, high: float) -> Vector:
        """sizes(mu), mu the least at or above `low` that keeps the sum within the radius."""
        if np.sum(sizes(low)) <= self.radius:
            return np.asarray(sizes(low))
        w = sizes(root(lambda mu: float(np.sum(sizes(mu)) - self.radius), low, high))
        return np.asarray(w * min(1.0, self.radius / np.sum(w)))


def root(f: Any, low: float, high: float) -> float:
    """Of a falling f, to machine precision; an end where rounding hides the change of sign."""
    if f(low) <= 0.0:
        return low
    if f(high) >= 0.0:
        return high
    return float(brentq(f, low, high, xtol=1e-300, rtol=EPS, maxiter=2000))
