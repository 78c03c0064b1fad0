"""Speedup of mini-batches in iterations, compared with b / beta_b ([Takac13] section 5).

Support vector machines to a primal accuracy, by mini-batched Pegasos with tail averaging and by
three kinds of mini-batched SDCA; rows of norm 1. Duality gaps with a large batch.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

import streamlearn as sl
from benchmarks.data import CLASSIFICATION, load
from benchmarks.papers.finding import Finding
from streamlearn.hindsight import Problem, solve, spectral_bound
from streamlearn.hindsight.dual_steps import BatchSteps
from streamlearn.hindsight.spectral import beta

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.data import Labels, Rows

Point: TypeAlias = tuple[int, float, float]  # iterations, primal accuracy, duality gap
Trace: TypeAlias = Iterator[Point]

UPDATES = ("naive", "safe", "aggressive")
METHODS = ("Pegasos", *(f"SDCA {update}" for update in UPDATES))
GROWTH = 1.1  # of the iterations between two measurements
MAX_PASSES = 400  # passes over the data
GAP_PASSES = 100  # passes, of the gaps
NAIVE_PASSES = 40  # passes of the naive kind, which needs a few where it converges at all


@dataclass(frozen=True)
class Task:
    """Rows of norm 1, their labels, lambda, the target accuracy, and the batch sizes."""

    name: str
    rows: "Rows"
    signs: "Labels"
    l2: float
    accuracy: float
    batches: Sequence[int]
    norm: float = field(init=False)
    optimum: float = field(init=False)

    def __post_init__(self) -> None:
        problem = (self.rows, self.signs, sl.losses.Hinge(), sl.penalties.L2(self.l2))
        best = solve(*problem, method="sdca", gap=0.02 * self.accuracy)
        object.__setattr__(self, "optimum", best.lower_bound)
        object.__setattr__(self, "norm", spectral_bound(self.rows).sigma2 * len(self.signs))

    def beta(self, b: int) -> float:
        """Return beta_b ([Takac13] (11))."""
        return beta(b, len(self.signs), self.norm)


def unit(rows: "Rows") -> "Rows":
    """Divide rows by their norms; rows of zeros stay."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scales = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    scaled: Rows = sparse.csr_array(sparse.diags_array(scales) @ rows)
    return scaled


def measured_iterations(total: int) -> Iterator[int]:
    """Generate the iterations at which to measure: all at first, then fewer and fewer."""
    at = 1
    while at <= total:
        yield at
        at = max(at + 1, int(at * GROWTH))


def sdca(task: Task, b: int, update: str, total: int) -> Trace:
    """Run SDCA with batches of b; with b = 1 all updates are the paper's plain SDCA."""
    problem = Problem(task.rows, task.signs, sl.losses.Hinge(), sl.penalties.L2(task.l2))
    safe_beta = 1.0 if update == "naive" else task.beta(b)
    parts = (problem.matrix, sl.losses.Hinge(), problem.y, problem.weights, 0.0, task.l2)
    ascent = BatchSteps(*parts, size=b, update=update, safe_beta=safe_beta)
    ascent.begin()
    done = 0
    for look in measured_iterations(total):
        while done < look:
            # an epoch may end before the next measurement
            before = ascent.clock
            if ascent.run((look - done) * b):
                ascent.begin()
            done += ascent.clock - before
        ascent.measure(0, len(task.signs))
        primal, dual = ascent.values()
        yield done, primal - task.optimum, primal - dual


