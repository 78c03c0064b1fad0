"""Compare learners with the best fixed model on the same events.

Learners of the same events share one sample of them (`SharedSample`), and those that minimize the
same objective one comparator (`Comparison`). It is solved on nested samples of growing size, until
the sample or the time is used up.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.regret.all_events import minimize_shards
from streamlearn.regret.comparator import (
    Budget,
    ComparatorTask,
    Minimum,
    Sample,
    sample_from_snapshot,
    why_unsolvable,
)
from streamlearn.regret.findings import Findings, SampledCosts, findings_of_all
from streamlearn.regret.nested import Nested, solved
from streamlearn.regret.strata import Strata
from streamlearn.regret.tangents import Tangents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.hindsight.sharded import Host, ShardSource
    from streamlearn.regret.member import ComparedLearner
    from streamlearn.regret.progressive_sums import ProgressiveSums
    from streamlearn.regret.reservoir import Reservoir

SMALLEST = 500  # rows of the smallest nested sample
GROWTH = 1.25  # of the stream until the next solve in the background
IDLE_SECONDS = 30.0  # until the next solve of a stream that has grown less
COARSE = 5e-4  # the gap on a sample, as a share of the mean loss


@dataclass
class SharedSample:
    """One sample of the events of several learners, and one solver at a time for all."""

    reservoir: Reservoir
    recorder: ProgressiveSums | None = None  # of the learner whose events are in the reservoir
    comparisons: list[Comparison] = field(default_factory=list)
    solving: threading.Lock = field(default_factory=threading.Lock)

    @property
    def counts(self) -> tuple[float, float]:
        """The number of events, and the sum of their weights."""
        recorder = self.recorder
        return (0.0, 0.0) if recorder is None else (recorder.events, recorder.weight)

    def comparison_of(self, task: ComparatorTask) -> Comparison:
        """Return the comparison of all learners with this objective."""
        for comparison in self.comparisons:
            if comparison.problem == (task.loss, task.penalty, task.intercept):
                return comparison
        self.comparisons.append(Comparison(self, task))
        return self.comparisons[-1]


class Comparison:
    """Learners with the same objective on the same events, and their comparator."""

    def __init__(self, shared: SharedSample, task: ComparatorTask) -> None:
        self.shared = shared
        self.problem = (task.loss, task.penalty, task.intercept)
        self.members: list[Callable[[], ComparedLearner]] = []
        self.task: Callable[[], ComparatorTask] = lambda: task
        self.findings: list[Findings | None] = []
        self.best: Minimum | None = None
        self.solved_at = 0.0
        self.closed = False
        self._thread: threading.Thread | None = None
        self._due = 0.0
        self._yield = threading.Event()  # a background solve must stop for one that is waited for

    def join(
        self, member: Callable[[], ComparedLearner], task: Callable[[], ComparatorTask]
    ) -> int:
        """Add a learner; return its number."""
        self.members.append(member)
        self.findings.append(None)
        self.task = task
        return len(self.members) - 1

    # -- when -------------------------------------------------------------------------------------

    def solve_if_due(self, events: float, *, gap: float, seconds: float, share: float) -> None:
        """Start a solve in the background if the stream has grown enough; between two batches."""
        if self.closed or self.busy or not events > self.solved_at:
            return
        if events < GROWTH * self.solved_at and time.monotonic() < self._due:
            return
        work = self.prepared()
        self._thread = threading.Thread(
            target=self._solve_in_background,
            args=(work, gap, seconds, share),
            name="regret",
            daemon=True,
        )
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a solve runs in the background."""
        return self._thread is not None and self._thread.is_alive()

    def _solve_in_background(self, work: Work, gap: float, seconds: float, share: float) -> None:
        with self.shared.solving:
            if not self._must_stop():
                self._solve(work, gap, Budget(seconds, share, self._must_stop))
        self._due = time.monotonic() + IDLE_SECONDS

    def _must_stop(self) -> bool:
        return self.closed or self._yield.is_set()

    def solve(self, *, gap: float, seconds: float) -> None:
        """Solve now, for up to `seconds`."""
        self._yield.set()
        try:
            with self.shared.solving:
                self._solve(self.prepared(), gap, Budget(seconds))
        finally:
            self._yield.clear()

    def solve_all(
        self, shards: Sequence[ShardSource], *, host: Host, gap: float, seconds: float
    ) -> None:
        """Solve on all events, which are in shards, for up to `seconds` after loading them."""
        self._yield.set()
        try:
            with self.shared.solving:
                members, task = [member() for member in self.members], self.task()
                events, weight = self.shared.counts
                best = minimize_shards(
                    shards,
                    task,
                    self.best,
                    host=host,
                    events=events,
                    weight=weight,
                    gap=gap,
                    seconds=seconds,
                )
                self.best, self.solved_at = best, events
                self.findings = [findings_of_all(one, best, events, weight) for one in members]
        finally:
            self._yield.clear()

    def forget(self) -> None:
        """Forget the comparator, which belongs to other events."""
        self.findings = [None] * len(self.members)
        self.best, self.solved_at = None, 0.0

    def wait(self) -> None:
        """Wait for a solve in the background."""
        if self._thread is not None:
            self._thread.join()

    def prepared(self) -> Work:
        """Collect what a solve needs, which is fast."""
        shared = self.shared
        return Work(
            shared.reservoir.snapshot(),
            *shared.counts,
            self.task(),
            [member() for member in self.members],
            shared.reservoir.memory_bytes,
        )

    # -- the comparator ---------------------------------------------------------------------------

    def _solve(self, work: Work, gap: float, budget: Budget) -> None:
        if why_unsolvable(work.task) is not None:
            return
        sample = work.sample()
        if not len(sample):
            return
        if not sample.complete:
            gap = max(gap, COARSE * abs(work.members[0].progressive_loss) / work.weight)
            sample = work.explained(sample)
        nested: Nested | None = None
        for found in solved(sample, work.task, self.best, gap=gap, budget=budget):
            unknown = any(one is None or one.regret is None for one in self.findings)
            if found.earlier is not None and unknown:
                self._publish(work, found, sample)
            nested = found
        if nested is not None:
            self.best = nested.minimum
            self._publish(work, nested, sample)

    def _publish(self, work: Work, nested: Nested, sample: Sample) -> None:
        members = work.members
        rows = SampledCosts(sample, work.task, nested, members, work.weight, work.memory_bytes)
        self.findings = [rows.findings(member) for member in members]
        self.solved_at = sample.events


