"""The l1 problems of `benchmarks.hindsight`, and the solvers of other libraries for them.

All get the same arrays; a peer's tolerance is searched, because each has its own meaning. celer and
skglm are compiled before they are timed. liblinear penalizes the intercept, and celer has none for
the logistic loss: for both it is the weight of a large constant column.
"""

import importlib
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import optimize, sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import streamlearn as sl
from benchmarks.data import Source, load
from streamlearn.hindsight import Problem, Solution, solve
from streamlearn.hindsight.bounds import dual_bound

if TYPE_CHECKING:
    from streamlearn.losses import Loss

Fit: TypeAlias = Callable[[float], tuple[Any, float]]  # a tolerance -> weights and intercept

GAP_SHARE = 1e-4  # of the optimum
MARGINS = (sl.losses.Logistic(), sl.losses.SquaredHinge())
DISTANCES = (sl.losses.Squared(), sl.losses.Huber())
SHARES = (0.1, 0.01, 0.001)  # of the least l1 at which all weights are 0
CONSTANTS = (10.0, 100.0)
TOLERANCES: tuple[float, ...] = tuple(10.0 ** (-k / 2) for k in range(15))
PAIRS = ((3, 8), (4, 9))  # of digits
ALL_ROWS = 10**9
COMPILED = 200  # rows on which peers are compiled
SKGLM: dict[str, tuple[str, tuple[float, ...], str]] = {  # its losses, and the solver for each
    "Logistic": ("Logistic", (), "ProxNewton"),
    "Squared": ("Quadratic", (), "AndersonCD"),
    "Huber": ("Huber", (1.0,), "AndersonCD"),
}


@dataclass(frozen=True)
class SparseTask:
    """A loss with l1 on a data set, with an intercept."""

    name: str
    rows: Any
    labels: Any
    loss: "Loss"
    strength: float
    optimum: list[float]  # the objective of the best solution so far, if there is one

    def solve(self, share: float) -> Solution:
        """Solve to a gap of this share of the optimum."""
        if not self.optimum:
            problem = self.problem()
            self.optimum.append(problem.objective(problem.start()))
        found = solve(
            self.rows,
            self.labels,
            self.loss,
            sl.penalties.L1(self.strength),
            fit_intercept=True,
            gap=share * self.optimum[0],
        )
        self.optimum[:] = [found.objective]
        return found

    @property
    def total_strength(self) -> float:
        """The strength beside a sum of losses instead of their mean."""
        return self.strength * len(self.labels)

    def problem(self) -> Problem:
        """Return the problem that all solve."""
        penalty = sl.penalties.L1(self.strength)
        return Problem(self.rows, self.labels, self.loss, penalty, fit_intercept=True)

    def certifies(self, w: Any, intercept: float, *, optimum: Solution) -> bool:
        """Return whether the solution proves that its gap is small enough."""
        problem, flat = self.problem(), np.append(w, intercept)
        gap = problem.objective(flat) - dual_bound(problem, flat)
        return gap <= GAP_SHARE * optimum.objective

    def reaches(self, w: Any, intercept: float, *, optimum: Solution) -> bool:
        """Return whether the objective is close enough to the optimum."""
        objective = self.problem().objective(np.append(w, intercept))
        return objective - optimum.lower_bound <= GAP_SHARE * optimum.objective

    def part(self, rows: int) -> "SparseTask":
        """Return the task of the first rows, on which peers are compiled."""
        return replace(self, rows=self.rows[:rows], labels=self.labels[:rows])

    def loosest(
        self, peer: str, optimum: Solution, limit: int
    ) -> tuple[float | None, float | None]:
        """Return the loosest tolerances of a peer that certify the gap, and that reach it."""
        peers_of(self.part(COMPILED))[peer](1.0)
        fit, reached = peers_of(self)[peer], None
        for tolerance in TOLERANCES:
            solved = in_child(partial(fit, tolerance), limit)
            if solved is None:
                break
            solution, _ = solved
            if reached is None and self.reaches(*solution, optimum=optimum):
                reached = tolerance
            if self.certifies(*solution, optimum=optimum):
                return tolerance, reached
        return None, reached


