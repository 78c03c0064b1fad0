"""The best fixed model of a sample of a stream, solved again as the stream grows."""

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
from streamlearn.regret.reservoir import gathered

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.estimators.frames import Array
    from streamlearn.hindsight import Solution, Step

# Without a penalty the problem may have no solution. A little L2 gives it one, and the bracket
# then holds against all u of at most so many times its norm. On a sample it is one over the number
# of rows, as for weights that are thought of as normal with variance 1: with less the comparator
# would be that of the sample, and worse on the stream than the learner.
TRACE = 1e-6
REACH = 2.0


@dataclass(frozen=True)
class Task:
    """What is solved: the loss and penalty of a learner, and where its intercept is."""

    loss: Loss | VectorLoss
    penalty: Penalty
    intercept: str  # "none", "free" or "inside"
    outputs: int = 1

    def __post_init__(self) -> None:
        # however it is written, so that what is the same problem is equal
        object.__setattr__(self, "penalty", self.penalty.canonical())

    @property
    def unpenalised(self) -> bool:
        """Whether Psi is 0 everywhere."""
        return isinstance(self.penalty, Zero)


@dataclass(frozen=True)
class Sample:
    """Rows of a stream of `events` events; all of them, or a uniform sample."""

    X: Any
    y: Array
    weights: Array
    events: float

    @property
    def complete(self) -> bool:
        """Whether these are all events."""
        return len(self.y) == self.events

    @property
    def scale(self) -> float:
        """What a mean over these rows is multiplied with to stand for the sum over all events."""
        return self.events * float(self.weights.mean())

    def part(self, rows: Array) -> Sample:
        """Some of the rows."""
        return Sample(self.X[rows], self.y[rows], self.weights[rows], self.events)

    def as_wide_as(self, found: Found | None) -> Sample:
        """With all features that a solution knows: those it was found on may have been replaced."""
        if found is None or found.solution.w.shape[-1] <= self.X.shape[1]:
            return self
        shape = (self.X.shape[0], found.solution.w.shape[-1])
        X = scipy.sparse.csr_array((self.X.data, self.X.indices, self.X.indptr), shape=shape)
        return Sample(X, self.y, self.weights, self.events)


@dataclass(frozen=True)
class Found:
    """A fixed model and what it was when it was found."""

    solution: Solution
    events: float
    lower_bound: float  # on the sum over those events
    radius: float


def sample_of(rows: dict[str, Any], events: float, task: Task) -> Sample:
    """The rows of a snapshot as a matrix; an intercept inside the penalty is column 0."""
    rows = gathered(rows)
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


def problem_of(sample: Sample, task: Task) -> Problem:
    """The mean over the sample and the penalty's share, so that J times `scale` is the sum."""
    share = sample.events / sample.scale
    little = TRACE if sample.complete else max(TRACE, 1.0 / len(sample.y))
    penalty = L2(little * share) if task.unpenalised else scaled(task.penalty, share)
    X = sample.X
    # the solvers read rows as they lie, in whatever order the slots are
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
    """Psi times a factor, for L1, L2 and ElasticNet, whose parameters are strengths, and Ball."""
    if factor == 1.0 or penalty.l1 == penalty.l2 == 0.0:
        return penalty  # 0 inside a ball and infinite outside it, whatever the factor
    strengths = {name: value * factor for name, value in penalty.params.items()}
    return type(penalty)(**strengths)


def refusal(task: Task) -> str | None:
    """Why there is no best fixed model to compare with, if there is none."""
    if task.unpenalised:
        task = Task(task.loss, L2(1.0), task.intercept, task.outputs)
    probe = scipy.sparse.csr_array((np.ones(1), np.zeros(1, np.int32), [0, 1]), shape=(1, 1))
    # targets; the first class, however many are known yet; or a sign or number
    several = (1, task.outputs) if task.loss.kind == "multitarget" else 1
    y = np.zeros(several) if isinstance(task.loss, VectorLoss) else np.ones(1)
    if supporting_methods(problem_of(Sample(probe, y, np.ones(1), 1.0), task)):
        return None
    return (
        f"no hindsight method solves {task.loss!r} with {task.penalty!r}; "
        "with L2, L1 or ElasticNet of a strength > 0 there is one"
    )


