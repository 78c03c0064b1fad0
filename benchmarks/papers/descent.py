"""Shared parts of the experiments of [Zhu09] section V: data, losses, norms, and two solvers.

The Primal Gradient Solver on examples drawn at random from m of them, and L-BFGS on all m; for each
the score of its weights at some steps, and the CPU time until then.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

import streamlearn as sl
from benchmarks.data import Source, load

if TYPE_CHECKING:
    from benchmarks.data import Labels, Rows

ALL = 10**9
GROWTH = 1.1  # of the steps between two measurements
FIRST = 300  # examples before the first measurement

Objective: TypeAlias = Callable[["Labels"], tuple[float, "Labels"]]


# -- the data ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Toy:
    """Two Gaussians with the same covariance, and the direction that separates them best."""

    rows: "Rows"
    signs: "Labels"
    truth: "Labels"

    def score(self, w: "Labels") -> float:
        """Return minus the distance from the true direction."""
        size = float(np.linalg.norm(w))
        return -2.0 if size == 0.0 else -float(np.linalg.norm(w / size - self.truth))


def toy(m: int, n: int, seed: int = 0) -> Toy:
    """Generate m examples of n features, with variances of 0.8 to 1.25 in random directions."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(n, n)))
    variances = np.geomspace(0.8, 1.25, n)
    apart = rng.normal(size=n)
    truth = axes @ ((axes.T @ apart) / variances)
    apart /= math.sqrt(apart @ truth)  # classes two standard deviations apart
    signs = rng.choice([-1.0, 1.0], size=m)
    noise = (rng.normal(size=(m, n)) * np.sqrt(variances)) @ axes.T
    return Toy(
        sparse.csr_array(noise + signs[:, None] * apart), signs, truth / np.linalg.norm(truth)
    )


@dataclass(frozen=True)
class Text:
    """Training and test rows."""

    rows: "Rows"
    signs: "Labels"
    test_rows: "Rows"
    test_signs: "Labels"

    def score(self, w: "Labels") -> float:
        """Return the accuracy on the test set."""
        return float(np.mean(self.test_signs * np.asarray(self.test_rows @ w) > 0.0))


def ccat(data: Path) -> Text:
    """Load rcv1v2_ccat."""
    parts = [
        load(Source("rcv1v2_ccat", f"rcv1v2_ccat{part}.svm.gz"), data, ALL) for part in ("", ".t")
    ]
    width = max(part.rows.shape[1] for part in parts)
    rows = [
        sparse.csr_array(
            (part.rows.data, part.rows.indices, part.rows.indptr),
            shape=(part.rows.shape[0], width),
        )
        for part in parts
    ]
    signs = [np.where(part.labels > 0, 1.0, -1.0) for part in parts]
    return Text(rows[0], signs[0], rows[1], signs[1])


class Data(Protocol):
    """Training examples, and a score of weights: the higher the better."""

    @property
    def rows(self) -> "Rows":
        """One row per example."""

    @property
    def signs(self) -> "Labels":
        """-1 or 1 for each example."""

    def score(self, w: "Labels") -> float:
        """Return the score of weights."""


