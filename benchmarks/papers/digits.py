"""Shared parts of the experiments of [Xiao10] section 6: pairs of digits, methods and settings.

l1-regularized logistic regression with a free intercept on raw pixels of 0 to 255, one pass in a
random order; gamma = 5000, and (1/gamma) sqrt(2/T) for the steps of SGD and TG (section 6.2).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

import streamlearn as sl
from benchmarks.data import Examples, Source, load

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.data import Labels, Rows

    Order: TypeAlias = NDArray[np.int64]

GAMMA = 5_000.0
RHO = 0.005  # gamma rho = 25
ROUNDED = 1e-5  # smaller weights count as 0 for methods without exact zeros
LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ALL_ROWS = 100_000  # rows of MNIST: all


@dataclass(frozen=True)
class Pair:
    """Images of two digits, side x side pixels; the greater digit has label 1."""

    name: str
    rows: "Rows"
    labels: "Labels"
    test_rows: "Rows"
    test_labels: "Labels"
    side: int = 28

    def part(self, chosen: "Order") -> "Pair":
        """Return the pair with these training examples, in this order, and all test examples."""
        rows, labels = self.rows[chosen], self.labels[chosen]
        return Pair(self.name, rows, labels, self.test_rows, self.test_labels, self.side)

    def error(self, w: "Labels", intercept: float) -> float:
        """Return the error rate on the test set."""
        scores = np.asarray(self.test_rows @ w) + intercept
        return float(np.mean(self.test_labels * scores <= 0.0))


class Digits:
    """MNIST, split into pairs of digits."""

    def __init__(self, data: Path) -> None:
        self.parts = [
            load(Source("mnist", f"mnist{part}.svm.gz"), data, ALL_ROWS) for part in ("", ".t")
        ]

    def pair(self, a: int, b: int) -> Pair:
        """Return the digits a and b."""
        train, test = (images_of(part, a, b) for part in self.parts)
        return Pair(f"{a} and {b}", *train, *test)


def images_of(part: Examples, a: int, b: int) -> tuple["Rows", "Labels"]:
    """Return the images of two digits, 784 pixels each."""
    chosen = np.flatnonzero((part.labels == a) | (part.labels == b))
    rows = part.rows[chosen]
    wide = sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(len(chosen), 784))
    return wide, np.where(part.labels[chosen] == b, 1.0, -1.0)


def generated(m: int = 1_200, side: int = 14, flipped: float = 0.0, seed: int = 0) -> Pair:
    """Generate images of two strokes that differ in one part, shifted, on a noisy background.

    `flipped` is the fraction of training labels that are wrong.
    """
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1.0, 1.0], size=2 * m)
    y, x = np.mgrid[:side, :side][:, None] / (side - 1.0)
    shift = 0.07 * rng.normal(size=(2, 2 * m, 1, 1))
    shared = np.exp(-(((x - 0.5 - shift[0]) / 0.12) ** 2))
    own = np.where(labels > 0, 0.25, 0.75)[:, None, None]
    bar = np.exp(-(((y - own - shift[1]) / 0.12) ** 2)) * (x > 0.3)
    images = 255.0 * np.maximum(shared, bar) + 60.0 * rng.normal(size=(2 * m, side, side))
    images = np.where(images > 90.0, np.minimum(images, 255.0), 0.0).reshape(2 * m, -1)
    rows = sparse.csr_array(images)
    told = np.where(rng.random(m) < flipped, -labels[:m], labels[:m])
    return Pair("generated", rows[:m], told, rows[m:], labels[m:], side)


# -- the methods ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A rule for T examples, and whether its last weights have exact zeros."""

    name: str
    make: Callable[[int], sl.rules.Rule]
    exact: bool


def step(T: int) -> float:
    """Return the step size of SGD and TG."""
    return math.sqrt(2.0 / T) / GAMMA


SGD = Method("SGD", lambda T: sl.rules.GradientDescent(step(T)), exact=False)
TG_1 = Method("TG, K=1", lambda T: sl.rules.TruncatedGradient(step(T)), exact=True)
TG_10 = Method("TG, K=10", lambda T: sl.rules.TruncatedGradient(step(T), every=10), exact=False)
RDA_0 = Method("RDA, rho=0", lambda _: sl.rules.DualAveraging(GAMMA), exact=True)
RDA_25 = Method("RDA, gamma rho=25", lambda _: sl.rules.DualAveraging(GAMMA, RHO), exact=True)
BASIC = (SGD, TG_1, RDA_0)
ENHANCED = (SGD, TG_10, RDA_25)
ALL = (SGD, TG_1, TG_10, RDA_0, RDA_25)


@dataclass(frozen=True)
class Weights:
    """Weights with their test error and number of non-zeros."""

    w: "Labels"
    error: float
    nonzero: int


def evaluated(pair: Pair, w: "Labels", intercept: float, *, exact: bool) -> Weights:
    """Evaluate weights: test error and non-zeros."""
    size = np.count_nonzero(w) if exact else np.count_nonzero(np.abs(w) > ROUNDED)
    return Weights(w, pair.error(w, intercept), int(size))


def learner(rule: sl.rules.Rule, strength: float, average: str = "last") -> sl.LinearClassifier:
    """Return l1-regularized logistic regression with a free intercept."""
    penalty = sl.penalties.L1(strength)
    return sl.LinearClassifier(rule, sl.losses.Logistic(), penalty, average=average)


def learned(pair: Pair, method: Method, strength: float, average: str = "last") -> Weights:
    """Learn in one pass; return the last weights, or the mean of all ("uniform")."""
    model = learner(method.make(len(pair.labels)), strength, average)
    model.learn_rows(pair.rows, pair.labels)
    exact = method.exact and average == "last"
    return evaluated(pair, model.coef(pair.rows.shape[1]), model.intercept, exact=exact)


def batch(pair: Pair, strengths: Sequence[float], *, max_iter: int = 400) -> dict[float, Weights]:
    """Solve the batch problems, warm-started; the paper uses an interior-point method."""
    found = {}
    start = None
    for strength in sorted(strengths, reverse=True):
        # pixels scaled to 0 to 1, and the penalty with them
        start = sl.hindsight.solve(
            pair.rows * (1.0 / 255.0),
            pair.labels,
            sl.losses.Logistic(),
            sl.penalties.L1(strength / 255.0),
            fit_intercept=True,
            gap=1e-4,
            max_iter=max_iter,
            start=start,
        )
        found[strength] = evaluated(pair, start.w / 255.0, start.intercept, exact=True)
    return found


def shuffled(pair: Pair, number: int, seed: int = 0) -> Iterator[Pair]:
    """Generate random orders of the training examples."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        yield pair.part(rng.permutation(len(pair.labels)))


Spread: TypeAlias = tuple[float, float]


def spread(values: Sequence[float]) -> Spread:
    """Return mean and standard deviation."""
    return float(np.mean(values)), float(np.std(values))


def shown(mean: float, deviation: float, digits: int) -> str:
    """Format mean and standard deviation as a cell."""
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"
