"""Predictions that wait for their labels: the scores of one learner, each at a ticket.

Of joined rows some are predicted now and learned later, some rows or some days on. What they are
measured by is the score of then. It is kept as it was, but for the sides of the classes: while one
class alone is known its sign may turn, and columns are added for later ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.late.joined import CORRECTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.estimators.frames import Array
    from streamlearn.late.join import Join


class Remembered:
    """The scores of what a join holds, as one learner gave them.

    Parameters
    ----------
    join
        Whose rows are learned.
    """

    def __init__(self, join: Join) -> None:
        self.join = join
        self.scores = np.full((0, 1), np.nan)  # by ticket
        # if those may be corrected: the scores at which the labels of time-outs were learned
        self.timeout_scores = np.full((0, 1), np.nan)

    @property
    def timeout_label(self) -> Any:
        """The label that a correction takes back."""
        return self.join.on_timeout

    def resize(self, outputs: int, *, split: bool) -> None:
        """Room for all tickets, and a column for every output.

        `split`: of two classes, which shared one output, each has its own now.
        """
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

    def mirror(self) -> None:
        """The two classes change places."""
        self.scores, self.timeout_scores = -self.scores, -self.timeout_scores

    def corrections(self, start: int, stop: int) -> list[int]:
        """The rows among these that are corrections."""
        if not self.join.corrections:
            return []
        rows = np.flatnonzero(self.join.rows.roles[start:stop] == CORRECTED)
        return [start + row for row in rows.tolist()]

    def timeout_scores_of(self, row: int) -> Array:
        """The scores at which a row was learned with `timeout_label`; NaN: it was not."""
        return np.asarray(self.timeout_scores[self.join.rows.tickets[row]])

    def exchange(self, scores: Array, start: int, stop: int) -> None:
        """Remember the scores of what was predicted, and show those of what was learned.

        A row that could not be learned (NaN) stays so; one that was never predicted, by a learner
        that is newer, is shown as it was when it was learned.
        """
        timeout_scores = self.timeout_scores if self.join.corrections else None
        self.join.rows.exchange(scores, start, stop, self.scores, timeout_scores)

    def swap(self, ticket: int, score: float, *, predicted: bool) -> float:
        """`take` for one row of a learner with one output: the score that is shown for it."""
        if predicted:
            if ticket >= 0:
                self.scores[ticket, 0] = score
            return score
        then = float(self.scores[ticket, 0])
        return then if math.isfinite(then) and not math.isnan(score) else score

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: a copy."""
        n = self.join.tickets
        return {"scores": self.scores[:n].copy(), "asked": self.timeout_scores[:n].copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.scores, self.timeout_scores = state["scores"].copy(), state["asked"].copy()


def grown(scores: Array, more: int) -> Array:
    """With rows of nothing known after it."""
    return np.concatenate([scores, np.full((more, scores.shape[1]), np.nan)])


def widened(scores: Array, outputs: int, start: float, *, split: bool) -> Array:
    """With columns for new outputs."""
    columns = np.hstack([-scores, scores]) if split and scores.shape[1] == 1 else scores
    return np.pad(columns, ((0, 0), (0, outputs - columns.shape[1])), constant_values=start)
