"""A reader: fetch the records of some partitions, and decode them to packed rows.

It runs in a process of its own and keeps nothing that matters: which partitions it reads, and from
where, is told by the daemon, which also learns what it returns. It does not know Ray.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamlearn.engine.events import Events
from streamlearn.fleet.instructions import connect, prepare, require_same_version
from streamlearn.fleet.packed_batch import PackedBatch
from streamlearn.kafka.reader import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.fleet.instructions import Instructions
    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream import Partition


@dataclass(frozen=True)
class Fetched:
    """What a reader returns."""

    batches: list[PackedBatch] = field(default_factory=list)
    marks: Mapping[Partition, int] = field(default_factory=dict)  # the ends of the partitions
    error: Exception | None = None
    generation: int = 0  # of the partition of an OutOfRangeError


class RemoteReader:
    """A `KafkaReader` in another process, with decoders."""

    def __init__(self) -> None:
        self._reader: KafkaReader | None = None
        self._generations: dict[Partition, int] = {}
        self._buffers: list[Events] = []  # for each batch of a fetch

    def start(self, told: Instructions) -> Fetched:
        """Connect, and build the decoders."""
        try:
            require_same_version(told)
            _, self._events = prepare(told)
            self._wanted = told.wanted
            self._reader = connect(told)
        except Exception as error:  # noqa: BLE001 - the daemon raises it
            return Fetched(error=error)
        return Fetched()

    def assign(self, positions: Mapping[Partition, tuple[int, int]]) -> None:
        """Also read these partitions, from these positions; with their generations."""
        for partition, (_, generation) in positions.items():
            self._generations[partition] = generation
        self._live().assign({partition: at for partition, (at, _) in positions.items()})

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""
        for partition in partitions:
            self._generations.pop(partition, None)
        self._live().drop(partitions)

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions until `resume`."""
        self._live().pause(partitions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions again."""
        self._live().resume(partitions)

    def fetch(self, seconds: float, most: int) -> Fetched:
        """Return the next records, decoded; errors of the source are returned, too."""
        reader = self._live()
        batches: list[PackedBatch] = []
        try:
            for number, records in enumerate(reader.poll(seconds, most)):
                if number == len(self._buffers):
                    self._buffers.append(Events())
                batches.append(
                    PackedBatch.of(
                        records,
                        self._generations.get(records.partition, -1),
                        self._events.decoder_of(records.partition),
                        self._buffers[number],
                        self._wanted,
                    )
                )
        except OutOfRangeError as error:
            return Fetched(error=error, generation=self._generations.get(error.partition, -1))
        except Exception as error:  # noqa: BLE001 - the daemon raises it
            return Fetched(batches, error=error)
        marks = {where: reader.highwater(where) for where in self._generations}
        known = {where: mark for where, mark in marks.items() if mark is not None}
        return Fetched(batches, known)

    def close(self) -> None:
        """Close the connection."""
        if self._reader is not None:
            self._reader.close()

    def _live(self) -> KafkaReader:
        if self._reader is None:
            raise RuntimeError("this reader was not started")
        return self._reader
