"""Predictions: a record for each event, as the chosen learner saw it before it was learnt.

At least once: after a crash the events since the last checkpoint are predicted again. The source's
topic, partition and offset (in headers) tell copies; of those the highest epoch counts. Key and id
of the event are left out, and the header `dropped` says so, where the topic takes none so large.
"""

from __future__ import annotations

from itertools import chain, islice, repeat
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


class Prediction(msgspec.Struct):
    """What is published of one event."""

    id: str | None
    prediction: Any  # None if the score is not finite
    probability: float | None  # of the positive class; with more than two, of the predicted one
    learner: str
    step: int  # labelled events that the model had learnt


TOGETHER = 256  # records made before they are sent: so many stay in the processor's cache
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
        longest = max(map(len, filter(None, chain.from_iterable(keys))), default=0)
        for start, stop, learner, outcome in stretches:
            chosen = start + np.flatnonzero(predicted[start:stop])
            if not len(chosen):
                continue
            values, chances = predictions(learner.model, outcome.scores[chosen])
            steps = outcome.steps[chosen].tolist()
            made = map(
                Prediction, events.id_texts(chosen), values, chances, repeat(learner.name), steps
            )
            which, at = polled.find(events.index[chosen])
            places = zip(which.tolist(), at.tolist(), strict=True)
            while text := encode(islice(made, TOGETHER)):
                lines = text[:-1].split(b"\n")  # no line of JSON has an end of line inside
                told: list[Record] = [
                    (line, keys[k][i], [*said[k], ("offset", b"%d" % offsets[k][i])])
                    for line, (k, i) in zip(lines, places, strict=False)
                ]
                if self.largest is not None and len(text) + longest > self.largest // 4:
                    told = [fitting(one, self.largest) for one in told]
                self.sink.send_all(told)

    def _said(self, records: Records) -> list[tuple[str, bytes]]:
        """What is said of every prediction of these records."""
        topic, partition = records.partition
        return [
            ("topic", topic.encode()),
            ("partition", b"%d" % partition),
            ("epoch", b"%d" % self.epoch),
        ]


def fitting(record: Record, largest: int) -> Record:
    """A record that its topic takes: without key and id, where those make it too large.

    Else one event with a huge key would stop the daemon, again and again.
    """
    value, key, headers = record
    if value is None or len(value) + weight(key, headers) <= largest:
        return record
    told = msgspec.json.decode(value)
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