def in_child(run: Callable[[], Any], limit: int = 1_000) -> tuple[Any, float] | None:
    """Return the result and the seconds of CPU, or None if they would be more than `limit`.

    Compiled code cannot be interrupted, so it runs in a forked process.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        began = time.process_time()
        result = run()
        there.send((result, time.process_time() - began))

    child = context.Process(target=work)
    child.start()
    there.close()
    try:
        found: tuple[Any, float] = here.recv()
    except EOFError:
        return None
    finally:
        child.join()
    return found


def sparse_tasks(data: Path) -> Iterator[SparseTask]:
    """Generate the problems of all data sets."""
    for name, rows, labels in _sets(data):
        for loss in DISTANCES if name == "houses" else MARGINS:
            top = _largest_slope(loss, rows, labels)
            for share in SHARES:
                title = f"{name}, {type(loss).__name__}, {share:g}"
                yield SparseTask(title, rows, labels, loss, share * top, [])


def _sets(data: Path) -> Iterator[tuple[str, Any, Any]]:
    for source in (Source("a9a", "a9a.svm.gz"), Source("rcv1v2_ccat", "rcv1v2_ccat.svm.gz")):
        examples = load(source, data, ALL_ROWS)
        yield source.name, _short(examples.rows), np.where(examples.labels > 0, 1.0, -1.0)
    digits = load(Source("mnist", "mnist.svm.gz"), data, ALL_ROWS)
    for one, other in PAIRS:
        chosen = np.isin(digits.labels, (one, other))
        signs = np.where(digits.labels[chosen] == one, 1.0, -1.0)
        yield f"mnist {one} or {other}", _short(digits.rows[chosen] / 255.0), signs
    houses = load(Source("houses", "houses_cadata.reg.svm.gz"), data, ALL_ROWS)
    yield "houses", houses.rows.toarray(), houses.labels / 1e5


def _short(rows: Any) -> Any:
    """Return the rows with 32-bit indices: liblinear supports no others."""
    rows = sparse.csr_array(rows)
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def _largest_slope(loss: "Loss", rows: Any, labels: Any) -> float:
    """Return the least l1 at which all weights are 0."""

    def constant(b: float) -> float:
        return float(loss.value(np.full(len(labels), b), labels).mean())

    b = float(optimize.minimize_scalar(constant, bracket=(-1.0, 1.0)).x)
    slopes = loss.slope(np.full(len(labels), b), labels)
    return float(np.abs(rows.T @ slopes).max()) / len(labels)


def peers_of(task: SparseTask) -> dict[str, Fit]:
    """Return the fits of other libraries that solve this task."""
    peers: dict[str, Fit] = {}
    if isinstance(task.loss, sl.losses.Logistic | sl.losses.SquaredHinge):
        peers |= {f"liblinear, {c:g}": partial(liblinear, task, c) for c in CONSTANTS}
    if isinstance(task.loss, sl.losses.Logistic):
        peers["celer"] = partial(celer_logistic, task)
    if isinstance(task.loss, sl.losses.Squared):
        peers["celer"] = partial(celer_lasso, task)
    if type(task.loss).__name__ in SKGLM:
        peers["skglm"] = partial(skglm, task)
    return peers


def liblinear(task: SparseTask, constant: float, tolerance: float) -> tuple[Any, float]:
    """Fit liblinear by scikit-learn; the intercept is the weight of a constant column."""
    common: dict[str, Any] = {"intercept_scaling": constant, "tol": tolerance, "max_iter": 10_000}
    if isinstance(task.loss, sl.losses.Logistic):
        C = 1.0 / task.total_strength
        model: Any = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", **common)
    else:
        C = 0.5 / task.total_strength  # its loss has no factor 1/2
        model = LinearSVC(C=C, penalty="l1", dual=False, **common)
    return fitted(task, model)


def celer_logistic(task: SparseTask, tolerance: float) -> tuple[Any, float]:
    """Fit celer's logistic regression, with a constant column because it has no intercept."""
    rows: Any = np.full((len(task.labels), 1), CONSTANTS[0])
    rows = sparse.hstack([task.rows, sparse.csr_array(rows)], format="csr")
    model = importlib.import_module("celer").LogisticRegression(
        C=1.0 / task.total_strength, tol=tolerance, fit_intercept=False, max_iter=100
    )
    w = np.ravel(model.fit(rows, task.labels).coef_)
    return w[:-1], CONSTANTS[0] * float(w[-1])


def celer_lasso(task: SparseTask, tolerance: float) -> tuple[Any, float]:
    """Fit celer's Lasso."""
    return fitted(task, importlib.import_module("celer").Lasso(task.strength, tol=tolerance))


def skglm(task: SparseTask, tolerance: float) -> tuple[Any, float]:
    """Fit skglm's solver for the loss; its tolerance is one of slopes."""
    module = importlib.import_module("skglm")
    datafit, parameters, solver = SKGLM[type(task.loss).__name__]
    return fitted(
        task,
        module.GeneralizedLinearEstimator(
            getattr(importlib.import_module("skglm.datafits"), datafit)(*parameters),
            importlib.import_module("skglm.penalties").L1(task.strength),
            getattr(importlib.import_module("skglm.solvers"), solver)(
                tol=tolerance * task.strength, fit_intercept=True, max_iter=100
            ),
        ),
    )


def fitted(task: SparseTask, model: Any) -> tuple[Any, float]:
    """Return the weights and the intercept of a scikit-learn model."""
    model.fit(task.rows, task.labels)
    return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
