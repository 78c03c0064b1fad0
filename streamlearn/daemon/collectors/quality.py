"""How good learners are: their losses and errors, and how well the scores of late separate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from streamlearn.telemetry.quality import Recent, calibration, roc_area

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.daemon.collectors.observer import Batch
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.telemetry import Board

WINDOW = 10_000  # events, for the area under the ROC curve and calibration
MAX_SHARE = 0.001  # most of the time that may go into looking at scores
# what a learner is measured by, and what the metrics over its life and of late are called
MEASURES = {
    "loss": ("progressive_loss", "window_loss"),
    "error": ("error_ratio", "window_error_ratio"),
    "absolute": ("absolute_error", "window_absolute_error"),
}


class QualityCollector:
    """Tells the board how good each learner is."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.quality: dict[str, Recent] = {}
        self._restored: Mapping[str, Any] = {}  # of the checkpoint, until the learners are there
        self._next = 0.0

    def state(self) -> Any:
        """What a checkpoint keeps: the last scores; the rest belongs to the learners."""
        return {name: quality.state() for name, quality in self.quality.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there, once the learners are loaded."""
        self._restored = state

    def start(self, learners: Learners) -> None:
        """The learners are there; one that begins afresh has no scores yet."""
        for learner in learners:
            if "error" in learner.progress:
                self.quality[learner.name] = quality = Recent(WINDOW)
                if learner.learned and learner.name in self._restored:
                    quality.restore(self._restored[learner.name])

    def add(self, batch: Batch) -> None:
        """Remember the scores of a batch."""
        for name, quality in self.quality.items():
            told = batch.results[name]
            quality.add(told.scores, told.measures["error"], told.learned, told.count)

    def measure(self, learners: Learners) -> None:
        """Look at all of it; at the scores not too often."""
        for learner in learners:
            for measure, names in MEASURES.items():
                if measure in learner.progress:
                    progress = learner.progress[measure]
                    self.board.set(names[0], progress.mean, learner.name)
                    self.board.set(names[1], progress.recent, learner.name)
        now, begun = time.monotonic(), time.thread_time()
        if now >= self._next:
            for name, quality in self.quality.items():
                self._measure_scores(learners[name], quality)
            self._next = now + (time.thread_time() - begun) / MAX_SHARE

    def _measure_scores(self, learner: Learner, quality: Recent) -> None:
        """How well its scores separate, and whether probabilities are right."""
        board, name = self.board, learner.name
        scores, positive = quality.window()
        board.set("window_roc_area_ratio", roc_area(scores, positive), name)
        loss = learner.model.objective.loss
        shares = loss.probability(scores) if loss.has_probability else None
        ratio, distance = (None, None) if shares is None else calibration(shares, positive)
        board.set("window_calibration_ratio", ratio, name)
        board.set("window_calibration_error_ratio", distance, name)
