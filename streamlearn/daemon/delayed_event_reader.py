"""Delayed labels in the daemon: join records of features with records of labels.

The events and labels held for the join are part of the checkpoint.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamlearn.daemon.event_reader import EventReader, closing_row, decode
from streamlearn.engine.events import Events
from streamlearn.late.delayed_learner import DelayedLearner
from streamlearn.late.join import DROP
from streamlearn.late.joined_rows import CORRECTED, PREDICTED
from streamlearn.stream import Partition, Records
from streamlearn.stream.records import header_name, name_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.core.invalid_record import InvalidRecord
    from streamlearn.daemon.learners import Learner
    from streamlearn.late.join import Join
    from streamlearn.stream import Decoder
    from streamlearn.stream.polled import Polled

EVENTS, LABELS = range(2)  # the sides of a join


class LabelRecord(msgspec.Struct, array_like=True):
    """The record of a label that waits for its event, kept as a possible dead letter."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None
    time: int | None
    headers: tuple[tuple[bytes, bytes | None], ...]


class DelayedEventReader(EventReader):
    """Read events whose labels arrive later.

    Parameters
    ----------
    join
        The join of events and labels.
    decoder
        Decodes events, and labels if they are in the same records.
    label_decoder
        Decodes the labels of `topic`.
    topic
        The topic of the labels; None if events and labels share the same records.
    """

    delayed = True

    def __init__(
        self,
        join: Join,
        decoder: Decoder,
        label_decoder: Decoder | None = None,
        topic: str | None = None,
    ) -> None:
        self.label_decoder = label_decoder
        super().__init__(decoder)
        self.join = join
        self.rows = join.rows
        self.topic = topic
        self._events, self._label_events = Events(), Events()
        self.labels = self._decoder_of_labels.labels
        for one in (decoder, label_decoder):
            if one is not None:
                one.needs_id = True  # labels are matched to events by id
        self._closing_record = -1.0  # the record that closed the labels

    @property
    def _decoder_of_labels(self) -> Decoder:
        """Return the decoder of the labels."""
        return self.decoder if self.label_decoder is None else self.label_decoder

    @property
    def decoders(self) -> list[Decoder]:
        """Return the decoder of events, and that of labels if they have a topic of their own."""
        return [one for one in (self.decoder, self.label_decoder) if one is not None]

    def decoder_of(self, where: Partition) -> Decoder:
        """Return the decoder of a partition's records."""
        return self._decoder_of_labels if self._is_label(where) else self.decoder

    @property
    def predicted(self) -> Array:
        """Mark the events that arrived."""
        return np.asarray(self.join.rows.roles == PREDICTED)

    @property
    def weights(self) -> Array:
        """Return the weights of rows whose label arrived or timed out.

        A correction is learned but not measured again, so its weight is 0 here.
        """
        weights = super().weights
        if self.join.corrections:
            weights[self.join.rows.roles == CORRECTED] = 0.0
        return weights

    @property
    def after_closing(self) -> Array:
        """Mark the rows after the label record that closed the label set."""
        return np.asarray(self.join.rows.index > self._closing_record)

    def read(self, polled: Polled) -> list[InvalidRecord]:
        """Decode a batch and join it; return the invalid records.

        Two topics may alternate with every record: each decoder decodes all of its records at once,
        and the join follows the polled order.
        """
        self.join.clear()
        before = self.labels.events
        labels = [self._is_label(one.partition) for one in polled.records]
        sides = np.repeat(labels, polled.sizes)
        if polled.order is not None:
            sides = sides[polled.order]
        self._decode(EVENTS, self._events, polled.only([not label for label in labels]))
        self._decode(LABELS, self._label_events, polled.only(labels))
        self._closing_record = self._find_closing_record(before, sides)
        origins = list(self._origins(polled)) if self.join.keep_orphans else None
        joined = self._joined
        self.join.add_records(self._events, self._label_events, sides, origins)
        self.unjoined = 0 if self._joined > joined else self.unjoined + self._count_labels()
        return [
            *self._invalid(self._events, sides, EVENTS),
            *self._invalid(self._label_events, sides, LABELS),
        ]

    def _decode(self, side: int, events: Events, polled: Polled) -> None:
        """Decode records into `events`, with the time of the record where it has no own time."""
        events.clear()
        if not len(polled):
            return
        decode(self.decoders[side], polled, events)
        self.absent[side].add(events)
        times, unknown = events.times, np.isnan(events.times)
        if unknown.any():
            places = events.index[unknown]
            if polled.order is not None:
                places = polled.order[places]
            times[unknown] = 1e-3 * polled.times()[places]

    @property
    def _joined(self) -> int:
        """The number of labels that met their event, in time or as a correction."""
        return self.join.counts["joined"] + self.join.counts["corrected"]

    def _count_labels(self) -> int:
        """Count the labels of the batch."""
        events = self._events if self.label_decoder is None else self._label_events
        return int(np.count_nonzero(~np.isnan(events.labels)))

    def _find_closing_record(self, before: int, sides: Array) -> float:
        """Return the number of the record that closed the label set, counting both sides."""
        side, events = (
            (EVENTS, self._events) if self.label_decoder is None else (LABELS, self._label_events)
        )
        row = closing_row(self.labels, before, ~np.isnan(events.labels))
        if not 0.0 <= row < math.inf:
            return row
        return float(np.flatnonzero(sides == side)[events.index[int(row)]])

    @staticmethod
    def _invalid(events: Events, sides: Array, side: int) -> list[InvalidRecord]:
        """Return the invalid records of one side, numbered by the records of both sides."""
        if not events.invalid:
            return []
        numbers = np.flatnonzero(sides == side).tolist()
        return [bad.at(numbers[bad.number]) for bad in events.invalid]

    def _origins(self, polled: Polled) -> Iterator[bytes]:
        """Pack each record, in polled order, in case its label becomes an orphan."""
        for k, i in zip(
            *(found.tolist() for found in polled.find(np.arange(len(polled)))), strict=True
        ):
            yield pack_record(polled.records[k], i)

    def _is_label(self, where: Partition) -> bool:
        return self.label_decoder is not None and where.topic == self.topic

    def take_schema_counts(self) -> dict[int | str, int]:
        """Return the number of records by the id of their schema, since the last call."""
        counts = Counter(super().take_schema_counts())
        if self.label_decoder is not None:
            counts.update(self.label_decoder.take_schema_counts())
        return counts

    def orphans(self) -> list[Records]:
        """Return the records of orphan labels, if the join keeps them."""
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
            found.append(records)
        return found

    def attach(self, learners: Sequence[Learner]) -> None:
        """Let each learner learn the rows of the join."""
        for learner in learners:
            learner.delayed = DelayedLearner(learner.model, self.join)

    def state(self) -> dict[str, Any]:
        """Return the held events and labels, and the labels seen."""
        state = {**super().state(), "join": self.join.state()}
        if self.label_decoder is not None:
            state["labels"] = self.label_decoder.state()
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state; a checkpoint without [labels] holds nothing."""
        super().restore(state)
        if self.label_decoder is not None and "labels" in state:
            self.label_decoder.restore(state["labels"])
        if self.join.on_timeout != DROP:
            # the configured label may have changed
            self._decoder_of_labels.admit(self.join.on_timeout)
        if "join" in state:
            self.join.restore(state["join"])


def pack_record(records: Records, i: int) -> bytes:
    """Pack a record, to become a dead letter if its label is an orphan."""
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
