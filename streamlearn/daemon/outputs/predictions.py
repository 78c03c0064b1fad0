"""Publish predictions: a record for each event, made before the event is learned.

Delivery is at least once: after a crash the events since the last checkpoint are predicted again.
Duplicates have the same topic, partition and offset in their headers; the highest epoch is valid,
and of a fleet's workers the highest round in it.
If a record is too large for its topic, key and id are dropped, and the header `dropped` is added.
"""

from __future__ import annotations

from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from streamlearn.core.labels import label_text
from streamlearn.daemon.outputs.dead_letters import record_overhead
from streamlearn.estimators.regressor import LinearRegressor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.daemon.event_reader import EventReader
    from streamlearn.daemon.learners import Learner, LearnerResult, Model
    from streamlearn.engine.events import Events
    from streamlearn.stream import Records
    from streamlearn.stream.formats.label_set import LabelSet
    from streamlearn.stream.formats.writers import Writer
    from streamlearn.stream.polled import Polled
    from streamlearn.stream.sinks.sink import Record, Sink

    Kind = TypeVar("Kind")
    PerEvent: TypeAlias = list[Kind | UnsetType]  # of each event, if there is one

SCHEMA = b"1"  # version of the published records: docs/reference/predictions.md


class PublishedPrediction(msgspec.Struct):
    """The published prediction of one event; fields that do not apply are omitted."""

    id: str | None
    prediction: Any  # None if the score is not finite, or no label was known
    learner: str
    step: int  # labeled events that the model had learned
    probability: float | UnsetType = UNSET  # of the positive label, if there are two closed ones
    probabilities: dict[str, float] | UnsetType = UNSET  # by label, for other label sets
    value: float | UnsetType = UNSET  # for regression


RECORDS_PER_SEND = 256  # records encoded at a time, few enough for the processor's cache
ENCODER = msgspec.json.Encoder(enc_hook=str)


class PredictionPublisher:
    """Publish the predictions of one learner, or of the currently best one."""

    def __init__(self, sink: Sink, writer: Writer | None = None) -> None:
        self.sink = sink
        self.writer = writer  # None: JSON
        self.epoch = 0
        self.round: int | None = None  # of workers; the daemon has none
        self.max_bytes = sink.max_bytes

    def publish(
        self,
        polled: Polled,
        events: Events,
        segments: Sequence[tuple[int, int, Learner, LearnerResult]],
        predicted: Array,
        event_reader: EventReader,
    ) -> None:
        """Publish the `predicted` events of each segment [start, stop), from its learner.

        `events.index` numbers the records in order.
        """
        closed = event_reader.after_closing
        records = polled.records
        shared_headers = [self._shared_headers(one) for one in records]
        offsets = [one.offsets for one in records]
        keys = [
            [None] * len(one.offsets) if one.keys is None else list(one.keys) for one in records
        ]
        longest = max(map(len, filter(None, chain.from_iterable(keys))), default=0)
        for start, stop, learner, result in segments:
            chosen = start + np.flatnonzero(predicted[start:stop])
            if not len(chosen):
                continue
            known = result.known_labels[chosen]
            values, *fields = predict_batch(
                learner.model, result.scores[chosen], known, event_reader.labels, closed[chosen]
            )
            steps = result.steps[chosen].tolist()
            ids = events.id_texts(chosen)
            predictions = map(
                PublishedPrediction, ids, values, repeat(learner.name), steps, *fields
            )
            which, at = polled.find(events.index[chosen])
            places = zip(which.tolist(), at.tolist(), strict=True)
            while some := list(islice(predictions, RECORDS_PER_SEND)):
                values = encode(some, self.writer)
                sent: list[Record] = [
                    (value, keys[k][i], [*shared_headers[k], ("offset", b"%d" % offsets[k][i])])
                    for value, (k, i) in zip(values, places, strict=False)
                ]
                size = sum(map(len, values))
                if self.max_bytes is not None and size + longest > self.max_bytes // 4:
                    sent = [
                        self._shrink_to_fit(one, prediction, self.max_bytes)
                        for one, prediction in zip(sent, some, strict=True)
                    ]
                self.sink.send_all(sent)

    def _shrink_to_fit(
        self, record: Record, prediction: PublishedPrediction, max_bytes: int
    ) -> Record:
        """Drop key and id of a record that is too large for its topic.

        Otherwise one event with a huge key would stop the daemon, again after each restart.
        """
        value, key, headers = record
        if value is None or len(value) + record_overhead(key, headers) <= max_bytes:
            return record
        prediction.id = None
        [shorter] = encode([prediction], self.writer)
        return shorter, None, [*headers, ("dropped", b"key and id: too large")]

    def _shared_headers(self, records: Records) -> list[tuple[str, bytes]]:
        """Return the headers common to all predictions of these records."""
        topic, partition = records.partition
        of_round = [] if self.round is None else [("round", b"%d" % self.round)]
        return [
            ("topic", topic.encode()),
            ("partition", b"%d" % partition),
            ("epoch", b"%d" % self.epoch),
            *of_round,
            ("schema", SCHEMA),
        ]


