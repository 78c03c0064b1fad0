"""Collect the metrics of delayed labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlearn.daemon.learners import Learners
    from streamlearn.late.join import Join
    from streamlearn.telemetry import Board


class DelayedLabelsCollector:
    """Collect the metrics of the join of events and delayed labels, if there is one."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.join: Join | None = None
        self._before: dict[str, int] = {}  # counted before this process
        self._delays: list[float] = []
        self._total = 0.0

    def start(self, learners: Learners) -> None:
        """Note the counts that the join had before this process."""
        delayed = next(iter(learners)).delayed
        if delayed is not None:
            self.join = delayed.join
            self._before = self.join.counts
            self._delays = self.join.delays.tolist()
            self._total = self.join.delay_total

    def measure(self) -> None:
        """Update the board."""
        join, board = self.join, self.board
        if join is None:
            return
        board.set("held_events", join.held)
        board.set("held_oldest_seconds", join.age if join.held else 0.0)
        for outcome, count in join.counts.items():
            board.set("delayed_labels_total", count - self._before[outcome], outcome)
        counts = zip(join.delays.tolist(), self._delays, strict=True)
        board.delays = ([now - before for now, before in counts], join.delay_total - self._total)