def pegasos(task: Task, b: int, total: int) -> Trace:
    """Run Pegasos on batches of b, tail averaged ([Takac13] Algorithm 1 and Theorem 1)."""
    learner = sl.LinearClassifier(
        sl.rules.Pegasos(project=False),
        sl.losses.Hinge(),
        sl.penalties.L2(task.l2),
        fit_intercept=False,
        batch=b,
        average="tail",
    )
    rng = np.random.default_rng(0)
    m, columns = task.rows.shape
    done = 0
    for look in measured_iterations(total):
        while done < look:
            count = min(look - done, max(m // b, 1))
            picks = rng.integers(m, size=count * b)
            learner.learn_rows(task.rows[picks], task.signs[picks])
            done += count
        w = learner.coef(columns)
        margins = task.signs * (task.rows @ w)
        primal = float(np.maximum(0.0, 1.0 - margins).mean() + 0.5 * task.l2 * w @ w)
        yield done, primal - task.optimum, math.nan


def needed(trace: Trace, accuracy: float) -> float:
    """Return the iterations until the accuracy is reached, infinite if it is not."""
    return next((float(done) for done, off, _ in trace if off <= accuracy), math.inf)


def trace(task: Task, method: str, b: int) -> Trace:
    """Run one method up to its limit."""
    passes = NAIVE_PASSES if method == "SDCA naive" else MAX_PASSES
    total = passes * max(len(task.signs) // b, 10)
    if method == "Pegasos":
        return pegasos(task, b, total)
    return sdca(task, b, method.removeprefix("SDCA "), total)


def generated() -> Task:
    """Generate correlated rows, for which large batches gain little and naive ones diverge."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 12)) + 1.2
    scores = rows @ rng.normal(size=12)
    signs = np.where(scores + 1.5 * rng.normal(size=600) > np.median(scores), 1.0, -1.0)
    return Task("generated", unit(sparse.csr_array(rows)), signs, 1e-3, 5e-3, (1, 8, 64, 300))


def real(data: Path) -> Iterator[Task]:
    """Load the two data sets."""
    sources = {source.name: source for source in CLASSIFICATION}
    for name, l2 in (("covtype.scale01", 1e-4), ("rcv1v2_ccat", 1e-4)):
        examples = load(sources[name], data)
        signs = np.where(examples.labels > 0, 1.0, -1.0)
        batches = (1, 4, 16, 64, 256, 1024, 4096)
        yield Task(name, unit(examples.rows), signs, l2, 1e-3, batches)


Iterations: TypeAlias = dict[tuple[str, int], float]
Gaps: TypeAlias = dict[str, list[Point]]


def measured(task: Task) -> Iterations:
    """Return the iterations of each method with each batch size."""
    return {
        (method, b): needed(trace(task, method, b), task.accuracy)
        for method in METHODS
        for b in task.batches
    }


def gaps(task: Task) -> Gaps:
    """Run each kind of SDCA with a batch that is too large for the naive one."""
    b = task.batches[-2]
    total = GAP_PASSES * len(task.signs) // b
    return {update: list(sdca(task, b, update, total)) for update in UPDATES}


def speedup(counts: Iterations, method: str, b: int) -> float:
    """Return how many times fewer iterations are needed than with single examples."""
    return counts[method, 1] / counts[method, b]


def lines(task: Task, counts: Iterations) -> Iterator[list[str]]:
    """Generate a line of the table for each batch size."""
    for b in task.batches:
        each = [f"{counts[m, b]:g} ({speedup(counts, m, b):.3g}x)" for m in METHODS]
        yield [task.name, str(b), f"{b / task.beta(b):.3g}", *each]


def claims(task: Task, counts: Iterations) -> dict[str, bool]:
    """Check what the paper says about its figures."""

    def holds(method: str, least: float) -> bool:
        return all(speedup(counts, method, b) >= least * b / task.beta(b) for b in task.batches)

    last = task.batches[-1]
    named = {
        "Pegasos gains half of b / beta_b or more": holds("Pegasos", 0.5),
        "safe SDCA gains half of b / beta_b or more": holds("SDCA safe", 0.5),
        "aggressive SDCA never needs more iterations than safe": all(
            counts["SDCA aggressive", b] <= 1.1 * counts["SDCA safe", b] for b in task.batches
        ),
    }
    if last * task.norm / len(task.signs) > 10.0:
        named["naive SDCA does not converge with the largest batch"] = math.isinf(
            counts["SDCA naive", last]
        )
    return {f"{task.name}: {claim}": true for claim, true in named.items()}


def picture(tasks: Sequence[tuple[Task, Iterations, Gaps]]) -> Callable[["Figure"], None]:
    """Draw speedups over b for each task, and the gaps of SDCA with a large batch."""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(1, 2 * len(tasks), squeeze=False)[0]
        for (task, counts, ways), left, right in zip(tasks, axes[::2], axes[1::2], strict=True):
            for k, method in enumerate(METHODS):
                there = [b for b in task.batches if math.isfinite(counts[method, b])]
                gains = [speedup(counts, method, b) for b in there]
                left.loglog(there, gains, "osv^"[k] + "-", label=method, ms=4, lw=1.2)
            bound = [b / task.beta(b) for b in task.batches]
            left.loglog(task.batches, bound, "k--", label="b / beta_b", lw=1.2)
            left.set(title=task.name, xlabel="b", ylabel="speedup in iterations")
            left.legend(fontsize=8)
            for k, (update, points) in enumerate(ways.items(), start=1):
                line = [p[0] for p in points], [p[2] for p in points]
                right.loglog(*line, color=f"C{k}", label=f"SDCA {update}", lw=1.2)
            right.set(title=f"{task.name}, b = {task.batches[-2]}", xlabel="iterations")
            right.set_ylabel("duality gap")
            right.legend(fontsize=8)

    return draw


def run(data: Path, *, quick: bool = False) -> Finding:
    """Measure speedups on covtype and rcv1v2_ccat, or on synthetic rows."""
    some = [generated()] if quick else real(data)
    tasks = [(task, measured(task), gaps(task)) for task in some]
    return Finding(
        title="[Takac13] section 5: iterations of mini-batches, and their speedup",
        head=["data", "b", "b / beta_b", *METHODS],
        rows=[line for task, counts, _ in tasks for line in lines(task, counts)],
        claims={
            name: true for task, counts, _ in tasks for name, true in claims(task, counts).items()
        },
        draw=picture(tasks),
        size=(9.0 * len(tasks), 4.0),
    )
