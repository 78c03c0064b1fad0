"""The bundle method over lambda and over m, its gap, shards and losses ([Teo07] section 5).

Soft margins and epsilon-insensitive regression compared with scikit-learn's liblinear, to the same
gap; rankings, ROC area and ordinal regression on synthetic queries; two shards and one.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, LinearSVR

import streamlearn as sl
from benchmarks.data import Source, load
from benchmarks.papers.finding import Finding, plain
from benchmarks.papers.structured import queries
from streamlearn.hindsight import Solution, solve
from streamlearn.hindsight.structured import multivariate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.data import Labels, Rows

GAP = 1e-3
EPSILON = 0.1
LIMIT = 300  # iterations of a bundle method
LAMBDAS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 3e-6)
TOLERANCES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5)
ALL = 10**9
ROWS = 200_000  # of covtype


@dataclass(frozen=True)
class Task:
    """Rows, labels, a loss, and optionally the query of each row."""

    name: str
    rows: "Rows"
    labels: "Labels"
    loss: Any
    groups: Any = None

    def solve(
        self, l2: float, method: str = "bundle", threads: int = 1, gap: float = GAP
    ) -> Solution:
        """Solve the task by a bundle method."""
        return solve(
            self.rows,
            self.labels,
            self.loss,
            sl.penalties.L2(l2),
            method=method,
            gap=gap,
            max_iter=LIMIT,
            groups=self.groups,
            threads=threads,
        )

    def first(self, m: int) -> "Task":
        """Return the task with the first m rows."""
        return Task(self.name, self.rows[:m], self.labels[:m], self.loss)

    def objective(self, w: "Labels", l2: float) -> float:
        """Return J(w), for losses of single rows."""
        return float(self.loss.value(self.rows @ w, self.labels).mean() + 0.5 * l2 * w @ w)


@dataclass(frozen=True)
class Point:
    """The result of a run: seconds, iterations, objective and lower bound."""

    seconds: float
    iterations: int
    objective: float
    bound: float = -np.inf


def timed(run: Callable[[], Solution], clock: Callable[[], float] = time.process_time) -> Point:
    """Time one run, by default in CPU time, which other programs affect little."""
    began = clock()
    found = run()
    seconds = clock() - began
    return Point(seconds, found.iterations, found.objective, found.lower_bound)


def liblinear(task: Task, l2: float, lowest: float) -> Point:
    """Run liblinear by scikit-learn, with the loosest tolerance that reaches the gap."""
    C = 1.0 / (l2 * len(task.labels))
    options = {"C": C, "fit_intercept": False, "max_iter": 20_000}
    for tolerance in TOLERANCES:
        model: LinearSVR | LinearSVC
        if task.name.startswith("regression"):
            model = LinearSVR(epsilon=EPSILON, tol=tolerance, **options)
        else:
            model = LinearSVC(loss="hinge", tol=tolerance, **options)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(task.rows, task.labels)
        seconds = time.process_time() - began
        objective = task.objective(np.ravel(model.coef_), l2)
        if objective <= lowest + GAP:
            break
    return Point(seconds, 0, objective)


# -- data -------------------------------------------------------------------------------------


def shuffled(name: str, file: str, data: Path, loss: Any) -> Task:
    """Load a data set in random order, with 32-bit indices for liblinear."""
    found = load(Source(name, file, shuffled=True), data, ALL)
    rows = found.rows
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    labels = found.labels
    if loss.kind == "regression":
        labels = (labels - labels.mean()) / labels.std()
    else:
        labels = np.where(labels > 0, 1.0, -1.0)
    return Task(name, rows, labels, loss)


def query_tasks(number: int, documents: int, features: int) -> list[Task]:
    """Return rankings, ordinal regression and ROC area on the same synthetic queries."""
    asked = queries(number, documents, features)
    rows = sparse.csr_array(asked.rows)
    return [
        Task("ranking, NDCG", rows, asked.grades, multivariate.NDCG(), asked.groups),
        Task("ordinal regression", rows, asked.grades, multivariate.OrdinalRegression()),
        Task("ROC area", rows, np.where(asked.grades > 0, 1.0, 0.0), multivariate.ROCArea()),
    ]


def generated() -> list[Task]:
    """Generate a classification and a regression."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1_500, 10))
    scores: Labels = rows @ (0.3 * rng.normal(size=10)) + 0.3 * rng.normal(size=1_500)
    signs = np.where(scores > 0, 1.0, -1.0)
    sparse_rows, regression = sparse.csr_array(rows), sl.losses.EpsilonInsensitive(EPSILON)
    return [
        Task("classification", sparse_rows, signs, sl.losses.Hinge()),
        Task("regression", sparse_rows, scores, regression),
    ]