# -- the problems -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A loss and a norm; sigma as in the paper, whose squared loss is twice ours."""

    name: str
    squared: bool
    p: float
    k: int
    sigma_divisor: float  # because of the factor of the squared loss

    def learner(self, sigma: float) -> sl.LinearClassifier | sl.LinearRegressor:
        """Return the solver as a learner."""
        penalty = sl.penalties.LpSquared(sigma / self.sigma_divisor, self.p)
        if not self.squared:
            rule = sl.rules.PrimalGradient()
            loss = sl.losses.Logistic()
            return sl.LinearClassifier(rule, loss, penalty, fit_intercept=False, batch=self.k)
        # r(w*) <= F(0): least squares need this ball
        rule = sl.rules.PrimalGradient(math.sqrt(2.0 / sigma))
        return sl.LinearRegressor(
            rule, sl.losses.Squared(), penalty, fit_intercept=False, batch=self.k
        )

    def objective(self, sigma: float, rows: "Rows", signs: "Labels") -> Objective:
        """Return the objective [Zhu09] (7) with its gradient, as a function of w."""
        p = self.p

        def value(w: "Labels") -> tuple[float, "Labels"]:
            scores: Labels = np.asarray(rows @ w)
            if self.squared:
                loss, slope = float(np.square(scores - signs).mean()), 2.0 * (scores - signs)
            else:
                loss = float(np.logaddexp(0.0, -signs * scores).mean())
                slope = -signs * expit(-signs * scores)
            size = np.abs(w)
            total = float((size**p).sum())
            penalty = sigma / (2.0 * (p - 1.0)) * total ** (2.0 / p)
            bend = sigma / (p - 1.0) * (total ** (2.0 / p - 1.0) if total else 0.0)
            pull = bend * np.sign(w) * size ** (p - 1.0)
            return loss + penalty, np.asarray(rows.T @ slope) / len(signs) + pull

        return value


L2_LOGISTIC = Kind("l2 logistic", squared=False, p=2.0, k=1, sigma_divisor=1.0)
L18_LOGISTIC = Kind("l1.8 logistic", squared=False, p=1.8, k=300, sigma_divisor=1.0)
L2_SQUARES = Kind("l2 least squares", squared=True, p=2.0, k=1, sigma_divisor=2.0)
KINDS = (L2_LOGISTIC, L18_LOGISTIC, L2_SQUARES)


# -- the solvers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trace:
    """Steps, their CPU seconds, and the score of the weights after them."""

    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, steps: int, seconds: float, value: float) -> None:
        """Add a measurement."""
        self.steps.append(steps)
        self.seconds.append(seconds)
        self.values.append(value)

    def reached(self, goal: float) -> tuple[float, float]:
        """Return steps and seconds until the goal, infinite if it was not reached."""
        for steps, seconds, value in zip(self.steps, self.seconds, self.values, strict=True):
            if value >= goal:
                return float(steps), seconds
        return math.inf, math.inf


def stochastic(kind: Kind, sigma: float, data: Data, m: int, limit: int, seed: int) -> Trace:
    """Run the solver on examples drawn from m of the data, chosen by the seed."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(data.signs))[:m]
    model = kind.learner(sigma)
    trace = Trace()
    done, look, seconds = 0, min(max(FIRST // kind.k, 1), limit), 0.0
    while done < limit:
        picks = some[rng.integers(m, size=(look - done) * kind.k)]
        rows, signs = data.rows[picks], data.signs[picks]
        began = time.process_time()
        model.learn_rows(rows, signs)
        seconds += time.process_time() - began
        done = look
        trace.add(done, seconds, data.score(model.coef(data.rows.shape[1])))
        look = min(max(done + 1, int(done * GROWTH)), limit)
    return trace


def lbfgs(kind: Kind, sigma: float, data: Data, m: int, seed: int) -> tuple[Trace, "Labels"]:
    """Run scipy's L-BFGS on m of the data to convergence; return its trace and final weights."""
    some = np.random.default_rng(seed).permutation(len(data.signs))[:m]
    trace = Trace()
    looking = 0.0
    began = time.process_time()

    def look(xk: "Labels") -> None:
        nonlocal looking
        now = time.process_time()
        trace.add(len(trace.steps) + 1, now - began - looking, data.score(xk))
        looking += time.process_time() - now

    objective = kind.objective(sigma, data.rows[some], data.signs[some])
    start = np.zeros(data.rows.shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", callback=look)
    return trace, found.x


def quantile(values: Sequence[float], share: float = 0.5) -> float:
    """Return a quantile that is one of the values, which may be infinite."""
    return sorted(values)[int(share * (len(values) - 1))]