def solved(
    sample: Sample,
    task: Task,
    before: Found | None,
    *,
    gap: float,
    seconds: float,
    share: float = 1.0,
    cancelled: Callable[[], bool] = lambda: False,
) -> Found:
    """The best fixed model, from the one before on, within a time and a share of a core."""
    woke = time.monotonic()
    until = woke + seconds
    enough = False
    problem = problem_of(sample.as_wide_as(before), task)

    def pause(_step: Step) -> bool:
        nonlocal woke, enough
        now = time.monotonic()
        if share < 1.0:
            time.sleep(max(0.0, min((now - woke) * (1.0 / share - 1.0), until - now)))
            woke = time.monotonic()
        enough = now >= until or cancelled()
        return enough

    start = None if before is None else before.solution
    found = auto(problem, gap=gap, start=start, callback=pause)
    if found.interrupted and not enough:
        raise KeyboardInterrupt  # a solver ends at Ctrl-C; whoever asked for it is to end as well
    radius = math.inf
    lower_bound = found.lower_bound
    if task.unpenalised:
        radius = REACH * math.sqrt(inner(found.w.ravel(), found.w.ravel()))
        lower_bound = max(lower_bound - trace(problem, radius), problem.lowest)
    return Found(found, sample.events, sample.scale * lower_bound, radius)


def trace(problem: Problem, radius: float) -> float:
    """What the L2 that stands in for no penalty is at most in the ball."""
    return 0.5 * problem.penalty.l2 * radius * radius


def bracket(sample: Sample, task: Task, found: Found) -> tuple[float, float]:
    """The objective of `found` on the events of the sample, and a bound for all others.

    Of the sample as it is now, though `found` may be from before.
    """
    problem = problem_of(sample.as_wide_as(found), task)
    w = problem.start(found.solution)
    value = problem.risk.value_and_gradient(w)[0]
    bound = dual_bound(problem, w)
    if task.unpenalised:
        bound -= trace(problem, found.radius)
    else:
        value += problem.penalty.value(problem.penalized(w))
    total = sample.scale * max(bound, problem.lowest)
    if found.events == sample.events:
        total = max(total, found.lower_bound)
    elif sample.complete:
        # what was proved for the first events holds, and the others have their lowest values
        later = slice(int(found.events), None)
        rest = lowest(task, sample.y[later], sample.weights[later])
        total = max(total, found.lower_bound + rest)
    else:
        # a statistic anyway: what was proved of the part it was found on, event for event. At its
        # weights, which are not the best of the sample of now, the slopes prove little
        total = max(total, found.lower_bound * sample.events / found.events)
    return sample.scale * value, min(total, sample.scale * value)


def lowest(task: Task, y: Array, weights: Array) -> float:
    """The sum of the lowest values of the losses."""
    if isinstance(task.loss, Loss):
        return inner(weights, task.loss.lowest(y))
    return -inner(weights, task.loss.conjugate(np.zeros((len(y), task.outputs)), y))


def measured(sample: Sample, task: Task, found: Found) -> tuple[float, float]:
    """The objective of `found` estimated on a sample it was not fitted on; its standard error."""
    problem = problem_of(sample.as_wide_as(found), task)
    w = problem.start(found.solution)
    losses = sample.weights * np.asarray(task.loss.value(problem.row_risk.scores(w), sample.y))
    m = len(losses)
    total = sample.events * float(losses.mean())
    if not task.unpenalised:
        total += sample.events * task.penalty.value(problem.penalized(w))
    left = math.sqrt(max(0.0, 1.0 - m / sample.events))
    return total, sample.events * float(losses.std(ddof=1)) / math.sqrt(m) * left
