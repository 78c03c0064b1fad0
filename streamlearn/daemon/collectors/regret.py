"""Publish the regret of learners, and start the solves of their comparators.

Regret is measured between two batches, and less often if that is slow. The solves run in the
background, one at a time, within the configured share of a core.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.daemon.learners import Learners
    from streamlearn.hindsight import Solution
    from streamlearn.regret import Report, Tracker
    from streamlearn.telemetry import Board

SECONDS = 3.0  # between two measurements
NOT_TRACKED = "not tracked since the learner's first event"
MAX_SHARE = 0.005  # the default for the most loop time spent on measurements


class RegretCollector:
    """Collect the regret of all tracked learners (see `RegretTrackers`)."""

    def __init__(self, board: Board, clock: Callable[[], float] = time.time) -> None:
        self.board = board
        self.clock = clock
        self.share = MAX_SHARE
        self.trackers: dict[str, Tracker] = {}
        self._next = 0.0
        self._last_solution: dict[str, Solution] = {}  # the latest comparators

    def start(self, learners: Learners) -> None:
        """Start with the loaded learners and their trackers."""
        for learner in learners:
            if learner.tracker is None:
                self.board.about.regret_unknown[learner.name] = NOT_TRACKED
            else:
                self.trackers[learner.name] = learner.tracker

    def measure(self) -> None:
        """Measure if it is due; call between two batches."""
        now, start = time.monotonic(), time.thread_time()
        if now < self._next:
            return
        for name, tracker in self.trackers.items():
            self._report(name, tracker, tracker.report(0.0))
        self._next = now + max(SECONDS, (time.thread_time() - start) / self.share)

    def _report(self, name: str, tracker: Tracker, report: Report) -> None:
        board, found = self.board, tracker.ledger.findings
        known = report.regret is not None
        board.set("regret", report.regret, name)
        board.set("regret_low", report.regret_low, name)
        board.set("regret_high", report.regret_high, name)
        board.set("regret_events", report.solved_at if known else None, name)
        board.set("regret_stderr", None if report.certified or not known else report.stderr, name)
        board.set("regret_bound", report.bound, name)
        board.set("comparator_nonzero_weights", report.comparator_nonzero, name)
        board.about.regret_unknown[name] = report.why_unknown
        if found is None:
            board.set("comparator_gap", None, name)
            return
        board.set("comparator_gap", found.minimum.solution.gap, name)
        if self._last_solution.get(name) is not found.minimum.solution:
            self._last_solution[name] = found.minimum.solution
            board.set("comparator_solved_timestamp_seconds", self.clock(), name)
        kind = "all events" if report.sampled == report.solved_at else "a sample"
        board.inform(name, comparator=f"{tracker.ledger.task.penalty!r} on {kind}")
