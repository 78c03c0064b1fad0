"""The losses of [Teo07] Tables 1 and 2: `value(p, y)` and `slope(p, y)`, elementwise over arrays.

At a kink the slope is the table's own choice. `smoothness` bounds the curvature (None: there is
no bound). `curvature` and `flow` serve tuned.py: the second derivative at p, and how far p moves
while dp/ds = -l'(p, y) runs for `time` (infinitely many infinitely small gradient steps).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

Array = Any  # a float or an array of floats
EPS = 4 * np.finfo(float).eps


class Loss:
    smoothness: float | None = None
    regression = False

    def value(self, p: Array, y: Array) -> Array:
        raise NotImplementedError

    def slope(self, p: Array, y: Array) -> Array:
        raise NotImplementedError

    def curvature(self, p: float, y: float) -> float:
        return 0.0

    def flow(self, p: float, y: float, time: float) -> float:
        raise NotImplementedError

    def score(self, y: float) -> float:
        """The score that stands for the label y of a regression."""
        return y

    def constant(self, mean: float) -> float:
        """The best constant score for labels of this mean."""
        return self.score(mean)


def slide(slope: float, time: float, distance: float) -> float:
    """The flow where the slope is constant: straight on, at rest once it meets the kink."""
    return float(-np.sign(slope) * min(abs(slope) * time, distance))


class Hinge(Loss):
    """max(0, threshold - y p): soft margin (threshold 1), perceptron (0)."""

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold = threshold

    def constant(self, mean: float) -> float:
        return float(self.threshold * np.sign(mean))

    def value(self, p: Array, y: Array) -> Array:
        return np.maximum(0.0, self.threshold - y * p)

    def slope(self, p: Array, y: Array) -> Array:
        margin = np.asarray(y * p)
        # the perceptron has to leave w = 0, where its margin is 0
        wrong = margin <= 0.0 if self.threshold == 0 else margin < self.threshold
        return np.where(wrong, -y, 0.0)

    def flow(self, p: float, y: float, time: float) -> float:
        return slide(float(self.slope(p, y)), time, float(self.value(p, y)))


class SquaredHinge(Loss):
    """1/2 max(0, threshold - y p)^2."""

    smoothness = 1.0

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold = threshold

    def constant(self, mean: float) -> float:
        return self.threshold * mean

    def value(self, p: Array, y: Array) -> Array:
        return 0.5 * np.maximum(0.0, self.threshold - y * p) ** 2

    def slope(self, p: Array, y: Array) -> Array:
        return -y * np.maximum(0.0, self.threshold - y * p)

    def curvature(self, p: float, y: float) -> float:
        return float(y * p < self.threshold)

    def flow(self, p: float, y: float, time: float) -> float:
        return float(self.slope(p, y) * np.expm1(-time))


class Logistic(Loss):
    """log(1 + exp(-y p))."""

    smoothness = 0.25

    def constant(self, mean: float) -> float:
        return float(np.log((1.0 + mean) / (1.0 - mean)))

    def value(self, p: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * p)

    def slope(self, p: Array, y: Array) -> Array:
        return -y * expit(-y * p)

    def curvature(self, p: float, y: float) -> float:
        return float(expit(p) * expit(-p))

    def flow(self, p: float, y: float, time: float) -> float:
        # m + e^m = m0 + e^m0 + time for the margin m = m0 + d, solved for d
        scale = np.exp(y * p)

        def excess(d: float) -> float:
            return float(d + scale * np.expm1(d) - time)

        top = time / (1.0 + scale)  # expm1(d) >= d
        if excess(top) <= 0.0:
            return float(y * top)
        return float(y * brentq(excess, 0.0, top, xtol=1e-300, rtol=EPS, maxiter=2000))


class Exponential(Loss):
    """exp(-y p)."""

    def constant(self, mean: float) -> float:
        return float(np.log((1.0 + mean) / (1.0 - mean))) / 2.0

    def value(self, p: Array, y: Array) -> Array:
        return np.exp(-y * p)

    def slope(self, p: Array, y: Array) -> Array:
        return -y * np.exp(-y * p)

    def curvature(self, p: float, y: float) -> float:
        return float(np.exp(-y * p))

    def flow(self, p: float, y: float, time: float) -> float:
        return float(y * np.log1p(time * np.exp(-y * p)))


class Novelty(Loss):
    """max(0, threshold - p), whatever the label (Table 1 misprints the slope)."""

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold = threshold

    def constant(self, mean: float) -> float:
        return 0.0

    def value(self, p: Array, y: Array) -> Array:
        return np.maximum(0.0, self.threshold - np.asarray(p))

    def slope(self, p: Array, y: Array) -> Array:
        return np.where(np.asarray(p) < self.threshold, -1.0, 0.0)

    def flow(self, p: float, y: float, time: float) -> float:
        return slide(float(self.slope(p, y)), time, float(self.value(p, y)))


class Squared(Loss):
    """1/2 (p - y)^2."""

    smoothness = 1.0
    regression = True

    def value(self, p: Array, y: Array) -> Array:
        return 0.5 * (p - y) ** 2

    def slope(self, p: Array, y: Array) -> Array:
        return p - y

    def curvature(self, p: float, y: float) -> float:
        return 1.0

    def flow(self, p: float, y: float, time: float) -> float:
        return float((p - y) * np.expm1(-time))


class Absolute(Loss):
    """|p - y|; slope 0 at p = y."""

    regression = True

    def value(self, p: Array, y: Array) -> Array:
        return np.abs(p - y)

    def slope(self, p: Array, y: Array) -> Array:
        return np.sign(p - y)

    def flow(self, p: float, y: float, time: float) -> float:
        return slide(float(self.slope(p, y)), time, abs(p - y))


class Quantile(Loss):
    """The pinball loss, least at the tau-quantile (Table 1's tau is our 1 - tau).

    At p = y the slope is that of p < y, as in the table.
    """

    regression = True

    def __init__(self, tau: float = 0.5) -> None:
        self.tau = tau

    def value(self, p: Array, y: Array) -> Array:
        return np.maximum((1.0 - self.tau) * (p - y), self.tau * (y - p))

    def slope(self, p: Array, y: Array) -> Array:
        return np.where(np.asarray(p) > y, 1.0 - self.tau, -self.tau)

    def flow(self, p: float, y: float, time: float) -> float:
        return slide(float(self.slope(p, y)), time, abs(p - y))


class EpsilonInsensitive(Loss):
    """max(0, |p - y| - epsilon)."""

    regression = True

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def value(self, p: Array, y: Array) -> Array:
        return np.maximum(0.0, np.abs(p - y) - self.epsilon)

    def slope(self, p: Array, y: Array) -> Array:
        return np.where(np.abs(p - y) <= self.epsilon, 0.0, np.sign(p - y))

    def flow(self, p: float, y: float, time: float) -> float:
        return slide(float(self.slope(p, y)), time, float(self.value(p, y)))


class Huber(Loss):
    """1/2 r^2 for |r| <= delta, delta |r| - delta^2/2 beyond; r = p - y."""

    smoothness = 1.0
    regression = True

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def value(self, p: Array, y: Array) -> Array:
        r = np.abs(p - y)
        return np.where(r <= self.delta, 0.5 * r**2, self.delta * (r - 0.5 * self.delta))

    def slope(self, p: Array, y: Array) -> Array:
        return np.clip(p - y, -self.delta, self.delta)

    def curvature(self, p: float, y: float) -> float:
        return float(abs(p - y) <= self.delta)

    def flow(self, p: float, y: float, time: float) -> float:
        r = abs(p - y)
        straight = min(time, max(0.0, r - self.delta) / self.delta)
        moved = self.delta * straight
        moved += (r - moved) * -np.expm1(straight - time)
        return float(-np.sign(p - y) * moved)


class Poisson(Loss):
    """exp(p) - y p: p is the logarithm of the expected count."""

    regression = True

    def value(self, p: Array, y: Array) -> Array:
        return np.exp(p) - y * p

    def slope(self, p: Array, y: Array) -> Array:
        return np.exp(p) - y

    def curvature(self, p: float, y: float) -> float:
        return float(np.exp(p))

    def flow(self, p: float, y: float, time: float) -> float:
        # z = exp(-p) obeys the linear dz/ds = 1 - y z
        gain = time if y == 0 else -np.expm1(-time * y) / y
        change = gain * (np.exp(p) - y)
        if change > -0.5:
            return float(-np.log1p(change))
        return float(-np.log(np.exp(-time * y) + gain * np.exp(p)))  # without cancellation

    def score(self, y: float) -> float:
        return float(np.log(y)) if y > 0 else -20.0


class MulticlassHinge:
    """max_y' cost(y, y')^rescale (p_y' - p_y + cost(y, y')) over the K outputs p; y is an index.

    Of several maximizers y itself is taken (slope 0 at the kink), then the lowest.
    """

    def __init__(self, cost: ArrayLike | None = None, rescale: float = 0.0) -> None:
        self.cost = None if cost is None else np.asarray(cost, dtype=float)
        self.rescale = rescale

    def terms(self, p: NDArray[np.float64], y: int) -> tuple[NDArray[np.float64], Any]:
        cost = 1.0 - np.eye(len(p)) if self.cost is None else self.cost
        factor = cost[y] ** self.rescale  # 0^0 = 1
        return factor * (p - p[y] + cost[y]), factor

    def value(self, p: NDArray[np.float64], y: int) -> float:
        return float(np.max(self.terms(p, y)[0]))

    def slope(self, p: NDArray[np.float64], y: int) -> NDArray[np.float64]:
        terms, factor = self.terms(p, y)
        worst = y if terms[y] == terms.max() else int(np.argmax(terms))
        return np.asarray(factor[worst] * (np.eye(len(p))[worst] - np.eye(len(p))[y]))


class Softmax:
    """log sum_y' exp(p_y') - p_y."""

    def value(self, p: NDArray[np.float64], y: int) -> float:
        return float(logsumexp(p) - p[y])

    def slope(self, p: NDArray[np.float64], y: int) -> NDArray[np.float64]:
        return np.asarray(softmax(p) - np.eye(len(p))[y])


class MultiSquared:
    """1/2 (p - y)' M (p - y) with M positive semidefinite (None: the identity)."""

    def __init__(self, metric: ArrayLike | None = None) -> None:
        self.metric = None if metric is None else np.asarray(metric, dtype=float)

    def value(self, p: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        return float(0.5 * (p - y) @ self.slope(p, y))

    def slope(self, p: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        r = p - y
        return r if self.metric is None else np.asarray(self.metric @ r)
