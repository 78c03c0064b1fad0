"""The cluster in memory answers what a real one answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.kafka.reader import OutOfRangeError
from streamlearn.stream import Partition
from tests.broker.conftest import write
from tests.support.memory_kafka import MemoryCluster, MemoryReader

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from streamlearn.kafka import Connection
    from streamlearn.kafka.reader import KafkaReader
    from tests.broker.conftest import MakeTopic

ABOUT: dict[str, Any] = {"isolation": "read_committed", "fetch_bytes": 1 << 20, "group": None}
TIMES = [1000, 3000, 2000, 5000]


def read(reader: KafkaReader, where: Partition, end: int) -> list[tuple[Any, ...]]:
    """Poll until a position; return the records."""
    found: list[tuple[Any, ...]] = []
    deadline = time.monotonic() + 20.0
    while not found or found[-1][0] < end - 1:
        assert time.monotonic() < deadline
        for one in reader.poll(0.25, 2):
            assert one.partition == where
            assert one.end == one.offsets[-1] + 1
            columns = (one.offsets, one.values, one.keys or (), one.times or ())
            found += zip(*columns, strict=True)
    return found


def answers(reader: KafkaReader, topic: str) -> dict[str, Any]:
    """What a reader says of a topic of two partitions, of which the first has records."""
    full, empty = Partition(topic, 0), Partition(topic, 1)
    said: dict[str, Any] = {
        "names": topic in reader.names(),
        "topics": [one.partitions for one in reader.topics([topic, "no-such-topic"]).values()],
        "cluster": list(reader.cluster([topic, "no-such-topic"]).topics),
        "first": reader.first([full, empty]),
        "last": reader.last([full, empty]),
        "since": [reader.since([full, empty], t) for t in (0, 1500, 2500, 9000)],
    }
    reader.assign({full: 1})
    said["highwater before"] = reader.highwater(full)
    said["records"] = read(reader, full, len(TIMES))
    said["highwater"] = reader.highwater(full)
    reader.drop([full])
    said["dropped"] = reader.poll(0.25, 10)
    reader.assign({full: 0})
    reader.pause([full])
    said["paused"] = reader.poll(0.25, 10)
    reader.resume([full])
    said["resumed"] = read(reader, full, len(TIMES))
    reader.drop([full])
    reader.assign({full: 9})
    with pytest.raises(OutOfRangeError) as raised:
        read(reader, full, 10)
    said["out of range"] = raised.value.partition.number
    reader.close()
    return said


def test_the_cluster_in_memory_answers_as_a_real_one(
    connection: Connection, make_topic: MakeTopic, producer: Producer
) -> None:
    topic, cluster = make_topic(2), MemoryCluster()
    values = [b"a", None, b"c", b""]
    write(producer, topic, values, times=TIMES)
    cluster.create(topic, 2)
    cluster.write(topic, values, times=TIMES)
    real = answers(connection.reader(**ABOUT), topic)
    assert answers(MemoryReader(cluster, **ABOUT), topic) == real
