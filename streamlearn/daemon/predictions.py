"""Predictions: a record for each event, as the chosen learner saw it before it was learnt.

At least once: after a crash the events since the last checkpoint are predicted again. The source's
topic, partition and offset (in headers) tell copies; of those the highest epoch counts. Key and id
of the event are left out, and the header `dropped` says so, where the topic takes none so large.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamlearn.daemon.dead_letters import weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.daemon.learners import Learner, Outcome
    from streamlearn.engine.events import Events
    from streamlearn.frames import Array
    from streamlearn.stream import Records
    from streamlearn.stream.polled import Polled
    from streamlearn.stream.sink import Record, Sink
    from streamlearn.stream.source import Header


class Prediction(msgspec.Struct):
    """What is published of one event."""

    id: str | None
    prediction: Any  # None if the score is not finite
    probability: float | None  # of the positive class; with more than two, of the predicted one
    learner: str
    step: int  # labelled events that the model had learnt


ENCODER = msgspec.json.Encoder(enc_hook=str)


class Predictions:
    """Publishes what one learner, or the best one of late, predicts."""

    def __init__(self, sink: Sink, epoch: int = 0) -> None:
        self.sink = sink
        self.epoch = epoch
        self.largest: int | None = getattr(sink, "largest", None)

    def publish(
        self,
        polled: Polled,
        events: Events,
        stretches: Sequence[tuple[int, int, Learner, Outcome]],
        predicted: Array,
    ) -> None:
        """Publish the events of each stretch [start, stop) as its learner saw them.

        Those that were `predicted`; `events.index` counts the records in order.
        """
        records, encode = polled.records, ENCODER.encode_lines
        said = [self._said(one) for one in records]
        offsets = [one.offsets for one in records]
        keys = [
            [None] * len(one.offsets) if one.keys is None else list(one.keys) for one in records
        ]
        for start, stop, learner, outcome in stretches:
            chosen = start + np.flatnonzero(predicted[start:stop])
            if not len(chosen):
                continue
            which, places = (found.tolist() for found in polled.find(events.index[chosen]))
            values, chances = predictions(learner.model, outcome.scores[chosen])
            made = map(
                Prediction,
                events.id_texts(chosen),
                values,
                chances,
                repeat(learner.name),
                outcome.steps[chosen].tolist(),
            )
            lines = encode(made).splitlines()  # no line of JSON has an end of line inside
            told: list[Record] = [
                (line, keys[k][i], [*said[k], ("offset", b"%d" % offsets[k][i])])
                for line, k, i in zip(lines, which, places, strict=True)
            ]
            self.sink.send_all(told if self.largest is None else fitting(told, self.largest))

    def _said(self, records: Records) -> list[tuple[str, bytes]]:
        """What is said of every prediction of these records."""
        topic, partition = records.partition
        return [
            ("topic", topic.encode()),
            ("partition", b"%d" % partition),
            ("epoch", b"%d" % self.epoch),
        ]


def fitting(records: list[Record], largest: int) -> list[Record]:
    """These records, without key and id where those make one larger than its topic takes.

    Else one event with a huge key would stop the daemon, again and again.
    """
    keys = (len(key) for _, key, _ in records if key is not None)
    if max(len(value or b"") for value, _, _ in records) + max(keys, default=0) < largest // 4:
        return records
    return [one if size_of(*one) <= largest else without_key(*one) for one in records]


def size_of(value: bytes | None, key: bytes | None, headers: Sequence[Header]) -> int:
    """Bytes of a record, or a few more."""
    return len(value or b"") + weight(key, headers)


def without_key(value: bytes | None, _: bytes | None, headers: Sequence[Header]) -> Record:
    """A record without its key and its id, which says so."""
    told = msgspec.json.decode(value or b"null")
    dropped = ("dropped", b"key and id, for their size")
    return ENCODER.encode({**told, "id": None}), None, [*headers, dropped]


def predictions(model: Any, scores: Array) -> tuple[list[Any], list[float | None]]:
    """The prediction and, where the loss defines one, the probability of each score."""
    values = model.predicted(scores)
    shares = model.probabilities(scores)
    chances = [None] * len(scores) if shares is None else shares.tolist()
    finite = np.isfinite(scores.reshape(len(scores), -1)).all(axis=1)
    for i in np.flatnonzero(~finite).tolist():
        values[i] = chances[i] = None
    return values, chances
