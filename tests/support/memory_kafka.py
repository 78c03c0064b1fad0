"""A Kafka cluster in memory, for daemons in the process of a test: readers and sinks of it.

It keeps the promises of `KafkaReader` and `Sink`. tests/broker/test_memory_kafka.py compares it to
a real cluster.
"""

from __future__ import annotations

import random
import zlib
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.errors import SinkNotFoundError
from streamlearn.kafka import Connection
from streamlearn.kafka.reader import Cluster, KafkaReader, OutOfRangeError, Topic
from streamlearn.stream import Partition, Records
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pytest

    from streamlearn.stream.records import Header

IDLE_SECONDS = 0.002


CONTROL = (
    b"\x00control\x00"  # in place of a value: a marker of a transaction, which is not returned
)


class Written(NamedTuple):
    """A record of a topic."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()
    time: int = 0  # milliseconds since 1970


class MemoryCluster:
    """Topics, and all connections to them."""

    def __init__(self, seed: int = 0) -> None:
        self.draw = random.Random(seed)
        self.logs: dict[Partition, list[Written]] = {}
        self.firsts: dict[Partition, int] = {}  # records before them were deleted
        self.ids: dict[str, str] = {}
        self.committed: dict[Partition, int] = {}
        self.epoch = 3  # of the leader that wrote the first record; each record has its own
        self.on_poll: Callable[[], None] = lambda: None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let all connections be to this cluster."""

        def reader(connection: Connection, **given: Any) -> KafkaReader:
            del connection
            return MemoryReader(self, **given)

        def sink(connection: Connection, topic: str, **_: Any) -> Sink:
            del connection
            return MemorySink(self, topic)

        monkeypatch.setattr(Connection, "reader", reader)
        monkeypatch.setattr(Connection, "sink", sink)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, or add partitions to it."""
        self.ids.setdefault(topic, f"id-{len(self.ids)}")
        for number in range(partitions):
            self.logs.setdefault(Partition(topic, number), [])
            self.firsts.setdefault(Partition(topic, number), 0)

    def delete_before(self, partition: Partition, offset: int) -> None:
        """Delete the oldest records."""
        self.firsts[partition] = offset

    def write(
        self,
        topic: str,
        values: Iterable[bytes | None],
        partition: int = 0,
        times: Sequence[int] | None = None,
    ) -> None:
        """Append records; each is a second after the one before, unless `times` are given."""
        log = self.logs[Partition(topic, partition)]
        for i, value in enumerate(values):
            time = 1000 * len(log) if times is None else times[i]
            log.append(Written(value, b"k%d" % i, (), time))

    def read(self, topic: str) -> list[Written]:
        """Return all records of a topic."""
        return [one for where, log in self.logs.items() if where.topic == topic for one in log]

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return sum(where.topic == topic for where in self.logs)


class MemoryReader(KafkaReader):
    """A reader; `poll` returns random stretches."""

    def __init__(
        self, cluster: MemoryCluster, *, isolation: str, fetch_bytes: int, group: str | None
    ) -> None:
        assert isolation in {"read_committed", "read_uncommitted"}
        assert fetch_bytes > 0
        self.of, self.group = cluster, group
        self.at: dict[Partition, int] = {}
        self.paused: set[Partition] = set()
        self.marks: dict[Partition, int] = {}
        self.closed = False

    def names(self) -> list[str]:
        return [*self.of.ids, "__consumer_offsets"]

    def cluster(self, topics: Sequence[str]) -> Cluster:
        return Cluster("memory", 1, self.topics(topics))

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        ids = self.of.ids
        return {name: Topic(ids[name], self.of.partitions(name)) for name in names if name in ids}

    def first(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {where: self.of.firsts[where] for where in partitions}

    def last(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {where: len(self.of.logs[where]) for where in partitions}

    def since(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int | None]:
        found: dict[Partition, int | None] = {}
        for where in partitions:
            log, first = self.of.logs[where], self.of.firsts[where]
            places = (i for i in range(first, len(log)) if log[i].time >= moment)
            found[where] = next(places, None)
        return found

    def assign(self, positions: Mapping[Partition, int]) -> None:
        assert not positions.keys() & self.at.keys()
        self.at.update(positions)

    def drop(self, partitions: Iterable[Partition]) -> None:
        for where in list(partitions):
            self.at.pop(where, None)
            self.marks.pop(where, None)
            self.paused.discard(where)

    def pause(self, partitions: Iterable[Partition]) -> None:
        self.paused.update(partitions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        self.paused.difference_update(partitions)

    def poll(self, seconds: float, most: int) -> list[Records]:
        self.of.on_poll()
        found: list[Records] = []
        left, draw = most, self.of.draw
        for where in draw.sample(sorted(self.at), len(self.at)):
            log, at = self.of.logs[where], self.at[where]
            if not self.of.firsts[where] <= at <= len(log):
                raise OutOfRangeError(where, f"no record at {at}")
            if where in self.paused:
                continue
            self.marks[where] = len(log)
            end = min(at + draw.randint(1, most), len(log), at + left)
            if end > at:
                left -= end - at
                self.at[where] = end
                found.append(self.stretch(where, at, end))
        if not found and seconds > 0.0:
            Event().wait(min(seconds, IDLE_SECONDS))
        return found

    def stretch(self, where: Partition, at: int, end: int) -> Records:
        """Return some records."""
        log = self.of.logs[where]
        offsets = [i for i in range(at, end) if log[i].value != CONTROL]
        chosen = [log[i] for i in offsets]
        return Records(
            where,
            offsets,
            [one.value for one in chosen],
            end,
            keys=[one.key for one in chosen],
            times=[one.time for one in chosen],
            headers=[one.headers for one in chosen],
            epochs=[self.of.epoch + i for i in offsets],
        )

    def highwater(self, partition: Partition) -> int | None:
        return self.marks.get(partition)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        if self.group is not None:
            self.of.committed.update(positions)

    def close(self) -> None:
        self.closed = True


class MemorySink(Sink):
    """A sink; a record's key chooses its partition."""

    def __init__(self, cluster: MemoryCluster, topic: str) -> None:
        if topic not in cluster.ids:
            raise SinkNotFoundError(f"no topic {topic!r}")
        self.of, self.topic = cluster, topic
        self.buffer: list[Written] = []

    @property
    def max_bytes(self) -> int:
        return 1 << 20

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        self.buffer.append(Written(value, key, list(headers)))

    def flush(self, seconds: float) -> None:
        assert seconds > 0.0
        for one in self.buffer:
            number = zlib.crc32(one.key or b"") % self.of.partitions(self.topic)
            self.of.logs[Partition(self.topic, number)].append(one)
        self.buffer.clear()

    def close(self) -> None:
        self.buffer.clear()
