"""The learners of a daemon: several models that learn the same decoded events side by side.

They share one feature reader, which a checkpoint stores once. Each has its own state and
progressive scores, and knows the position in the stream at which it was created.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streamlearn.daemon.scores import WINDOW, BestLearner, ProgressiveMean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.daemon.served_loss import ServedLosses
    from streamlearn.engine.events import Events
    from streamlearn.estimators.classifier import LinearClassifier
    from streamlearn.estimators.regressor import LinearRegressor
    from streamlearn.features import Reader
    from streamlearn.late.delayed_learner import DelayedLearner
    from streamlearn.regret import Tracker

    Model = LinearClassifier | LinearRegressor


@dataclass(slots=True)
class LearnerResult:
    """The results of one learner on a batch, with a number for each event."""

    scores: Array  # before learning; a row for each event if there are several outputs
    measures: dict[str, Array]  # "loss" and others; NaN for an event that was not learned
    learned: Array  # whether the event was learned
    learned_before: int  # events learned before the batch
    weights: Array  # of the events that were learned
    known_labels: Array  # number of labels known when each event was scored

    @property
    def count(self) -> int:
        """Count the events learned from the batch."""
        return len(self.weights)

    @property
    def steps(self) -> Array:
        """Count the events learned before each event was scored."""
        return np.asarray(self.learned_before + np.cumsum(self.learned) - self.learned)


class Learner:
    """A model with its progressive scores."""

    def __init__(self, name: str, model: Model, measures: list[str]) -> None:
        self.name = name
        self.model = model
        self.progress = {measure: ProgressiveMean(WINDOW) for measure in measures}
        self.learned = 0
        self.diverged = 0  # events that were skipped because their score was not finite
        self.created_at: dict[str, Any] = {}  # events and positions; {}: with the daemon
        self.tracker: Tracker | None = None  # of its regret, if tracked
        self.delayed: DelayedLearner | None = None  # if labels are delayed
        self.label_order: list[Any] = []

    @property
    def settings(self) -> dict[str, str]:
        """Describe the model's parameters as text, to compare with a checkpoint."""
        model = self.model
        params = {name: repr(value) for name, value in model.params.items()}
        params.pop("features", None)  # shared, and compared on their own
        return {"estimator": type(model).__name__, **params}

    @property
    def learns(self) -> Literal["classes", "numbers", "restricted numbers"]:
        """Return the kind of labels that the model learns, for the decoder."""
        return self.model.learns

    def check_labels(self, labels: list[Any]) -> None:
        """Raise InvalidEventError if the model cannot learn these labels, for the decoder."""
        self.model.check_labels(labels)

    def order_labels(self, labels: list[Any]) -> None:
        """Tell the model which of two labels is the positive one, for the decoder."""
        self.label_order = labels
        self.model.order_labels(labels)

    def learn(self, events: Events, learnable: Array) -> LearnerResult:
        """Learn a batch; `learnable` marks the events with a label and a weight above 0."""
        if self.delayed is None:
            scored = self.model.progressive_events(events, self.progress)
        else:
            scored = self.delayed.learn(self.progress)
        scores, measures, known = scored.scores, scored.measures, scored.known_labels
        learned = ~np.isnan(measures["loss"])
        rows = None if learned.all() else np.flatnonzero(learned)  # see `ScoredEvents.add`
        weights = events.weights.copy() if rows is None else events.weights[rows]
        result = LearnerResult(scores, measures, learned, self.learned, weights, known)
        for name, progress in self.progress.items():
            progress.add(measures[name] if rows is None else measures[name][rows], weights)
        self.learned += len(weights)
        if rows is not None:
            columns = scores.reshape(len(scores), -1)
            self.diverged += int(np.count_nonzero(np.isnan(columns).any(axis=1) & learnable))
        return result

    def clear_scores(self) -> None:
        """Start the scores anew."""
        self.progress = {name: ProgressiveMean(WINDOW) for name in self.progress}

    def state(self) -> dict[str, Any]:
        """Copy the state for a checkpoint."""
        predictions = {} if self.delayed is None else {"predictions": self.delayed.state()}
        return {
            **predictions,
            "model": self.model.file_data(self.model.state(features=False)),
            "settings": self.settings,
            "progress": {name: progress.state() for name, progress in self.progress.items()},
            "learned": self.learned,
            "diverged": self.diverged,
            "created_at": self.created_at,
        }

    def restore(self, state: Mapping[str, Any], reader: Reader) -> None:
        """Restore the state; the shared features are restored first."""
        self.restore_model(state["model"]["state"], reader)
        for name, progress in self.progress.items():
            if name in state["progress"]:
                progress.restore(state["progress"][name])
        self.learned, self.diverged = state["learned"], state["diverged"]
        self.created_at = state["created_at"]
        if self.delayed is not None:
            self.delayed.estimator = self.model
            if "predictions" in state:
                self.delayed.restore(state["predictions"])

    def restore_model(self, state: dict[str, Any], reader: Reader) -> None:
        """Replace the model by one of this state."""
        self.model = self.model.clone()  # a model loaded from a file has a state already
        self.model.share_features(reader)
        self.model.order_labels(self.label_order)
        self.model.restore(state)