# -- the experiments ----------------------------------------------------------------------------

SIDES = ("bundle", "bundle-ls", "liblinear")
OverLambda: TypeAlias = dict[tuple[str, str, float], Point]  # task, side, lambda


@dataclass
class Measurements:
    """All measurements."""

    over_lambda: OverLambda = field(default_factory=dict)
    over_m: dict[int, Point] = field(default_factory=dict)
    gaps: dict[float, list[float]] = field(default_factory=dict)
    shards: dict[str, tuple[Point, Point]] = field(default_factory=dict)
    structured: OverLambda = field(default_factory=dict)


def over_lambda(task: Task, lambdas: Sequence[float]) -> OverLambda:
    """Measure two bundle methods and liblinear (sections 5.3 and 5.4)."""
    found: OverLambda = {}
    for l2 in lambdas:
        for side in SIDES[:2]:
            found[task.name, side, l2] = timed(partial(task.solve, l2, side))
        lowest = max(found[task.name, side, l2].bound for side in SIDES[:2])
        found[task.name, "liblinear", l2] = liblinear(task, l2, lowest)
    return found


def gaps(task: Task, lambdas: Sequence[float]) -> dict[float, list[float]]:
    """Return the gap after each iteration (section 5.7)."""
    return {l2: [step.gap for step in task.solve(l2, gap=1e-5).history] for l2 in lambdas}


def sharded(task: Task, l2: float, tries: int) -> tuple[Point, Point]:
    """Measure one shard and two, in wall time, the best of several tries (section 5.6).

    For the plain method, whose passes are sharded; a line search is single-threaded.
    """
    runs = [partial(task.solve, l2, "bundle", n) for n in (1, 2)]
    each = [[timed(run, time.perf_counter) for run in runs] for _ in range(tries)]
    one, two = (min(points, key=lambda p: p.seconds) for points in zip(*each, strict=True))
    return one, two


