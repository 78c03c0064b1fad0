"""The best fixed model of a sample of a stream, re-solved as the stream grows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from streamlearn.hindsight import Problem
from streamlearn.hindsight.auto import auto, supporting_methods
from streamlearn.hindsight.bounds import dual_bound
from streamlearn.hindsight.inner import inner
from streamlearn.losses import Loss, VectorLoss
from streamlearn.penalties import L2, Penalty, Zero
from streamlearn.regret.reservoir import gather_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array
    from streamlearn.hindsight import Solution, Step

# Without a penalty the problem may have no solution. A small L2 penalty gives it one, and the
# bracket then holds against all u of norm at most RADIUS_FACTOR times its norm. On a sample its
# strength is 1 / rows, as for a normal prior with variance 1: with less, the comparator would
# overfit the sample and be worse on the stream than the learner.
SURROGATE_L2 = 1e-6
RADIUS_FACTOR = 2.0


@dataclass(frozen=True)
class ComparatorTask:
    """The learner's objective, which the comparator minimizes."""

    loss: Loss | VectorLoss
    penalty: Penalty
    intercept: str  # "none", "free" or "inside"
    outputs: int = 1

    def __post_init__(self) -> None:
        # Canonical, so that equal problems compare equal however they are written.
        object.__setattr__(self, "penalty", self.penalty.canonical())

    @property
    def unpenalized(self) -> bool:
        """Whether Psi is 0 everywhere."""
        return isinstance(self.penalty, Zero)


@dataclass(frozen=True)
class Sample:
    """All rows of a stream of `events` events, or a uniform sample of them."""

    X: Any
    y: Array
    weights: Array
    events: float

    @property
    def complete(self) -> bool:
        """Whether the sample has all events."""
        return len(self.y) == self.events

    @property
    def scale(self) -> float:
        """The factor from a mean over these rows to a sum over all events."""
        return self.events * float(self.weights.mean())

    def part(self, rows: Array) -> Sample:
        """Return some of the rows."""
        return Sample(self.X[rows], self.y[rows], self.weights[rows], self.events)

    def widened_for(self, comparator: Comparator | None) -> Sample:
        """Return the sample with all features of a comparator, whose own rows may be replaced."""
        if comparator is None or comparator.solution.w.shape[-1] <= self.X.shape[1]:
            return self
        shape = (self.X.shape[0], comparator.solution.w.shape[-1])
        X = scipy.sparse.csr_array((self.X.data, self.X.indices, self.X.indptr), shape=shape)
        return Sample(X, self.y, self.weights, self.events)


@dataclass(frozen=True)
class Comparator:
    """A fixed model, and what was proved when it was solved."""

    solution: Solution
    events: float
    lower_bound: float  # on the objective of those events
    radius: float


def sample_from_snapshot(rows: dict[str, Any], events: float, task: ComparatorTask) -> Sample:
    """Return the rows of a snapshot as a matrix; column 0 is an intercept inside the penalty."""
    rows = gather_rows(rows)
    slots, values = rows["slots"], rows["values"]
    ends = np.concatenate([[0], np.cumsum(rows["lengths"], dtype=np.int64)])
    if task.intercept == "inside":
        slots = np.insert(slots + 1, ends[:-1], 0)
        values = np.insert(values, ends[:-1], 1.0)
        ends = ends + np.arange(len(ends))
    columns = int(slots.max(initial=0)) + 1
    X = scipy.sparse.csr_array((values, slots, ends), shape=(len(ends) - 1, columns))
    labels = rows["labels"]
    multitarget = task.loss.kind == "multitarget"
    return Sample(X, labels if multitarget else labels[:, 0], rows["weights"], events)


def hindsight_problem(sample: Sample, task: ComparatorTask) -> Problem:
    """Return the mean problem, whose objective times `sample.scale` estimates the sum."""
    share = sample.events / sample.scale
    strength = SURROGATE_L2 if sample.complete else max(SURROGATE_L2, 1.0 / len(sample.y))
    penalty = L2(strength * share) if task.unpenalized else scaled(task.penalty, share)
    X = sample.X
    # The solvers accept slots in any order.
    index = X.indices if X.indices.dtype == np.int32 else X.indices.astype(np.int64, copy=False)
    X = scipy.sparse.csr_array((X.data, index, X.indptr), shape=X.shape)
    return Problem(
        X,
        np.ascontiguousarray(sample.y),
        task.loss,
        penalty,
        weights=sample.weights,
        fit_intercept=task.intercept == "free",
        outputs=task.outputs,
    )


def scaled(penalty: Penalty, factor: float) -> Penalty:
    """Return Psi times a factor, for Ball and penalties whose parameters are strengths."""
    if factor == 1.0 or penalty.l1 == penalty.l2 == 0.0:
        return penalty  # 0 inside a ball and infinite outside it, whatever the factor
    strengths = {name: value * factor for name, value in penalty.params.items()}
    return type(penalty)(**strengths)