class Learners:
    """All learners, over one feature reader.

    Parameters
    ----------
    models
        By name; the first one predicts by default.
    reader
        The features, shared by all models.
    best
        (measure, window, hysteresis) of the choice of the best learner; None for no choice.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        reader: Reader,
        *,
        best: tuple[str, int, float] | None = None,
    ) -> None:
        self.reader = reader
        self.best_by = None if best is None else best[0]
        self.members: dict[str, Learner] = {}
        for name, model in models.items():
            model.share_features(reader)
            measures = (
                list(model.score_measures) if best is None else [*model.score_measures, best[0]]
            )
            measures = [m for m in dict.fromkeys(measures) if m != "log_loss" or self.best_by == m]
            self.members[name] = Learner(name, model, measures)
        self.choice = None if best is None else BestLearner(list(models), best[1], best[2])
        self.served: ServedLosses | None = None  # the losses of what was served, if it is logged
        self._best_changes: list[
            tuple[int, str]
        ] = []  # rows of the batch where the best learner changed
        self._pool = (
            ThreadPoolExecutor(len(models), thread_name_prefix="learner")
            if len(models) > 1
            else None
        )

    def __iter__(self) -> Iterator[Learner]:
        return iter(self.members.values())

    def __getitem__(self, name: str) -> Learner:
        return self.members[name]

    def learn(self, events: Events, weights: Array | None = None) -> dict[str, LearnerResult]:
        """Learn a batch with every learner, each on its own thread.

        `weights` are the weights of the measured events, if not all learned events are measured.
        """
        learnable = (events.learned_weights() if weights is None else weights) > 0.0
        members = self.members.values()
        if self._pool is None:
            results = {member.name: member.learn(events, learnable) for member in members}
        else:
            futures = {m.name: self._pool.submit(m.learn, events, learnable) for m in members}
            results = {name: future.result() for name, future in futures.items()}
        if self.choice is not None and self.best_by is not None:
            rows = np.flatnonzero(learnable)
            self._best_changes = [(0, self.choice.name)]
            if len(rows):
                by = self.best_by
                values = np.stack([result.measures[by][rows] for result in results.values()])
                changes = self.choice.add(values)
                self._best_changes += [(int(rows[at - 1]) + 1, name) for at, name in changes]
        return results

    def best_changes(self) -> list[tuple[int, str]]:
        """Return the rows of the last batch at which the best learner changed, with its name."""
        return self._best_changes[1:]

    def segments(
        self, name: str, results: Mapping[str, LearnerResult], n: int
    ) -> list[tuple[int, int, Learner, LearnerResult]]:
        """Split the last batch into (start, stop) segments with the learner that predicts them."""
        changes = self._best_changes if name == "best" else [(0, name)]
        ends = [start for start, _ in changes[1:]] + [n]
        return [
            (start, stop, self.members[learner], results[learner])
            for (start, learner), stop in zip(changes, ends, strict=True)
            if start < stop
        ]

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
