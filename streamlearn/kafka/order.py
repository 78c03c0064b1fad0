"""In which order a backlog over several partitions is drained: evenly, or by the records' times.

Records wait here, by partition, until it is their turn. Within a partition their order is never
changed; over partitions it matters only while there is a backlog.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlearn.estimators.frames import Array
    from streamlearn.stream.records import Partition, Records


class Queue:
    """The waiting records of one partition."""

    __slots__ = ("_chunks", "_next", "records", "size")

    def __init__(self) -> None:
        self._chunks: deque[Records] = deque()
        self._next = 0  # in the first chunk
        self.records = 0
        self.size = 0  # bytes of keys and values, all chunks

    def add(self, records: Records, size: int) -> None:
        """Put records at the end."""
        self._chunks.append(records)
        self.records += len(records.offsets)
        self.size += size

    def take(self, most: int) -> Records:
        """Take at most so many records off the front, of one chunk."""
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
        """Return the times of at most so many records at the front; -1: not known."""
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

    def take_turns(self, turns: Array) -> list[Records]:
        """Take as many records off the front as there are turns, for these turns."""
        taken: list[Records] = []
        at = 0
        # a chunk without records only says that the position has moved on
        while self and (at < len(turns) or not len(self._chunks[0].offsets)):
            records = self.take(len(turns) - at)
            count = len(records.offsets)
            taken.append(replace(records, turns=turns[at : at + count]))
            at += count
        return taken

    def __bool__(self) -> bool:
        return bool(self._chunks)


class Backlog:
    """The records that wait, of all partitions."""

    def __init__(self, *, by_time: bool) -> None:
        self._by_time = by_time
        self._queues: dict[Partition, Queue] = {}

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return sum(queue.size for queue in self._queues.values())

    def sizes(self) -> dict[Partition, int]:
        """Return the bytes that wait in each partition."""
        return {partition: queue.size for partition, queue in self._queues.items()}

    def add(self, records: Records, size: int) -> None:
        """Let records wait."""
        if self._by_time and records.times is not None:
            records.times = list(records.times)  # each is looked at more than once
        self._queues.setdefault(records.partition, Queue()).add(records, size)

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Forget what waits of these partitions."""
        for partition in partitions:
            self._queues.pop(partition, None)

    def waits(self, partition: Partition) -> bool:
        """Whether records of this partition wait."""
        return bool(self._queues.get(partition))

    def take(self, most: int) -> list[Records]:
        """Take at most so many records whose turn it is."""
        waiting = dict(self._queues)
        if not waiting:  # all is read that there is
            return []
        taken = self._earliest(waiting, most) if self._by_time else self._evenly(waiting, most)
        for partition, queue in waiting.items():
            if not queue:
                del self._queues[partition]
            else:  # whom the rest of a division passed over comes first the next time
                self._queues[partition] = self._queues.pop(partition)
        return taken

    @staticmethod
    def _evenly(waiting: dict[Partition, Queue], most: int) -> list[Records]:
        """As many of each partition, and what one has too few of from the others."""
        taken: list[Records] = []
        while most > 0 and (busy := [queue for queue in waiting.values() if queue]):
            share = max(most // len(busy), 1)
            for queue in busy[:most]:
                taken.append(queue.take(share))
                most -= len(taken[-1].offsets)
        return taken

    @staticmethod
    def _earliest(waiting: dict[Partition, Queue], most: int) -> list[Records]:
        """The record with the least time at the head of a partition, again and again.

        When a partition runs out, what follows in it may be earlier than what the others have:
        that ends a batch. Ties go by partition.
        """
        queues = [waiting[partition] for partition in sorted(waiting)]
        times = [queue.times(most) for queue in queues]
        sizes = [len(one) for one in times]
        # at a head, a record waits for those before it in its partition: the latest of them counts
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
            taken += queue.take_turns(np.flatnonzero(owners == k))
        return taken