def why_unsolvable(task: ComparatorTask) -> str | None:
    """Return why no method solves the task; None if one does."""
    if task.unpenalized:
        task = ComparatorTask(task.loss, L2(1.0), task.intercept, task.outputs)
    probe = scipy.sparse.csr_array((np.ones(1), np.zeros(1, np.int32), [0, 1]), shape=(1, 1))
    # A label for the probe: targets, the first class, or a number.
    several = (1, task.outputs) if task.loss.kind == "multitarget" else 1
    y = np.zeros(several) if isinstance(task.loss, VectorLoss) else np.ones(1)
    if supporting_methods(hindsight_problem(Sample(probe, y, np.ones(1), 1.0), task)):
        return None
    return (
        f"no hindsight method solves {task.loss!r} with {task.penalty!r}; "
        "use L2, L1 or ElasticNet with a strength > 0"
    )


def solve_comparator(
    sample: Sample,
    task: ComparatorTask,
    before: Comparator | None,
    *,
    gap: float,
    seconds: float,
    share: float = 1.0,
    cancelled: Callable[[], bool] = lambda: False,
) -> Comparator:
    """Solve for the best fixed model, warm from `before`, within a time and a share of a core."""
    woke = time.monotonic()
    until = woke + seconds
    stopped = False
    problem = hindsight_problem(sample.widened_for(before), task)

    def throttle(_step: Step) -> bool:
        nonlocal woke, stopped
        now = time.monotonic()
        if share < 1.0:
            time.sleep(max(0.0, min((now - woke) * (1.0 / share - 1.0), until - now)))
            woke = time.monotonic()
        stopped = now >= until or cancelled()
        return stopped

    start = None if before is None else before.solution
    solution = auto(problem, gap=gap, start=start, callback=throttle)
    if solution.interrupted and not stopped:
        raise KeyboardInterrupt  # the solver stopped at Ctrl-C; the caller must stop too
    radius = math.inf
    lower_bound = solution.lower_bound
    if task.unpenalized:
        radius = RADIUS_FACTOR * math.sqrt(inner(solution.w.ravel(), solution.w.ravel()))
        lower_bound = max(lower_bound - surrogate_cost(problem, radius), problem.lowest)
    return Comparator(solution, sample.events, sample.scale * lower_bound, radius)


def surrogate_cost(problem: Problem, radius: float) -> float:
    """Return the largest value in the ball of the L2 penalty that replaces a missing penalty."""
    return 0.5 * problem.penalty.l2 * radius * radius


def objective_and_bound(
    sample: Sample, task: ComparatorTask, comparator: Comparator
) -> tuple[float, float]:
    """Return the comparator's objective on the current sample, and a lower bound on all others.

    The comparator may have been solved on an earlier sample.
    """
    problem = hindsight_problem(sample.widened_for(comparator), task)
    w = problem.start(comparator.solution)
    value = problem.risk.value_and_gradient(w)[0]
    bound = dual_bound(problem, w)
    if task.unpenalized:
        bound -= surrogate_cost(problem, comparator.radius)
    else:
        value += problem.penalty.value(problem.penalized(w))
    total = sample.scale * max(bound, problem.lowest)
    if comparator.events == sample.events:
        total = max(total, comparator.lower_bound)
    elif sample.complete:
        # The bound for the first events holds; the others have at least their lowest losses.
        later = slice(int(comparator.events), None)
        rest = lowest_loss(task, sample.y[later], sample.weights[later])
        total = max(total, comparator.lower_bound + rest)
    else:
        # On samples it is an estimate anyway: scale the bound of the earlier sample, because the
        # dual bound at weights that are not optimal for the current one is weak.
        total = max(total, comparator.lower_bound * sample.events / comparator.events)
    return sample.scale * value, min(total, sample.scale * value)


def lowest_loss(task: ComparatorTask, y: Array, weights: Array) -> float:
    """Return the sum of the lowest values of the losses."""
    if isinstance(task.loss, Loss):
        return inner(weights, task.loss.lowest(y))
    return -inner(weights, task.loss.conjugate(np.zeros((len(y), task.outputs)), y))


def estimate_objective(
    sample: Sample, task: ComparatorTask, comparator: Comparator
) -> tuple[float, float]:
    """Estimate the objective on a sample that was not fitted, with its standard error."""
    problem = hindsight_problem(sample.widened_for(comparator), task)
    w = problem.start(comparator.solution)
    losses = sample.weights * np.asarray(task.loss.value(problem.row_risk.scores(w), sample.y))
    m = len(losses)
    total = sample.events * float(losses.mean())
    if not task.unpenalized:
        total += sample.events * task.penalty.value(problem.penalized(w))
    correction = math.sqrt(max(0.0, 1.0 - m / sample.events))
    return total, sample.events * float(losses.std(ddof=1)) / math.sqrt(m) * correction
