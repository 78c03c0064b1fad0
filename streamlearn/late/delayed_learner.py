"""An estimator on the rows of a join, which are predicted now and learned later.

After a few rows or some days, a row is learned as it was, and measured by the score of its
prediction. That is stored by ticket, unchanged, except that its sign may change while one class is
known, and that columns are added for new classes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.estimators.scored_events import ScoredEvents
from streamlearn.late.corrections import Corrections
from streamlearn.late.joined_rows import PREDICTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.core.progressive import WeightedMean
    from streamlearn.estimators.classifier import LinearClassifier
    from streamlearn.estimators.regressor import LinearRegressor
    from streamlearn.late.join import Join


class DelayedLearner:
    """An estimator, and the scores that it gave to the events that a join holds."""

    def __init__(self, estimator: LinearClassifier | LinearRegressor, join: Join) -> None:
        self.estimator = estimator
        self.join = join
        self.scores = np.empty((0, 1))  # by ticket; NaN: the estimator is newer
        self.corrections = Corrections(join.on_timeout)

    def learn(self, measures: Iterable[str]) -> ScoredEvents:
        """Do the estimator's `progressive_events` with the join's rows, by their predictions.

        A row that this estimator never predicted, because it is newer, keeps its own score; a
        correction has none, because its event was measured at the timeout.
        """
        estimator, rows = self.estimator, self.join.rows
        self._make_room()
        scored, sign = ScoredEvents(estimator, len(rows), measures), estimator.sign
        for part in estimator.parts(rows):
            self.scores = estimator.align(self.scores, sign)
            self.corrections.scores = estimator.align(self.corrections.scores, sign, np.nan)
            sign = part.sign
            if self.join.corrections:
                self.corrections.learn_part(estimator, rows, part)
            else:
                estimator.learn_part(rows, part)
            rows.exchange(part.scores, part.start, self.scores)
            scored.add(part)
        return scored.end()

    def learn_each(self, loss: WeightedMean) -> tuple[bool, float | None]:
        """Do `learn` without arrays, if no label is new and there is one output; add to `loss`.

        Return whether it was done, and the score of the last prediction.
        """
        estimator, engine, rows = self.estimator, self.estimator.engine, self.join.rows
        if self.join.corrections or engine.learner.outputs > 1:
            return False, None
        codes = []
        for i in range(len(rows)):
            label = rows.label_of(i)
            code, factor = (0.0, 1.0) if label is None else estimator.code_and_factor(label)
            if math.isnan(code) or factor != 1.0:
                return False, None
            codes.append(code)
        self._make_room()
        predicted = None
        for i, code in enumerate(codes):
            role, weight, ticket = rows.row_role(i)
            if role == PREDICTED:
                predicted = engine.run_row(rows, i, 0.0, 0.0)
                if ticket >= 0:
                    self.scores[ticket, 0] = predicted
            elif weight > 0.0:
                score, stored = engine.run_row(rows, i, code, weight), float(self.scores[ticket, 0])
                if not math.isnan(score):
                    score = stored if math.isfinite(stored) else score
                    loss.add_one(estimator.objective.loss.value(score, code), weight)
        return True, predicted

    def _make_room(self) -> None:
        """Make room for all tickets."""
        tickets = self.join.tickets
        if tickets > len(self.scores):
            self.scores = grown(self.scores, tickets + tickets // 8)
        if self.join.corrections and len(self.corrections.scores) < len(self.scores):
            self.corrections.scores = grown(self.corrections.scores, len(self.scores))

    def state(self) -> dict[str, Any]:
        """Return a copy of the scores."""
        n = self.join.tickets
        corrections = self.corrections.scores[:n].copy()
        return {"scores": self.scores[:n].copy(), "timeout_scores": corrections}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from `state`."""
        self.scores = state["scores"].copy()
        self.corrections.scores = state["timeout_scores"].copy()


def grown(scores: Array, n: int) -> Array:
    """Return the scores with n rows, of which the new ones are NaN."""
    return np.concatenate([scores, np.full((n - len(scores), scores.shape[1]), np.nan)])