def encode(predictions: list[PublishedPrediction], writer: Writer | None) -> list[bytes]:
    """Return the values of records, by a writer or in JSON."""
    if writer is None:
        text = ENCODER.encode_lines(predictions)
        return text[:-1].split(b"\n")  # encoded JSON contains no line breaks
    return [writer.write(set_fields(one)) for one in predictions]


def set_fields(prediction: PublishedPrediction) -> dict[str, Any]:
    """Return the fields of a prediction that have a value."""
    found = msgspec.structs.asdict(prediction)
    return {
        name: value for name, value in found.items() if value is not None and value is not UNSET
    }


def predict_batch(
    model: Model, scores: Array, known: Array | None, labels: LabelSet, closed: Array
) -> tuple[list[Any], PerEvent[float], PerEvent[dict[str, float]], PerEvent[float]]:
    """Return the prediction of each score, with its probability, probabilities and value.

    `probability` is that of the positive label of two, once the label set is `closed`. Other label
    sets have `probabilities`, one for each label. There are none while the set may still close.
    """
    unset: PerEvent[Any] = [UNSET] * len(scores)
    values = model.predictions(scores, known)
    finite = np.isfinite(scores if scores.ndim == 2 else scores[:, None]).all(axis=1)
    for i in np.flatnonzero(~finite).tolist():
        values[i] = None
    if isinstance(model, LinearRegressor):
        return values, unset, unset, [UNSET if one is None else one for one in values]
    shares = model.probabilities(scores, known)
    if shares is None or (labels.warmup is not None and not closed.any()):
        return values, unset, unset, unset
    if labels.warmup is not None:
        finite = finite & closed
    shares[~finite] = np.nan
    if labels.positive is None:
        return values, unset, probabilities_by_label(model.labels, shares), unset
    if labels.positive not in model.labels:
        return values, unset, unset, unset
    column = shares[:, model.labels.index(labels.positive)]
    chances: PerEvent[float] = column.tolist()
    for i in np.flatnonzero(np.isnan(column)).tolist():
        chances[i] = UNSET
    return values, chances, unset, unset


def probabilities_by_label(labels: Sequence[Any], shares: Array) -> PerEvent[dict[str, float]]:
    """Map labels, as text, to probabilities; unknown ones (NaN) are omitted.

    >>> probabilities_by_label([1, "b", True], np.array([[0.5, 0.25, 0.25], [np.nan] * 3]))
    [{'1': 0.5, 'b': 0.25, 'true': 0.25}, UNSET]
    """
    names = [label_text(label) for label in labels]
    found: PerEvent[dict[str, float]] = []
    for row in shares.tolist():
        fields: dict[str, float] = {}
        for name, share in zip(names, row, strict=True):
            if share == share:  # noqa: PLR0124 - a NaN is not itself
                fields[name] = fields.get(name, 0.0) + share  # 1 and "1" are the same text
        found.append(fields or UNSET)
    return found