@dataclass
class Work:
    """A snapshot of everything that a solve needs."""

    snapshot: dict[str, Any]
    events: float
    weight: float
    task: ComparatorTask
    members: list[ComparedLearner]
    memory_bytes: int | None

    def explained(self, sample: Sample) -> Sample:
        """Return the sample with strata by the scores of the best learner, and its tangents.

        These are in one stratum, and without tangents, if no learner has all events.
        """
        whole = (self.events, self.weight)
        members = [one for one in self.members if (one.events, one.weight) == whole]
        best = min(members, key=lambda one: one.progressive_loss, default=None)
        at = None if best is None else best.places_of(sample.positions)
        strata, tangents = Strata.single(sample.weights, self.weight), None
        if best is not None and at is not None:
            strata = Strata(best.cells[at], sample.weights, best.cell_weights)
            if best.gradient is not None and self._is_useful(best, sample, strata):
                columns, intercept = sample.X.shape[1], self.task.intercept
                tangents = Tangents.of(best.slopes[at], best.gradient, columns, intercept)
        weights = strata.calibrated() * (len(sample) / sample.events)
        return replace(sample, weights=weights, strata=strata, tangents=tangents)

    def _is_useful(self, learner: ComparedLearner, sample: Sample, strata: Strata) -> bool:
        """Return whether a learner is better than zero weights, far from which are its slopes."""
        loss = self.task.loss
        zero = np.asarray(loss.value(np.zeros(len(sample)), sample.y))
        return learner.progressive_loss < float(strata.calibrated() @ zero)

    def sample(self) -> Sample:
        """Read the rows, and release the snapshot."""
        columns = max(
            (
                member.candidate.w.shape[-1]
                for member in self.members
                if member.candidate is not None
            ),
            default=1,
        )
        share = (self.snapshot["threshold"] + 1) / 2.0**64
        rows = share * self.events
        levels = 1 if share == 1.0 else max(3, 1 + int(math.log2(max(rows / SMALLEST, 1.0))))
        found = sample_from_snapshot(self.snapshot, self.events, self.task, columns, levels)
        self.snapshot.clear()
        return found
