"""Collect the loss of served scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlearn.daemon.learners import Learners
    from streamlearn.telemetry import Board

METRICS = {
    "served_loss": "loss", "served_loss_low": "low", "served_loss_high": "high",
    "served_events": "events",
}  # fmt: skip


class ServedCollector:
    """Collect the loss of what was served by each learner in each arm, if it is logged."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def measure(self, learners: Learners) -> None:
        """Update the board."""
        if learners.served is None:
            return
        rows = list(learners.served.rows())
        self.board.about.served = rows
        for row in rows:
            for metric, value in METRICS.items():
                self.board.set(metric, row[value], row["learner"], row["arm"])
