"""The broker goes away in mid-stream and comes back, over both client libraries."""

from __future__ import annotations

import itertools
import signal
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from streamlearn.errors import SinkError
from streamlearn.kafka import Connection, Fencing, KafkaSource
from tests.broker.conftest import CLIENTS, MakeTopic, all_of, numbered, read, values, write

if TYPE_CHECKING:
    from streamlearn.kafka.sink import KafkaSink
    from tests.broker.apache_kafka import ApacheKafka

FENCINGS = (None, Fencing("predictions", 60.0))
AWAY = 4.0  # seconds; back-off has reached its maximum by then


def both(bootstrap: str) -> list[Connection]:
    """One outage is enough for both libraries."""
    return [Connection(bootstrap=bootstrap, client=client) for client in CLIENTS]


def assert_closed_soon(source: KafkaSource, sink: KafkaSink) -> None:
    """Closing waits for no broker, whatever is left to send and to commit."""
    sink.send(b"never")
    start = time.monotonic()
    sink.close()
    source.commit({next(iter(source.lag())): 0})
    source.close()
    assert time.monotonic() - start < 8  # of the 10 s that the whole daemon has


def outputs(connections: list[Connection], make_topic: MakeTopic) -> dict[str, KafkaSink]:
    """A sink of each kind over each library, by the topic that it writes to."""
    sinks = {}
    for connection, fencing in itertools.product(connections, FENCINGS):
        topic = make_topic()
        sinks[topic] = connection.sink(topic, fencing=fencing)
        sinks[topic].take_over(topic)
    return sinks


def all_values(connection: Connection, topic: str) -> list[bytes | None]:
    """The values that a topic has."""
    source = KafkaSource(connection, topics=[topic])
    source.open({}, None)
    got = values(all_of(source))
    source.close()
    return got


def test_source_and_sink_recover_or_can_be_closed(
    own_broker: ApacheKafka,
    make_topic: MakeTopic,
    producer: Producer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = make_topic(2)
    write(producer, topic, numbered(0, 100))
    connections = both(own_broker.bootstrap)
    sources = [
        KafkaSource(connection, topics=[topic], group_id="outage", refresh_seconds=0.5)
        for connection in connections
    ]
    for source in sources:
        source.open({}, None)
    written = outputs(connections, make_topic)
    got = [read(source, lambda some: len(values(some)) == 100) for source in sources]
    leaving = []
    for sink in outputs(connections, make_topic).values():
        leaving.append((KafkaSource(connections[0], topics=[topic], group_id="leaving"), sink))
        leaving[-1][0].open({}, None)
        leaving[-1][0].poll(0.25)
    own_broker.stop()
    try:
        away = time.monotonic() + AWAY
        for sink in written.values():
            sink.send(b"during")
        while time.monotonic() < away:
            for source in sources:
                assert source.poll(0.25) == []
                source.commit({})
        for source, sink in leaving:
            assert_closed_soon(source, sink)
        for sink in written.values():
            with pytest.raises(SinkError, match="topic"):
                sink.flush(0.5)
    finally:
        own_broker.start()
    back = time.monotonic()
    write(Producer({"bootstrap.servers": own_broker.bootstrap}), topic, numbered(100, 200), 1)
    for before, source in zip(got, sources, strict=True):
        left = 20.0 - (time.monotonic() - back)  # 2, if nobody else uses the machine
        after = read(source, lambda some: len(values(some)) == 100, seconds=left)
        assert values([*before, *after], 0) == numbered(0, 100)
        assert values([*before, *after], 1) == numbered(100, 200)
        source.close()
    for output, sink in written.items():
        sink.flush(10)
        sink.close()
        assert all_values(connections[0], output) == [b"during"]
    assert caplog.text.count("broker unreachable") >= len(CLIENTS)


@pytest.mark.nightly
def test_outputs_survive_an_unreachable_broker(
    own_broker: ApacheKafka, make_topic: MakeTopic
) -> None:
    connections = both(own_broker.bootstrap)
    written = outputs(connections, make_topic)
    process = own_broker.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        for sink in written.values():
            sink.send(b"during")
        time.sleep(15.0)  # longer than the libraries wait for an answer
    finally:
        process.send_signal(signal.SIGCONT)
    for output, sink in written.items():
        sink.flush(30)
        sink.send(b"after")
        sink.flush(30)
        sink.close()
        assert all_values(connections[0], output) == [b"during", b"after"]
