"""The scores of recent labeled events, for ROC area and calibration."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.core.arrays import Array

MAX_PENDING_BATCHES = 1000  # before they are merged into the window


class RecentScores:
    """Recent scores and labels of a binary learner.

    `add` only stores the batch; labels are computed when the window is read, once per second.

    >>> recent = RecentScores(100)
    >>> scores, error = np.array([-1.0, 0.5, 0.2, 2.0]), np.array([0.0, 1.0, 0.0, 0.0])
    >>> recent.add(scores, error, np.array([True, True, True, False]), np.array([1.0, 2.0, 1.0]))
    >>> recent.window()
    (array([-1. ,  0.5,  0.2]), array([False, False,  True]), array([1., 2., 1.]))
    """

    def __init__(self, events: int) -> None:
        self.events = events
        self._scores, self._positive, self._weights = np.zeros(0), np.zeros(0, bool), np.zeros(0)
        self._pending: deque[tuple[Array, Array, Array, Array]] = deque()
        self._pending_events = 0  # labeled events among them

    def add(self, scores: Array, error: Array, learned: Array, weights: Array) -> None:
        """Add a batch: its scores, which were errors, which have a label, the weights of those."""
        if scores.ndim > 1 and scores.shape[1] > 1:
            return  # several outputs
        self._pending.append((scores.reshape(-1), error, learned, weights))
        self._pending_events += len(weights)
        while self._pending_events - len(self._pending[0][-1]) >= self.events:
            self._pending_events -= len(self._pending.popleft()[-1])  # outside the window
        if len(self._pending) > MAX_PENDING_BATCHES:
            self.window()

    def window(self) -> tuple[Array, Array, Array]:
        """Return the recent scores, whether the label of each is positive, and the weights."""
        if self._pending:
            batches, self._pending, self._pending_events = self._pending, deque(), 0
            scores, error, learned, weights = map(np.concatenate, zip(*batches, strict=True))
            scores, error = scores[learned][-self.events :], error[learned][-self.events :]
            # the label is the predicted one (the score's sign), unless that was an error
            self._keep(scores, (scores > 0.0) != (error > 0.0), weights[-self.events :])
        return self._scores, self._positive, self._weights

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        scores, positive, weights = self.window()
        return {
            "scores": scores.copy(),
            "positive": positive.astype(np.uint8),
            "weights": weights.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a checkpoint's state."""
        self._scores, self._positive, self._weights = np.zeros(0), np.zeros(0, bool), np.zeros(0)
        last = {name: values[-self.events :] for name, values in state.items()}
        self._keep(last["scores"], last["positive"] > 0, last["weights"])

    def _keep(self, scores: Array, positive: Array, weights: Array) -> None:
        before = self.events - len(scores)  # how many of the past remain
        past = slice(max(len(self._scores) - before, 0), None)
        self._scores = np.concatenate([self._scores[past], scores])
        self._positive = np.concatenate([self._positive[past], positive])
        self._weights = np.concatenate([self._weights[past], weights])
