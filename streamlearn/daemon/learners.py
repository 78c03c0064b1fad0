"""The learners of a daemon: several models that learn the same decoded events side by side.

They share one reader of features, which the checkpoint keeps once; each has its own state, its own
progressive scores, and a place in the stream where its life began.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streamlearn.daemon.scores import BestLearner, ProgressiveMean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamlearn.engine.events import Events
    from streamlearn.estimators.classifier import LinearClassifier
    from streamlearn.estimators.frames import Array
    from streamlearn.estimators.regressor import LinearRegressor
    from streamlearn.features import Reader
    from streamlearn.late.remembered import Remembered
    from streamlearn.regret import Tracker

    Model = LinearClassifier | LinearRegressor


@dataclass(slots=True)
class LearnerResult:
    """What one learner made of a batch; a number for each event."""

    scores: Array  # before learning; a row for each event where there are several outputs
    measures: dict[str, Array]  # "loss" and others; NaN for an event that was not learned
    learned: Array  # whether it was learned
    before: int  # events that the learner had learned before the batch
    count: int  # events that it learned from it
    known: Array | None = None  # how many labels it knew when it scored each event

    @property
    def steps(self) -> Array:
        """How many events had been learned when each event was scored."""
        return np.asarray(self.before + np.cumsum(self.learned) - self.learned)


class Learner:
    """A model with its scores."""

    def __init__(self, name: str, model: Model, measures: list[str], window: int) -> None:
        self.name = name
        self.model = model
        self.progress = {measure: ProgressiveMean(window) for measure in measures}
        self.learned = 0
        self.diverged = 0  # events whose score was not finite, and which were left out
        self.created_at: dict[str, Any] = {}  # where its life began
        self.tracker: Tracker | None = None  # of its regret, if that is followed
        self.memory: Remembered | None = None  # of its predictions, if labels come late

    @property
    def settings(self) -> dict[str, str]:
        """What the model is made of, as text: with others it would be another learner."""
        model = self.model
        params = {name: repr(value) for name, value in model.params.items()}
        params.pop("features", None)  # shared, and compared on their own
        return {"estimator": type(model).__name__, **params}

    @property
    def learns(self) -> Literal["classes", "numbers", "restricted numbers"]:
        """What a label is to the model, for the decoder."""
        return self.model.learns

    def check_labels(self, labels: list[Any]) -> None:
        """InvalidEventError if the model cannot learn these labels, for the decoder."""
        self.model.check_labels(labels)

    def learn(self, events: Events, wanted: Array) -> LearnerResult:
        """Learn a batch, of which `wanted` have a label and a weight."""
        measures = {name: np.empty(len(events)) for name in self.progress}
        if self.learns == "classes":
            measures["known"] = np.empty(len(events))
        scores = self.model.progressive_events(events, measures, self.memory)
        known = measures.pop("known", None)
        learned = ~np.isnan(measures["loss"])
        rows = None if learned.all() else np.flatnonzero(learned)  # see `Linear._fill_measures`
        weights = events.weights if rows is None else events.weights[rows]
        result = LearnerResult(scores, measures, learned, self.learned, len(weights), known)
        for name, progress in self.progress.items():
            progress.add(measures[name] if rows is None else measures[name][rows], weights)
        self.learned += len(weights)
        if rows is not None:
            columns = scores.reshape(len(scores), -1)
            self.diverged += int(np.count_nonzero(np.isnan(columns).any(axis=1) & wanted))
        return result

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: a copy."""
        memory = {} if self.memory is None else {"memory": self.memory.state()}
        return {
            **memory,
            "model": self.model.file_data(self.model.state(features=False)),
            "settings": self.settings,
            "progress": {name: progress.state() for name, progress in self.progress.items()},
            "learned": self.learned,
            "diverged": self.diverged,
            "created_at": self.created_at,
        }

    def restore(self, state: Mapping[str, Any], reader: Reader) -> None:
        """Go on from there; the features are restored before."""
        self.model = self.model.clone()  # one that began from a file has a state of its own
        self.model.share_features(reader)
        self.model.restore(state["model"]["state"])
        for name, progress in self.progress.items():
            if name in state["progress"]:
                progress.restore(state["progress"][name])
        self.learned, self.diverged = state["learned"], state["diverged"]
        self.created_at = state["created_at"]
        if self.memory is not None and "memory" in state:
            self.memory.restore(state["memory"])


class Learners:
    """All learners, over one reader.

    Parameters
    ----------
    models
        By name; the first is the one that predicts, if nothing else is said.
    reader
        The features that all share.
    window
        Events over which recent scores are taken.
    best
        (measure, window, hysteresis) of the choice of the best one; None: no choice.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        reader: Reader,
        *,
        window: int = 10_000,
        best: tuple[str, int, float] | None = None,
    ) -> None:
        self.reader = reader
        self.by = None if best is None else best[0]
        self.members: dict[str, Learner] = {}
        for name, model in models.items():
            model.share_features(reader)
            measures = (
                list(model.score_measures) if best is None else [*model.score_measures, best[0]]
            )
            wanted = [m for m in dict.fromkeys(measures) if m != "log_loss" or self.by == m]
            self.members[name] = Learner(name, model, wanted, window)
        self.choice = None if best is None else BestLearner(list(models), best[1], best[2])
        self._changes: list[tuple[int, str]] = []  # of the batch: from which row on who is best
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
        """Learn a batch with every learner, each on a thread of its own.

        `weights` are those with which events are measured, if not all that are learned are.
        """
        wanted = (events.learned_weights() if weights is None else weights) > 0.0
        members = self.members.values()
        if self._pool is None:
            results = {member.name: member.learn(events, wanted) for member in members}
        else:
            futures = {m.name: self._pool.submit(m.learn, events, wanted) for m in members}
            results = {name: future.result() for name, future in futures.items()}
        if self.choice is not None and self.by is not None:
            rows = np.flatnonzero(wanted)
            self._changes = [(0, self.choice.name)]
            if len(rows):
                by = self.by
                values = np.stack([result.measures[by][rows] for result in results.values()])
                changes = self.choice.add(values)
                self._changes += [(int(rows[at - 1]) + 1, name) for at, name in changes]
        return results

    def changes(self) -> list[tuple[int, str]]:
        """The rows of the last batch from which on another learner was the best, and which."""
        return self._changes[1:]

    def segments(
        self, name: str, results: Mapping[str, LearnerResult], n: int
    ) -> list[tuple[int, int, Learner, LearnerResult]]:
        """The rows of the last batch, each with the learner that predicts it."""
        changes = self._changes if name == "best" else [(0, name)]
        ends = [start for start, _ in changes[1:]] + [n]
        return [
            (start, stop, self.members[who], results[who])
            for (start, who), stop in zip(changes, ends, strict=True)
            if start < stop
        ]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
