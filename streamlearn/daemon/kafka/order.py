"""In which order a backlog over several partitions is drained: evenly, or by the records' times.

Records wait here, by partition, until it is their turn. Within a partition their order is never
changed; over partitions it matters only while there is a backlog.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from streamlearn.stream.source import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Iterable


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

    def head(self) -> tuple[Records, int]:
        """Return the first chunk, and where in it the first waiting record is."""
        return self._chunks[0], self._next

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
        return cut(chunk, start, stop)

    def __bool__(self) -> bool:
        return bool(self._chunks)


def cut(records: Records, start: int, stop: int) -> Records:
    """Return a part of some records.

    >>> part = cut(Records(Partition("t"), [4, 7, 9], [b"a", b"b", b"c"], 12), 1, 2)
    >>> part.offsets, part.end, cut(Records(Partition("t"), [4, 7], [b"a", b"b"], 12), 1, 2).end
    ([7], 8, 12)
    """
    last = stop == len(records.offsets)
    return Records(
        records.partition,
        records.offsets[start:stop],
        records.values[start:stop],
        records.end if last else records.offsets[stop - 1] + 1,
        None if records.keys is None else records.keys[start:stop],
        None if records.times is None else records.times[start:stop],
        None if records.headers is None else records.headers[start:stop],
    )


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
        that ends a batch.
        """
        taken: list[Records] = []
        while most > 0 and all(waiting.values()):
            busy = sorted((_time(queue), partition) for partition, queue in waiting.items())
            partition = busy[0][1]
            queue = waiting[partition]
            taken.append(queue.take(min(_run(queue, busy[1] if busy[1:] else None), most)))
            most -= len(taken[-1].offsets)
        return taken


def _time(queue: Queue) -> int:
    chunk, start = queue.head()
    if chunk.times is None or start == len(chunk.offsets):
        return -1
    return chunk.times[start]


def _run(queue: Queue, other: tuple[int, Partition] | None) -> int:
    """Return how many records come before another partition's first; ties go by partition."""
    chunk, start = queue.head()
    if other is None or chunk.times is None:
        return len(chunk.offsets)
    stop = start
    while stop < len(chunk.offsets) and (chunk.times[stop], chunk.partition) < other:
        stop += 1
    return max(stop - start, 1)
