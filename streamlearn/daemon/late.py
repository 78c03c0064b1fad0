"""Late labels in the daemon: records of features and of labels become the rows of a join.

A batch is all that a poll gave, in its order, whatever the partitions: so the rows of two topics
that take turns are learnt together. What is held is a part of the checkpoint.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate, chain, compress
from operator import attrgetter, not_
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamlearn.daemon.observer import Part
from streamlearn.engine.events import Events
from streamlearn.late.join import CORRECTED, PREDICTED, Join
from streamlearn.late.remembered import Remembered
from streamlearn.stream import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamlearn.daemon.learners import Learner
    from streamlearn.frames import Array
    from streamlearn.stream import Decoder

PARTITION, OFFSETS, VALUES = map(attrgetter, ("partition", "offsets", "values"))
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
        """Decode them, and hold or join what is in them, a part for each partition.

        Two topics may take turns with every record: all of a decoder are decoded in one go, and
        joined in the order in which they came.
        """
        self.join.clear()
        runs: dict[Partition, list[Records]] = {}
        for one in records:
            runs.setdefault(one.partition, []).append(one)
        is_label = {where: self._is_label(where) for where in runs}
        sides = list(map(is_label.__getitem__, map(PARTITION, records)))
        events = Side(list(compress(records, map(not_, sides))))
        labels = Side(list(compress(records, sides)))
        events.decode(self.decoder, self._events, own_times=self.own_times)
        labels.decode(self.labels, self._told, own_times=self.own_times)
        kept = self.join.keep_orphans
        order = np.repeat(np.array(sides, dtype=np.uint8), list(map(len, map(OFFSETS, records))))
        self.join.both(
            self._events,
            self._told,
            order,
            events.origins() if kept else None,
            labels.origins() if kept else None,
        )
        bad = events.bad(self._events) | labels.bad(self._told)
        parts = []
        for where, each in runs.items():
            start, wrong = positions.get(where, each[0].offsets[0]), bad.get(where, [])
            parts.append(part(merged(each, whole=bool(wrong)), start, wrong))
        return parts

    def _is_label(self, where: Partition) -> bool:
        return self.labels is not None and where.topic == self.topic

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


Bad = list[tuple[int, str | None, str]]


class Side:
    """The runs of records of one decoder, in their order."""

    def __init__(self, runs: list[Records]) -> None:
        self.runs = runs

    def decode(self, decoder: Decoder | None, events: Events, *, own_times: bool) -> None:
        """All of them."""
        events.clear()
        if decoder is None or not self.runs:
            return
        decoder.decode(list(chain.from_iterable(map(VALUES, self.runs))), events)
        if own_times:
            times, unknown = events.times, np.isnan(events.times)
            if not unknown.any():
                return
            told: list[Sequence[float]] = [
                [math.nan] * len(run.offsets) if run.times is None else run.times
                for run in self.runs
            ]
            known = np.fromiter(chain.from_iterable(told), dtype=float)
            times[unknown] = 1e-3 * known[events.index[unknown]]

    def origins(self) -> list[bytes]:
        """What is said of each record when its label has waited in vain."""
        return [text for run in self.runs for text in origins(run)]

    def bad(self, events: Events) -> dict[Partition, Bad]:
        """Those that could not be read, by their place among the records of their partition."""
        found: dict[Partition, Bad] = {}
        if not events.bad:
            return found
        ends = list(accumulate(len(run.offsets) for run in self.runs))
        before: dict[Partition, int] = {}
        places = []  # of each run in its partition
        for run in self.runs:
            places.append(before.get(run.partition, 0))
            before[run.partition] = places[-1] + len(run.offsets)
        for i, field, reason in sorted(events.bad, key=lambda one: one[0]):
            k = bisect_right(ends, i)
            run = self.runs[k]
            place = places[k] + i - (ends[k] - len(run.offsets))
            found.setdefault(run.partition, []).append((place, field, reason))
        return found


def part(records: Records, start: int, bad: Bad) -> Part:
    """What became of the records of a partition."""
    tombstones = list(records.values).count(None)
    size = sum(map(len, filter(None, records.values)))
    return Part(records, start, bad, tombstones, size)


def merged(runs: list[Records], *, whole: bool) -> Records:
    """Runs of one partition as one; `whole`: with keys, times and headers."""
    if len(runs) == 1:
        return runs[0]
    every = chain.from_iterable
    first, last = runs[0], runs[-1]
    offsets, values = list(every(map(OFFSETS, runs))), list(every(map(VALUES, runs)))
    if not whole:
        return Records(first.partition, offsets, values, last.end)
    return Records(
        first.partition,
        offsets,
        values,
        last.end,
        None if first.keys is None else list(every(run.keys or () for run in runs)),
        None if first.times is None else list(every(run.times or () for run in runs)),
        None if first.headers is None else list(every(run.headers or () for run in runs)),
    )


def origins(records: Records) -> Iterator[bytes]:
    """What is said of each record when its label has waited in vain."""
    n = len(records.offsets)
    facts = zip(
        records.offsets,
        records.values,
        [None] * n if records.keys is None else records.keys,
        [None] * n if records.times is None else records.times,
        [()] * n if records.headers is None else map(tuple, records.headers),
        strict=True,
    )
    for one in facts:
        where = records.partition
        yield msgspec.msgpack.encode(Origin(where.topic, where.number, *one))
