"""Late labels in the daemon: records of features and of labels become the rows of a join.

A batch is all that a poll gave, in its order, whatever the partitions: so the rows of two topics
that take turns are learnt together. What is held is a part of the checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamlearn.daemon.observer import Part
from streamlearn.engine.events import Events
from streamlearn.late.join import CORRECTED, PREDICTED, Join
from streamlearn.late.remembered import Remembered
from streamlearn.stream import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.daemon.learners import Learner
    from streamlearn.frames import Array
    from streamlearn.stream import Decoder

ORPHAN = "a label whose event did not come, or had gone before it"


class Origin(msgspec.Struct, array_like=True):
    """The record of a label that waits, if it may become a dead letter."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None
    time: int | None
    headers: tuple[tuple[str, bytes], ...]


class Joining:
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

    late = True

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
        self.labels = labels
        self.topic = topic
        self.own_times = own_times
        self.memories: dict[str, Remembered] = {}
        self._events, self._told = Events(), Events()

    @property
    def rows(self) -> Events:
        """What there is to do, in its order."""
        return self.join.rows

    @property
    def predicted(self) -> Array:
        """The events that came."""
        return np.asarray(self.join.rows.roles == PREDICTED)

    @property
    def learnt(self) -> Array:
        """Those whose label came or timed out; a correction is learnt, and not measured again."""
        rows = self.join.rows
        return np.where(rows.roles == CORRECTED, 0.0, rows.learnt_weights())

    def batches(self, polled: Sequence[Records]) -> Sequence[Sequence[Records]]:
        """All together."""
        return [polled] if polled else []

    def read(self, records: Sequence[Records], positions: Mapping[Partition, int]) -> list[Part]:
        """Decode them, and hold or join what is in them."""
        self.join.clear()
        at, base, parts = dict(positions), 0, []
        for one in records:
            start = at.get(one.partition, one.offsets[0])
            at[one.partition] = one.end
            if self.labels is not None and one.partition.topic == self.topic:
                events = self._decoded(self.labels, one, self._told)
                self.join.labels(events, base, self._origins(one))
            else:
                events = self._decoded(self.decoder, one, self._events)
                self.join.features(events, base, self._origins(one))
            bad = sorted(events.bad, key=lambda each: each[0])
            parts.append(Part(one, start, bad, events.tombstones, events.byte_count))
            base += len(one.offsets)
        return parts

    def _decoded(self, decoder: Decoder, records: Records, events: Events) -> Events:
        events.clear()
        decoder.decode(records.values, events)
        if self.own_times and records.times is not None:
            times = events.times
            unknown = np.isnan(times)
            times[unknown] = np.asarray(records.times)[events.index[unknown]] * 1e-3
        return events

    def _origins(self, records: Records) -> list[bytes] | None:
        """What is said of each record when its label has waited in vain."""
        if not self.join.keep_orphans:
            return None
        n = len(records.offsets)
        return [
            msgspec.msgpack.encode(
                Origin(records.partition.topic, records.partition.number, *facts)
            )
            for facts in zip(
                records.offsets,
                records.values,
                [None] * n if records.keys is None else records.keys,
                [None] * n if records.times is None else records.times,
                [()] * n if records.headers is None else map(tuple, records.headers),
                strict=True,
            )
        ]

    def orphans(self) -> list[tuple[Records, str]]:
        """The records of labels that have waited in vain, if those are wanted."""
        found = []
        for text in self.join.orphans:
            one = msgspec.msgpack.decode(text, type=Origin)
            records = Records(
                Partition(one.topic, one.partition),
                [one.offset],
                [one.value],
                one.offset + 1,
                [one.key],
                None if one.time is None else [one.time],
                [one.headers],
            )
            found.append((records, ORPHAN))
        return found

    def begin(self, learners: Sequence[Learner]) -> None:
        """Each learner remembers its own predictions."""
        for learner in learners:
            learner.memory = Remembered(self.join)

    def state(self) -> dict[str, Any]:
        """What is held, and the labels met."""
        decoders = {"decoder": self.decoder.state()}
        if self.labels is not None:
            decoders["labels"] = self.labels.state()
        return {**decoders, "join": self.join.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there; a checkpoint from before there were late labels has nothing held."""
        self.decoder.restore(state["decoder"])
        if self.labels is not None and "labels" in state:
            self.labels.restore(state["labels"])
        if "join" in state:
            self.join.restore(state["join"])
