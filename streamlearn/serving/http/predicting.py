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


class RequestProblem(msgspec.Struct, omit_defaults=True):
    """What is wrong with an event or a request."""

    reason: str
    field: str | None = None


class Refusal(msgspec.Struct):
    """The answer for an invalid event or request."""

    error: RequestProblem


class Predictor:
    """Predict the records of requests with one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.version = str(snapshot.version)
        self.learner = snapshot.learner
        fields = event_fields(snapshot.header.get("fields", {}))
        self.decoder = JSONDecoder(snapshot.reader, fields)
        self.fields = self.decoder.fields
        self.time_is_feature = self.fields.time_is_feature
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
        scorer = self.snapshot.scorer
        found: list[Prediction]
        if self.snapshot.single:
            found = self.of_output(scorer.score_single(events))
        else:
            found = self.of_outputs(scorer.score(events))
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
        for bad in self.events.invalid:
            answers[bad.number] = Refusal(RequestProblem(bad.reason, bad.field))
        return answers

    def of_output(self, scores: Sequence[float]) -> list[Prediction]:
        """Return the predictions of a regression, or of two classes at most."""
        if not self.classes:
            values = self.snapshot.model.predictions(np.array(scores))
            return [
                Prediction(value=value, score=score)
                for value, score in zip(values, scores, strict=True)
            ]
        if len(self.labels) < 2:
            label = self.labels[0] if self.labels else None
            return [Prediction(label=label, score=score) for score in scores]
        negative, positive = self.labels
        if not self.has_probability:
            return [Prediction(positive if p > 0.0 else negative, score=p) for p in scores]
        shares = self.snapshot.model.engine.learner.positive_probabilities(scores)
        return [
            Prediction(positive if score > 0.0 else negative, share, UNSET, UNSET, score)
            for score, share in zip(scores, shares, strict=True)
        ]

    def of_outputs(self, scores: Array) -> list[Prediction]:
        """Return the predictions of several targets, or of more than two classes."""
        if not self.classes:
            rows = [dict(zip(self.names, row, strict=False)) for row in scores.tolist()]
            return [Prediction(value=row, score=row) for row in rows]
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
    return Fields(**roles, time_unit=saved.get("time_unit", "s")).unlabeled()
