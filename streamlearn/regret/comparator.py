"""The best fixed model of a sample of a stream: the problem, and solving it within a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from streamlearn.hindsight import Problem
from streamlearn.hindsight.auto import auto, supporting_methods
from streamlearn.losses import Loss, VectorLoss
from streamlearn.penalties import L2, ElasticNet, Penalty, Zero
from streamlearn.regret.reservoir import gather_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array
    from streamlearn.hindsight import Solution, Step
    from streamlearn.regret.strata import Strata
    from streamlearn.regret.tangents import Tangents

# Without a penalty the best fixed model may be infinitely large. It pays 1/2 |u|^2 once for the
# whole stream, as with a standard normal prior of its weights.
PRIOR = 1.0
WEAK = 0.001  # in its place, with l1


@dataclass(frozen=True)
class ComparatorTask:
    """The objective that the comparator minimizes."""

    loss: Loss | VectorLoss
    penalty: Penalty
    intercept: str  # "none", "free" or "inside"
    outputs: int = 1

    def __post_init__(self) -> None:
        # Canonical, so that equal problems compare equal however they are written.
        object.__setattr__(self, "penalty", self.penalty.canonical())

    def charge(self, events: float) -> Penalty:
        """Return what u pays at each of these events: Psi, or its part of 1/2 |u|^2."""
        return L2(PRIOR / events) if isinstance(self.penalty, Zero) else self.penalty


@dataclass(frozen=True)
class Sample:
    """Rows of a stream of `events` events: all, or a uniform sample.

    The rows before each of `ends` are a uniform sample too; the last end is that of all rows.
    strata: how the rows are distributed, and all events. tangents: of a learner.
    """

    X: Any
    y: Array
    weights: Array
    events: float
    positions: Array
    ends: list[int]
    strata: Strata | None = None
    tangents: Tangents | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def complete(self) -> bool:
        """Whether the sample has all events."""
        return len(self) == self.events

    def part(self, start: int, stop: int) -> Sample:
        """Return consecutive rows, without copying their features."""
        first = self.X.indptr[start]
        entries = slice(first, self.X.indptr[stop])
        ends = self.X.indptr[start : stop + 1] - first
        X = scipy.sparse.csr_array(
            (self.X.data[entries], self.X.indices[entries], ends),
            shape=(stop - start, self.X.shape[1]),
        )
        rows = slice(start, stop)
        return Sample(
            X,
            self.y[rows],
            self.weights[rows],
            self.events,
            self.positions[rows],
            [stop - start],
            None if self.strata is None else self.strata.part(rows),
            None if self.tangents is None else self.tangents.part(rows),
        )


def sample_from_snapshot(
    snapshot: dict[str, Any], events: float, task: ComparatorTask, columns: int, levels: int = 1
) -> Sample:
    """Return the rows of a snapshot; column 0 is an intercept inside the penalty."""
    rows = gather_rows(snapshot, levels, int(task.intercept == "inside"))
    shape = (len(rows["weights"]), max(columns, int(rows["slots"].max(initial=0)) + 1))
    X = scipy.sparse.csr_array((rows["values"], rows["slots"], rows["indptr"]), shape=shape)
    labels = rows["labels"]
    y = labels if task.loss.kind == "multitarget" else labels[:, 0].copy()
    return Sample(X, y, rows["weights"], events, rows["positions"], rows["ends"].tolist())


def hindsight_problem(sample: Sample, task: ComparatorTask) -> Problem:
    """Return the mean problem: its objective times the weight of the rows is their sum.

    With tangents this sum is that of the rows without a constant.
    """
    share = len(sample) / float(sample.weights.sum())
    X = sample.X
    # The solvers accept slots in any order.
    index = X.indices if X.indices.dtype == np.int32 else X.indices.astype(np.int64, copy=False)
    X = scipy.sparse.csr_array((X.data, index, X.indptr), shape=X.shape)
    penalty, linear = scaled(task.charge(sample.events), share), None
    if sample.tangents is not None:
        part = len(sample) / sample.events
        linear = sample.tangents.linear(X, sample.weights, part, penalty)
        linear = np.append(linear, np.zeros(int(task.intercept == "free")))
        if penalty.l1 > 0.0 == penalty.l2:  # alone it may be weaker than the linear term
            penalty = ElasticNet(penalty.l1, WEAK / sample.events)
    return Problem(
        X,
        np.ascontiguousarray(sample.y),
        task.loss,
        penalty,
        weights=sample.weights,
        fit_intercept=task.intercept == "free",
        outputs=task.outputs,
        linear=linear,
    )


def scaled(penalty: Penalty, factor: float) -> Penalty:
    """Return Psi times a factor, for Ball and penalties whose parameters are strengths."""
    if factor == 1.0 or penalty.l1 == penalty.l2 == 0.0:
        return penalty  # 0 inside a ball and infinite outside it, whatever the factor
    strengths = {name: value * factor for name, value in penalty.params.items()}
    return type(penalty)(**strengths)


def why_unsolvable(task: ComparatorTask) -> str | None:
    """Return why no method solves the task; None if one does."""
    if task.penalty.steered:
        return (
            f"the best fixed model of {task.penalty!r} is not known: finding it takes a search of "
            "all subsets of features; use L1 with a strength"
        )
    probe = scipy.sparse.csr_array((np.ones(1), np.zeros(1, np.int32), [0, 1]), shape=(1, 1))
    # A label for the probe: targets, the first class, or a number.
    several = (1, task.outputs) if task.loss.kind == "multitarget" else 1
    y = np.zeros(several) if isinstance(task.loss, VectorLoss) else np.ones(1)
    sample = Sample(probe, y, np.ones(1), 1.0, np.zeros(1, np.int64), [1])
    if supporting_methods(hindsight_problem(sample, task)):
        return None
    return (
        f"no hindsight method solves {task.loss!r} with {task.penalty!r}; "
        "use L2, L1 or ElasticNet with a strength > 0"
    )


class Budget:
    """A time limit, and a share of a core, for solves one after another."""

    def __init__(
        self, seconds: float, share: float = 1.0, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self.share = share
        self.cancelled = cancelled
        self.until = time.monotonic() + seconds
        self.stopped = False
        self._woke = time.monotonic()

    @property
    def left(self) -> float:
        """The seconds left."""
        return self.until - time.monotonic()

    def spent(self) -> bool:
        """Sleep as long as the share demands; return whether to stop."""
        now = time.monotonic()
        if self.share < 1.0:
            wanted = (now - self._woke) * (1.0 / self.share - 1.0)
            time.sleep(max(0.0, min(wanted, self.until - now)))
            self._woke = time.monotonic()
        self.stopped = self.stopped or time.monotonic() >= self.until or self.cancelled()
        return self.stopped


@dataclass(frozen=True)
class Minimum:
    """The best fixed model of some rows."""

    solution: Solution
    rows: int
    value: float  # of the objective, summed over the rows: the middle of the certified interval
    below: float  # a certified lower bound on it
    above: float  # the objective of the solution
    finished: bool  # whether the solver ended by itself

    @property
    def slack(self) -> float:
        """How far `value` may be from the minimum."""
        return 0.5 * (self.above - self.below)


def minimize(
    sample: Sample, task: ComparatorTask, start: Solution | None, *, gap: float, budget: Budget
) -> Minimum:
    """Solve for the best fixed model of these rows."""
    problem = hindsight_problem(sample, task)

    def throttle(_step: Step) -> bool:
        return budget.spent()

    solution = auto(problem, gap=gap, start=start, callback=throttle)
    return minimum_of(solution, len(sample), float(sample.weights.sum()), budget)


def minimum_of(solution: Solution, rows: int, weight: float, budget: Budget) -> Minimum:
    """Return a solution of a mean problem as the minimum of the sum over its rows."""
    if solution.interrupted and not budget.stopped:
        raise KeyboardInterrupt  # the solver stopped at Ctrl-C; the caller must stop too
    above, below = weight * solution.objective, weight * solution.lower_bound
    value = 0.5 * (above + below)
    return Minimum(solution, rows, value, below, above, not solution.interrupted)


@dataclass(frozen=True)
class FixedCosts:
    """What fixed weights pay: the losses at the rows of a sample, and Psi at each event.

    With tangents, the losses are what is above them, and their sum is in the charge.
    """

    losses: Array
    charge: float


def costs(sample: Sample, task: ComparatorTask, u: Any) -> FixedCosts:
    """Return what fixed weights, a Solution, pay at each row."""
    problem = hindsight_problem(sample, task)
    w = problem.start(u)
    scores = problem.risk.scores(w)
    losses = np.asarray(task.loss.value(scores, sample.y))
    weights = problem.penalized(w)
    charge = task.charge(sample.events).value(weights)
    if sample.tangents is not None:
        free = w[len(weights) :].sum()
        losses = sample.tangents.above(losses, scores - free)
        charge += sample.tangents.sum(weights) / sample.events
    return FixedCosts(losses, charge)