def measured(
    tasks: Sequence[Task], whole: Task, asked: Sequence[Task], *, quick: bool
) -> Measurements:
    """Run all measurements; `whole` is for the scaling with m and the shards."""
    found = Measurements()
    lambdas = (1e-1, 1e-3) if quick else LAMBDAS
    for task in tasks:
        found.over_lambda |= over_lambda(task, lambdas)
    sizes = [len(whole.labels) // 2**k for k in range(2 if quick else 7, -1, -1)]
    strength = 1e-3 if quick else 1e-5
    for m in sizes:
        found.over_m[m] = timed(partial(whole.first(m).solve, strength, "bundle-ls"))
    found.gaps = gaps(tasks[0], (1e-1, 1e-3) if quick else (1e-1, 1e-2, 1e-3, 1e-4))
    for task in (whole, *asked):
        l2 = 1e-2 if quick else 1e-4
        found.shards[task.name] = sharded(task, l2, 1 if quick else 3)
    for task in asked:
        for l2 in lambdas if quick else LAMBDAS[1:5]:
            for side in SIDES[:2]:
                found.structured[task.name, side, l2] = timed(partial(task.solve, l2, side))
    return found


def rows_of(found: Measurements) -> Iterator[list[str]]:
    """Generate the lines of the table."""

    def shown(point: Point | None) -> str:
        if point is None:
            return ""
        if not point.iterations:
            return f"{point.seconds:.3f}"
        open_gap = point.objective - point.bound
        unsolved = f", gap {open_gap:.1g}" if open_gap > GAP else ""
        return f"{point.seconds:.3f} ({point.iterations}{unsolved})"

    solved = found.over_lambda | found.structured
    for name, l2 in dict.fromkeys((name, l2) for name, _, l2 in solved):
        sides = [shown(solved.get((name, side, l2))) for side in SIDES]
        yield [f"{name}, lambda = {l2:g}", *sides]
    for m, point in found.over_m.items():
        yield [f"the first {m} rows", "", shown(point), ""]
    for name, (one, two) in found.shards.items():
        yield [f"{name}, one shard, wall", shown(one), "", ""]
        yield [f"{name}, two shards, wall", shown(two), "", ""]


def claims(found: Measurements) -> dict[str, bool]:
    """Check the claims of section 5, except those about time, which is noisy."""
    counts = [len(values) for _, values in sorted(found.gaps.items())]
    small, large = min(found.over_m), max(found.over_m)
    solved = found.over_lambda | found.structured
    names = {name for name, _, _ in solved}
    return {
        "the smaller lambda, the more iterations": counts == sorted(counts, reverse=True),
        "liblinear's optimum is above the certified bound, and within the gap": all(
            found.over_lambda[name, "bundle-ls", l2].bound - 1e-9
            <= point.objective
            <= found.over_lambda[name, "bundle-ls", l2].objective + GAP
            for (name, side, l2), point in found.over_lambda.items()
            if side == "liblinear"
        ),
        "bundle-ls reaches the gap for every lambda and every loss": all(
            point.objective - point.bound <= GAP
            for (_, side, _), point in solved.items()
            if side == "bundle-ls"
        ),
        "bundle-ls needs no more iterations than bundle, over all lambdas": all(
            sum(p.iterations for (n, s, _), p in solved.items() if (n, s) == (name, "bundle-ls"))
            <= sum(p.iterations for (n, s, _), p in solved.items() if (n, s) == (name, "bundle"))
            for name in names
        ),
        "fewer iterations with more data, at a fixed lambda": found.over_m[large].iterations
        <= found.over_m[small].iterations,
        "two shards find the same objective as one": all(
            abs(one.objective - two.objective) <= GAP for one, two in found.shards.values()
        ),
    }


def picture(found: Measurements) -> Callable[["Figure"], None]:
    """Draw Figures 3 to 7: time over lambda for each task, time over m, gaps, and shards."""
    solved = found.over_lambda | found.structured
    names = list(dict.fromkeys(name for name, _, _ in solved))

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(2, 4).ravel()
        for axis, name in zip(axes, names, strict=False):
            for side in SIDES:
                points = {l2: p for (n, s, l2), p in solved.items() if (n, s) == (name, side)}
                if points:
                    axis.loglog(
                        list(points), [p.seconds for p in points.values()], "o-", label=side
                    )
            axis.set(title=name, xlabel="lambda", ylabel="CPU seconds")
            plain(axis.yaxis)
            axis.legend(fontsize=7)
        over, converging, sharded = axes[-3:]
        over.loglog(list(found.over_m), [p.seconds for p in found.over_m.values()], "o-")
        plain(over.yaxis)
        over.set(title="bundle-ls over m", xlabel="rows m", ylabel="CPU seconds")
        for l2, values in found.gaps.items():
            converging.loglog(range(1, len(values) + 1), values, label=f"lambda = {l2:g}")
        converging.set(title=f"bundle, {names[0]}", xlabel="iterations", ylabel="gap")
        converging.legend(fontsize=7)
        draw_shards(sharded)

    def draw_shards(axis: "Axes") -> None:
        ratios = [one.seconds / two.seconds for one, two in found.shards.values()]
        axis.barh(range(len(ratios)), ratios, height=0.5)
        axis.set_yticks(range(len(ratios)), list(found.shards), fontsize=7)
        axis.axvline(1.0, color="0.5", lw=0.8)
        axis.set(title="bundle: speedup of two shards", xlabel="wall time ratio")

    return draw


def run(data: Path, *, quick: bool = False) -> Finding:
    """Run on a9a, bike sharing, covtype and synthetic queries, or on small synthetic data."""
    if quick:
        tasks = generated()
        found = measured(tasks, tasks[0], query_tasks(20, 10, 6), quick=True)
    else:
        hinge = sl.losses.Hinge()
        insensitive = sl.losses.EpsilonInsensitive(EPSILON)
        tasks = [
            shuffled("a9a", "a9a.svm.gz", data, hinge),
            shuffled("regression, bike", "bike_sharing_hour.reg.svm.gz", data, insensitive),
        ]
        whole = shuffled("covtype", "covtype.binary.scale01.svm.gz", data, hinge).first(ROWS)
        found = measured(tasks, whole, query_tasks(300, 30, 60), quick=False)
    return Finding(
        title=f"[Teo07] section 5: the bundle method to a gap of {GAP:g}",
        head=["problem", *(f"{side}, CPU s (iterations)" for side in SIDES)],
        rows=list(rows_of(found)),
        claims=claims(found),
        draw=picture(found),
        size=(16.0, 7.0),
    )
