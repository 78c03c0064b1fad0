"""Records to scores and answers: decoded by the native reader, without a dict per event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from streamlearn.core.labels import label_text
from streamlearn.engine.events import Events
from streamlearn.stream import Fields, JSONDecoder
from streamlearn.stream.formats.fields import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.serving.snapshot import Snapshot


class Reason(msgspec.Struct, omit_defaults=True):
    """What an event's feature adds to its score."""

    name: Any  # None for the intercept
    value: float
    weight: float
    contribution: float


class Prediction(msgspec.Struct):
    """The prediction for an event; fields that do not apply are omitted."""

    label: Any | UnsetType = UNSET
    probability: float | UnsetType = UNSET  # of the positive label, of two
    probabilities: dict[str, float] | UnsetType = UNSET  # by label
    value: Any | UnsetType = UNSET  # for regression
    score: Any | UnsetType = UNSET
    contributions: list[Reason] | UnsetType = UNSET
    learner: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    arm: str | UnsetType = UNSET  # of the A/B test
    id: str | UnsetType = UNSET


class Problem(msgspec.Struct, omit_defaults=True):
    """What is wrong with an event or a request."""

    reason: str
    field: str | None = None


class Refusal(msgspec.Struct):
    """The answer for an invalid event or request."""

    error: Problem


class Predictor:
    """Predict the records of requests with one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.version = str(snapshot.version)
        self.learner = snapshot.learner
        self.fields = event_fields(snapshot.header.get("fields", {}))
        self.decoder = JSONDecoder(snapshot.reader, self.fields)
        self.events = Events()
        self.classes = snapshot.model.learns == "classes"
        labels = snapshot.model.outputs
        self.labels = labels
        self.names = [label_text(label) for label in labels]
        self.has_probability = (
            self.classes
            and snapshot.model.probabilities(np.zeros((1, snapshot.scorer.outputs))) is not None
            if len(labels) > 1
            else False
        )

    def predict(self, records: Sequence[bytes], *, explain: bool) -> list[Prediction | Refusal]:
        """Return the answer for each record: a prediction, or why there is none."""
        events = self.events
        events.clear()
        self.decoder.decode(records, events)
        scores = self.snapshot.score_events(events)
        found = self.predictions(scores)
        if self.fields.id is not None:
            for i, one in enumerate(found):
                key = events.id_of(i)
                if key is not None:
                    one.id = key.decode(errors="replace")
        if explain:
            for i, index in enumerate(events.index.tolist()):
                found[i].contributions = self.reasons(records[index])
        if not events.invalid:
            return found  # type: ignore[return-value] # a list is invariant
        return self.with_refusals(found, len(records))

    def with_refusals(self, found: list[Prediction], count: int) -> list[Prediction | Refusal]:
        """Return predictions and refusals in the order of the records."""
        answers: list[Any] = [None] * count
        for index, one in zip(self.events.index.tolist(), found, strict=True):
            answers[index] = one
        for index, field, reason in self.events.invalid:
            answers[index] = Refusal(Problem(reason, field))
        return answers

    def predictions(self, scores: Array) -> list[Prediction]:
        """Return the prediction for each row of scores."""
        if not len(scores):
            return []
        if not self.classes:
            return self.numbers(scores)
        if not self.snapshot.single:
            return self.of_classes(scores)
        column = np.ascontiguousarray(scores[:, 0])
        listed = column.tolist()
        if len(self.labels) < 2:
            label = self.labels[0] if self.labels else None
            return [Prediction(label=label, score=score) for score in listed]
        negative, positive = self.labels
        if not self.has_probability:
            return [Prediction(positive if p > 0.0 else negative, score=p) for p in listed]
        learner = self.snapshot.model.engine.learner
        shares = learner.probabilities(scores)[:, 1].tolist()
        return [
            Prediction(positive if score > 0.0 else negative, share, UNSET, UNSET, score)
            for score, share in zip(listed, shares, strict=True)
        ]

    def of_classes(self, scores: Array) -> list[Prediction]:
        """Return the predictions of more than two classes."""
        known = scores[:, : len(self.labels)]
        model = self.snapshot.model
        predicted = model.predictions(known)
        shares = model.probabilities(known) if self.has_probability else None
        found = [
            Prediction(label=label, score=dict(zip(self.names, row, strict=False)))
            for label, row in zip(predicted, known.tolist(), strict=True)
        ]
        if shares is not None:
            for one, row in zip(found, shares.tolist(), strict=True):
                one.probabilities = dict(zip(self.names, row, strict=True))
        return found

    def numbers(self, scores: Array) -> list[Prediction]:
        """Return the predictions of a regression."""
        if self.snapshot.single:
            column = np.ascontiguousarray(scores[:, 0])
            values = self.snapshot.model.predictions(column)
            return [
                Prediction(value=value, score=score)
                for value, score in zip(values, column.tolist(), strict=True)
            ]
        rows = [dict(zip(self.names, row, strict=False)) for row in scores.tolist()]
        return [Prediction(value=row, score=row) for row in rows]

    def reasons(self, record: bytes) -> list[Reason]:
        """Return what each feature adds to the score of a valid record."""
        event: Mapping[str, Any] = msgspec.json.decode(record)
        features, _ = self.fields.split(event)
        return [
            Reason(one.name, one.value, one.weight, one.contribution)
            for one in self.snapshot.why(features)
        ]


def event_fields(saved: Mapping[str, Any]) -> Fields:
    """Return the roles of fields in a request: label and weight of the stream are ignored."""
    roles: dict[str, Any] = {role: saved.get(role) for role in ROLES}
    return Fields(**roles).unlabeled()
