"""Predictions: a record for each event, as the chosen learner saw it before it was learnt.

At least once: after a crash the events since the last checkpoint are predicted again. The source's
topic, partition and offset (in headers) tell copies; of those the highest epoch counts.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.daemon.learners import Learner, Outcome
    from streamlearn.engine.events import Events
    from streamlearn.frames import Array
    from streamlearn.stream import Records
    from streamlearn.stream.polled import Polled
    from streamlearn.stream.sink import Sink


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
            self.sink.send_all(
                [
                    (line, keys[k][i], [*said[k], ("offset", b"%d" % offsets[k][i])])
                    for line, k, i in zip(lines, which, places, strict=True)
                ]
            )

    def _said(self, records: Records) -> list[tuple[str, bytes]]:
        """What is said of every prediction of these records."""
        topic, partition = records.partition
        return [
            ("topic", topic.encode()),
            ("partition", b"%d" % partition),
            ("epoch", b"%d" % self.epoch),
        ]


def predictions(model: Any, scores: Array) -> tuple[list[Any], list[float | None]]:
    """The prediction and, where the loss defines one, the probability of each score."""
    values = model.predicted(scores)
    shares = model.probabilities(scores)
    chances = [None] * len(scores) if shares is None else shares.tolist()
    finite = np.isfinite(scores.reshape(len(scores), -1)).all(axis=1)
    for i in np.flatnonzero(~finite).tolist():
        values[i] = chances[i] = None
    return values, chances
