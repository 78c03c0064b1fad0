"""Collect the regret of learners; those with the same problem share a comparator.

Learners share a comparator if loss, penalty, intercept, class weights and first event are the same.
The first of them solves it in the background; all solvers together stay within the configured share
of a core. Regret is measured between two batches, and less often if that is slow.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from streamlearn.regret.regret_curve import class_weight

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.hindsight import Solution
    from streamlearn.regret import Report, Tracker
    from streamlearn.telemetry import Board

SECONDS = 3.0  # between two measurements
NOT_TRACKED = "not tracked since the learner's first event"
MAX_SHARE = 0.005  # the default for the most loop time spent on measurements


class RegretCollector:
    """Collect the regret of all tracked learners (see `RegretTrackers`)."""

    def __init__(
        self, board: Board, cpu_share: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.board = board
        self.cpu_share = cpu_share
        self.clock = clock
        self.share = MAX_SHARE
        self.trackers: dict[str, Tracker] = {}
        self.solvers: dict[str, str] = {}  # by learner: which one solves its comparator
        self._next = 0.0
        self._last_solution: dict[str, Solution] = {}  # the latest comparators

    def start(self, learners: Learners) -> None:
        """Start with the loaded learners and their trackers."""
        groups: dict[str, str] = {}
        for learner in learners:
            if learner.tracker is None:
                self.board.about.regret_unknown[learner.name] = NOT_TRACKED
            else:
                solver = groups.setdefault(comparator_key(learner), learner.name)
                self.trackers[learner.name] = learner.tracker
                self.solvers[learner.name] = solver
        for name, solver in self.solvers.items():
            ledger = self.trackers[name].ledger
            ledger.cpu_share = self.cpu_share / len(groups)
            if solver != name:
                ledger.sums.wake = None

    def measure(self) -> None:
        """Measure if it is due; call between two batches."""
        now, start = time.monotonic(), time.thread_time()
        if now < self._next:
            return
        for name, tracker in self.trackers.items():
            solver = self.trackers[self.solvers[name]].ledger
            if solver is not tracker.ledger:
                # the counts differ if a learner skipped an event that it could not learn
                tracker.ledger.use_comparator(
                    solver.comparator, same_events=tracker.ledger.same_events_as(solver)
                )
            self._report(name, tracker, tracker.report(0.0))
        self._next = now + max(SECONDS, (time.thread_time() - start) / self.share)

    def _report(self, name: str, tracker: Tracker, report: Report) -> None:
        board, found = self.board, tracker.ledger.comparator
        low, high = report.bracket or (None, None)
        sampled = low is not None and not report.certified
        board.set("regret_low", low, name)
        board.set("regret_high", high, name)
        board.set("regret_stderr", report.stderr if sampled else None, name)
        board.set("regret_bound", report.bound, name)
        board.set("comparator_nonzero_weights", report.comparator_nonzero, name)
        board.about.regret_unknown[name] = report.why_unknown
        if report.comparator is None or found is None:
            board.set("comparator_gap", None, name)
            return
        board.set("comparator_gap", found.solution.gap, name)
        if self._last_solution.get(name) is not found.solution:
            self._last_solution[name] = found.solution
            board.set("comparator_solved_timestamp_seconds", self.clock(), name)
        kind = "a sample" if tracker.ledger.sums.reservoir.full else "all events"
        board.inform(name, comparator=f"{tracker.ledger.task.penalty!r} on {kind}")


def comparator_key(learner: Learner) -> str:
    """Return a key that is equal for learners with the same best fixed model."""
    model, ledger = learner.model, learner.tracker.ledger if learner.tracker is not None else None
    loss, penalty, intercept = model.objective
    penalty = penalty if ledger is None else ledger.penalty
    problem = (loss, penalty.canonical(), intercept)
    seen = (0.0, 0.0) if ledger is None else (ledger.sums.events, ledger.sums.weight)
    return repr((*problem, sorted(class_weight(model).items(), key=repr), seen))
