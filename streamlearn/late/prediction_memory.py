"""The scores of predictions whose labels are delayed, by ticket, for one learner.

Rows of a join are predicted now and learned later, after a few rows or some days. Their measures
use the score of the prediction. It is stored unchanged, except that its sign may change while one
class is known, and that columns are added for new classes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.late.joined_rows import CORRECTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.late.join import Join


class PredictionMemory:
    """The scores that one learner gave to the events a join holds.

    Parameters
    ----------
    join
        The join whose rows are learned.
    """

    def __init__(self, join: Join) -> None:
        self.join = join
        self.scores = np.full((0, 1), np.nan)  # by ticket
        # For corrections: the scores at which the labels of timeouts were learned.
        self.timeout_scores = np.full((0, 1), np.nan)

    @property
    def timeout_label(self) -> Any:
        """The label that a correction undoes."""
        return self.join.on_timeout

    def resize(self, outputs: int, *, split: bool) -> None:
        """Make room for all tickets and outputs; `split`: two classes no longer share an output."""
        if self.join.tickets > len(self.scores):
            more = self.join.tickets + self.join.tickets // 8 - len(self.scores)
            self.scores = grown(self.scores, more)
        if self.join.corrections and len(self.timeout_scores) < len(self.scores):
            self.timeout_scores = grown(
                self.timeout_scores, len(self.scores) - len(self.timeout_scores)
            )
        if outputs > self.scores.shape[1]:
            self.scores = widened(self.scores, outputs, 0.0, split=split)
            self.timeout_scores = widened(self.timeout_scores, outputs, np.nan, split=split)

    def swap_classes(self) -> None:
        """Swap the two classes."""
        self.scores, self.timeout_scores = -self.scores, -self.timeout_scores

    def corrections(self, start: int, stop: int) -> list[int]:
        """Return the rows in this range that are corrections."""
        if not self.join.corrections:
            return []
        rows = np.flatnonzero(self.join.rows.roles[start:stop] == CORRECTED)
        return [start + row for row in rows.tolist()]

    def timeout_scores_of(self, row: int) -> Array:
        """Return the scores at which `timeout_label` was learned; NaN if it was not."""
        return np.asarray(self.timeout_scores[self.join.rows.tickets[row]])

    def exchange(self, scores: Array, start: int, stop: int) -> None:
        """Store the scores of predicted rows; replace those of learned rows by the stored ones.

        A row that could not be learned stays NaN. A row that this learner never predicted, because
        it is newer, keeps its own score.
        """
        timeout_scores = self.timeout_scores if self.join.corrections else None
        self.join.rows.exchange(scores, start, stop, self.scores, timeout_scores)

    def swap(self, ticket: int, score: float, *, predicted: bool) -> float:
        """Do `exchange` for one row of a learner with one output, and return its score."""
        if predicted:
            if ticket >= 0:
                self.scores[ticket, 0] = score
            return score
        stored = float(self.scores[ticket, 0])
        return stored if math.isfinite(stored) and not math.isnan(score) else score

    def state(self) -> dict[str, Any]:
        """Return a copy of the scores."""
        n = self.join.tickets
        return {"scores": self.scores[:n].copy(), "timeout_scores": self.timeout_scores[:n].copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from `state`."""
        self.scores, self.timeout_scores = state["scores"].copy(), state["timeout_scores"].copy()


def grown(scores: Array, more: int) -> Array:
    """Return the scores with more rows, which are NaN."""
    return np.concatenate([scores, np.full((more, scores.shape[1]), np.nan)])


def widened(scores: Array, outputs: int, start: float, *, split: bool) -> Array:
    """Return the scores with columns for new outputs."""
    columns = np.hstack([-scores, scores]) if split and scores.shape[1] == 1 else scores
    return np.pad(columns, ((0, 0), (0, outputs - columns.shape[1])), constant_values=start)
