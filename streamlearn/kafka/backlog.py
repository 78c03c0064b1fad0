"""Drain a backlog over several partitions: evenly, or in the order of the records' times.

The order within a partition never changes. The order across partitions matters only while there is
a backlog.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlearn.core.arrays import Array
    from streamlearn.stream.records import Partition, Records


class PartitionQueue:
    """The records of one partition that were not taken yet."""

    __slots__ = ("_chunks", "_next", "records", "size")

    def __init__(self) -> None:
        self._chunks: deque[Records] = deque()
        self._next = 0  # in the first chunk
        self.records = 0
        self.size = 0  # bytes of keys and values, all chunks

    def add(self, records: Records, size: int) -> None:
        """Append records."""
        self._chunks.append(records)
        self.records += len(records.offsets)
        self.size += size

    def take(self, most: int) -> Records:
        """Take records of one chunk from the front, at most this many."""
        chunk, start = self._chunks[0], self._next
        stop = min(start + most, len(chunk.offsets))
        left = self.records - (stop - start)
        self.size -= self.size * (stop - start) // max(self.records, 1)
        self.records = left
        if stop < len(chunk.offsets):
            self._next = stop
        else:
            self._chunks.popleft()
            self._next = 0
            if start == 0:
                return chunk
        return chunk.part(start, stop)

    def times(self, most: int) -> Array:
        """Return the times of the first records, at most this many; -1 is unknown."""
        found, start = [np.empty(0, np.int64)], self._next
        for chunk in self._chunks:
            stop = min(start + most, len(chunk.offsets))
            part = np.full(stop - start, -1, np.int64)
            if chunk.times is not None:
                part[:] = chunk.times[start:stop]
            found.append(part)
            most, start = most - len(part), 0
            if most == 0:
                break
        return np.concatenate(found)

    def take_ranked(self, ranks: Array) -> list[Records]:
        """Take a record from the front for each of these ranks."""
        taken: list[Records] = []
        at = 0
        # a chunk without records only advances the position
        while self and (at < len(ranks) or not len(self._chunks[0].offsets)):
            records = self.take(len(ranks) - at)
            count = len(records.offsets)
            taken.append(replace(records, ranks=ranks[at : at + count]))
            at += count
        return taken

    def __bool__(self) -> bool:
        return bool(self._chunks)


class Backlog:
    """The records of all partitions that were not taken yet."""

    def __init__(self, *, by_time: bool) -> None:
        self._by_time = by_time
        self._queues: dict[Partition, PartitionQueue] = {}

    @property
    def size(self) -> int:
        """Bytes of all records."""
        return sum(queue.size for queue in self._queues.values())

    def sizes(self) -> dict[Partition, int]:
        """Return the bytes of each partition."""
        return {partition: queue.size for partition, queue in self._queues.items()}

    def add(self, records: Records, size: int) -> None:
        """Add records."""
        if self._by_time and records.times is not None:
            records.times = list(records.times)  # each is used more than once
        self._queues.setdefault(records.partition, PartitionQueue()).add(records, size)

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Drop the records of these partitions."""
        for partition in partitions:
            self._queues.pop(partition, None)

    def waits(self, partition: Partition) -> bool:
        """Whether there are records of this partition."""
        return bool(self._queues.get(partition))

    def take(self, most: int) -> list[Records]:
        """Take the next records, at most this many."""
        waiting = dict(self._queues)
        if not waiting:
            return []
        taken = self._earliest(waiting, most) if self._by_time else self._evenly(waiting, most)
        for partition, queue in waiting.items():
            if not queue:
                del self._queues[partition]
            else:  # partitions that the division left out come first next time
                self._queues[partition] = self._queues.pop(partition)
        return taken

    @staticmethod
    def _evenly(waiting: dict[Partition, PartitionQueue], most: int) -> list[Records]:
        """Take equal shares, and more from others where a partition has too few."""
        taken: list[Records] = []
        while most > 0 and (busy := [queue for queue in waiting.values() if queue]):
            share = max(most // len(busy), 1)
            for queue in busy[:most]:
                taken.append(queue.take(share))
                most -= len(taken[-1].offsets)
        return taken

    @staticmethod
    def _earliest(waiting: dict[Partition, PartitionQueue], most: int) -> list[Records]:
        """Merge the partitions by time, with ties in the order of partitions.

        The batch ends where a partition runs out: its next record may be earlier than those of
        the others.
        """
        queues = [waiting[partition] for partition in sorted(waiting)]
        times = [queue.times(most) for queue in queues]
        sizes = [len(one) for one in times]
        # a record waits for those before it in its partition, so their latest time counts
        latest = np.concatenate([np.maximum.accumulate(one) for one in times])
        order = np.argsort(latest, kind="stable")
        ends = np.cumsum(sizes)
        out = [
            0 if size == 0 else np.flatnonzero(order == end - 1)[0] + 1
            for queue, size, end in zip(queues, sizes, ends.tolist(), strict=True)
            if size == queue.records
        ]
        owners = np.repeat(np.arange(len(queues)), sizes)[order][: min([most, *out])]
        taken: list[Records] = []
        for k, queue in enumerate(queues):
            taken += queue.take_ranked(np.flatnonzero(owners == k))
        return taken
