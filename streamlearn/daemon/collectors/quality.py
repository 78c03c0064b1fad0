"""Collect the quality of learners: loss, error rate, ROC AUC and calibration."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.daemon.scores import WINDOW
from streamlearn.quality.ranking import calibration, calibration_ratio, groups_of, roc_area
from streamlearn.telemetry.quality import RecentScores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.daemon.batch import Batch
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.telemetry import Board

MAX_SHARE = 0.001  # the most CPU time spent on these measures
# by measure: the metric over the lifetime, and the recent one
MEASURES = {
    "loss": ("progressive_loss", "recent_loss"),
    "error": ("error_ratio", "recent_error_ratio"),
    "absolute": ("absolute_error", "recent_absolute_error"),
}


class QualityCollector:
    """Collect the quality of each learner."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.recent: dict[str, RecentScores] = {}
        self._restored: Mapping[str, Any] = {}  # until the learners are loaded
        self._next = 0.0

    def state(self) -> Any:
        """Return the recent scores; the learners keep the rest."""
        return {name: quality.state() for name, quality in self.recent.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Keep the state until the learners are loaded."""
        self._restored = state

    def start(self, learners: Learners) -> None:
        """Start with the loaded learners; a fresh one has no recent scores."""
        for learner in learners:
            if "error" in learner.progress:
                self.recent[learner.name] = quality = RecentScores(WINDOW)
                if learner.learned and learner.name in self._restored:
                    quality.restore(self._restored[learner.name])

    def add(self, batch: Batch) -> None:
        """Add the scores of a batch."""
        for name, quality in self.recent.items():
            result = batch.results[name]
            ranked = result.known_labels >= 2  # one label has no score
            weights = result.weights[ranked[result.learned]]
            learned = result.learned & ranked
            quality.add(result.scores, result.measures["error"], learned, weights)

    def measure(self, learners: Learners) -> None:
        """Update the board; recent scores are measured less often if that is slow."""
        for learner in learners:
            for measure, names in MEASURES.items():
                if measure in learner.progress:
                    progress = learner.progress[measure]
                    self.board.set(names[0], progress.mean, learner.name)
                    self.board.set(names[1], progress.recent, learner.name)
        now, start = time.monotonic(), time.thread_time()
        if now >= self._next:
            for name, quality in self.recent.items():
                self._measure_scores(learners[name], quality)
            self._next = now + (time.thread_time() - start) / MAX_SHARE

    def _measure_scores(self, learner: Learner, quality: RecentScores) -> None:
        """Measure ROC AUC and calibration of a learner's recent scores."""
        board, name = self.board, learner.name
        scores, positive, weights = quality.window()
        loss = learner.model.objective.loss
        calibrated = len(scores) > 0 and loss.has_probability
        shares = np.full(len(scores), np.nan)
        if calibrated:
            shares = np.asarray(loss.probability(scores))
        groups = groups_of(scores, positive, shares, weights)
        ratio = calibration_ratio(groups) if calibrated else None
        distance = calibration(groups).error if calibrated else None
        board.set("recent_roc_auc", roc_area(groups), name)
        board.set("recent_calibration_ratio", ratio, name)
        board.set("recent_calibration_error", distance, name)
