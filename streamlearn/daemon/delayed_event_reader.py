"""Late labels in the daemon: records of features and of labels become the rows of a join.

What is held is a part of the checkpoint.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamlearn.daemon.event_reader import closing_row
from streamlearn.engine.events import Events
from streamlearn.late.join import DROP
from streamlearn.late.joined import CORRECTED, PREDICTED
from streamlearn.late.remembered import Remembered
from streamlearn.stream import Partition, Records
from streamlearn.stream.sources.source import header_name, name_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamlearn.daemon.collectors.observer import InvalidRecord
    from streamlearn.daemon.learners import Learner
    from streamlearn.estimators.frames import Array
    from streamlearn.late.join import Join
    from streamlearn.stream import Decoder
    from streamlearn.stream.sources.polled import Polled

ORPHAN = "a label whose event did not come, or had gone before it"
EVENTS, LABELS = range(2)  # the sides of a join


class LabelRecord(msgspec.Struct, array_like=True):
    """The record of a label that waits, if it may become a dead letter."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None
    time: int | None
    headers: tuple[tuple[bytes, bytes | None], ...]


class DelayedEventReader:
    """Events whose labels come later.

    Parameters
    ----------
    join
        The rules.
    decoder
        Reads events, and labels too if those come in the same records.
    labels
        Reads the labels of `topic`.
    topic
        Where labels come from; None: from where events come.
    own_times
        Records tell times themselves, where no field does (Kafka).
    """

    delayed = True

    def __init__(
        self,
        join: Join,
        decoder: Decoder,
        labels: Decoder | None = None,
        topic: str | None = None,
        *,
        own_times: bool = False,
    ) -> None:
        self.join = join
        self.decoder = decoder
        self.label_decoder = labels
        self.topic = topic
        self.own_times = own_times
        self._events, self._label_events = Events(), Events()
        self.labels = self._source.labels
        for one in (decoder, labels):
            if one is not None:
                one.needs_id = True  # else a label that is refused here would be one of theirs
        self._closing_record = -1.0  # the record that closed the labels

    @property
    def _source(self) -> Decoder:
        """What reads labels."""
        return self.decoder if self.label_decoder is None else self.label_decoder

    @property
    def rows(self) -> Events:
        """What there is to do, in its order."""
        return self.join.rows

    @property
    def predicted(self) -> Array:
        """The events that came."""
        return np.asarray(self.join.rows.roles == PREDICTED)

    @property
    def learned(self) -> Array:
        """Those whose label came or timed out; a correction is learned, and not measured again."""
        rows = self.join.rows
        weights = np.asarray(rows.learned_weights())
        if self.join.corrections:
            weights[rows.roles == CORRECTED] = 0.0
        return weights

    @property
    def closed(self) -> Array:
        """Those that came after the record of the label that closed them."""
        return np.asarray(self.join.rows.index > self._closing_record)

    def read(self, polled: Polled) -> list[InvalidRecord]:
        """Decode them, and hold or join what is in them.

        Two topics may take turns with every record: all of a decoder are decoded in one go, and
        joined in the order in which they came.
        """
        self.join.clear()
        before = self.labels.events
        labels = [self._is_label(one.partition) for one in polled.records]
        sides = np.repeat(labels, polled.sizes)
        if polled.order is not None:
            sides = sides[polled.order]
        self._decode(self.decoder, self._events, polled.only([not label for label in labels]))
        self._decode(self.label_decoder, self._label_events, polled.only(labels))
        self._closing_record = self._find_closing_record(before, sides)
        origins = list(self._origins(polled)) if self.join.keep_orphans else None
        self.join.both(self._events, self._label_events, sides, origins)
        return [
            *self._invalid(self._events, sides, EVENTS),
            *self._invalid(self._label_events, sides, LABELS),
        ]

    def _decode(self, decoder: Decoder | None, events: Events, polled: Polled) -> None:
        """What these records hold."""
        events.clear()
        if decoder is None or not len(polled):
            return
        decoder.decode(polled.values, events, polled.order)
        if self.own_times:
            times, unknown = events.times, np.isnan(events.times)
            if unknown.any():
                places = events.index[unknown]
                if polled.order is not None:
                    places = polled.order[places]
                times[unknown] = 1e-3 * polled.times()[places]

    def _find_closing_record(self, before: int, sides: Array) -> float:
        """The number of the record that closed the labels, among those of both sides."""
        side, events = (
            (EVENTS, self._events) if self.label_decoder is None else (LABELS, self._label_events)
        )
        row = closing_row(self.labels, before, ~np.isnan(events.labels))
        if not 0.0 <= row < math.inf:
            return row
        return float(np.flatnonzero(sides == side)[events.index[int(row)]])

    @staticmethod
    def _invalid(events: Events, sides: Array, side: int) -> list[InvalidRecord]:
        """What could not be read, by the number of its record among those of both sides."""
        if not events.bad:
            return []
        numbers = np.flatnonzero(sides == side).tolist()
        return [(numbers[i], field, reason) for i, field, reason in events.bad]

    def _origins(self, polled: Polled) -> Iterator[bytes]:
        """What is said of each record, in order of the turns, when its label has waited in vain."""
        for k, i in zip(
            *(found.tolist() for found in polled.find(np.arange(len(polled)))), strict=True
        ):
            yield pack_record(polled.records[k], i)

    def _is_label(self, where: Partition) -> bool:
        return self.label_decoder is not None and where.topic == self.topic

    def orphans(self) -> list[tuple[Records, str]]:
        """The records of labels that have waited in vain, if those are wanted."""
        found = []
        for text in self.join.orphans:
            one = msgspec.msgpack.decode(text, type=LabelRecord)
            records = Records(
                Partition(one.topic, one.partition),
                [one.offset],
                [one.value],
                one.offset + 1,
                [one.key],
                None if one.time is None else [one.time],
                [[(header_name(name), item) for name, item in one.headers]],
            )
            found.append((records, ORPHAN))
        return found

    def attach(self, learners: Sequence[Learner]) -> None:
        """Each learner remembers its own predictions."""
        for learner in learners:
            learner.memory = Remembered(self.join)

    def state(self) -> dict[str, Any]:
        """What is held, and the labels met."""
        decoders = {"decoder": self.decoder.state()}
        if self.label_decoder is not None:
            decoders["labels"] = self.label_decoder.state()
        return {**decoders, "join": self.join.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there; a checkpoint from before there were late labels has nothing held."""
        self.decoder.restore(state["decoder"])
        if self.label_decoder is not None and "labels" in state:
            self.label_decoder.restore(state["labels"])
        if self.join.on_timeout != DROP:
            self._source.admit(self.join.on_timeout)  # which may be another one now
        if "join" in state:
            self.join.restore(state["join"])


def pack_record(records: Records, i: int) -> bytes:
    """What is said of a record when its label has waited in vain."""
    time = None if records.times is None else int(records.times[i])
    return msgspec.msgpack.encode(
        LabelRecord(
            *records.partition,
            records.offsets[i],
            records.values[i],
            None if records.keys is None else records.keys[i],
            time,
            ()
            if records.headers is None
            else tuple((name_bytes(name), item) for name, item in records.headers[i]),
        )
    )
