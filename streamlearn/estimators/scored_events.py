"""Events that were scored, each before it was learned: the scores, and what they measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlearn.core.arrays import Array
    from streamlearn.estimators.linear import LabeledRun, Linear


class ScoredEvents:
    """The scores of events, with a column for each output if there are several.

    `measures` are arrays by name, NaN for events that were not learned: "loss"; of classifiers
    "error" (1 where another label was predicted) and "log_loss" of the probability; of regressors
    the "squared" and "absolute" errors of the prediction. `known_labels` is the number of labels
    known when each event was scored.
    """

    scores: Array

    def __init__(self, estimator: Linear, size: int, measures: Iterable[str] = ()) -> None:
        self.measures = {name: np.empty(size) for name in measures}
        self.known_labels = np.empty(size, dtype=np.intp)
        self._estimator = estimator
        self._runs: list[LabeledRun] = []

    def add(self, run: LabeledRun) -> None:
        """Add a learned run, before the next, because a new label changes the meaning of scores."""
        self._runs.append(run)
        scores, codes, at = run.scores, run.codes, slice(run.start, run.stop)
        self.known_labels[at], self.known_labels[at][:1] = run.known, run.known_first
        learned = ~np.isnan(scores[:, 0])
        if run.weights is not None:
            learned &= run.weights > 0.0
        # Row numbers are faster than an unpredictable mask.
        rows = None if learned.all() else np.flatnonzero(learned)
        if rows is not None:
            scores, codes = scores[rows], codes[rows]
        for name, out in self.measures.items():
            values = self._estimator.score_measures[name](self._estimator, scores, codes)
            if rows is None:
                out[at] = values
            else:
                out[at] = np.nan
                out[run.start + rows] = values
        if "error" in self.measures:
            self._correct_errors(self.measures["error"][at], run)

    @staticmethod
    def _correct_errors(errors: Array, run: LabeledRun) -> None:
        """Compare with what was predicted of the labels known then, not of all outputs."""
        measured = ~np.isnan(errors)
        if run.known == 1:
            errors[measured] = 0.0  # the only label is predicted
        if run.known_first < run.known:
            errors[:1][measured[:1]] = 1.0  # a new label is not

    def end(self) -> ScoredEvents:
        """Join the scores of all runs, as if all labels had been known."""
        estimator, runs = self._estimator, self._runs
        outputs = estimator.engine.learner.outputs
        scores = np.empty((0, outputs))
        if len(runs) == 1:  # the usual case, without a copy
            scores = runs[0].scores
        elif runs:
            scores = np.concatenate([estimator.align(run.scores, run.sign) for run in runs])
        self.scores = scores[:, 0] if outputs == 1 else scores
        return self
