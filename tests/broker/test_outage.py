"""The broker goes away in mid-stream and comes back, over both client libraries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from streamlearn.daemon.kafka import Connection, KafkaSource
from streamlearn.errors import SinkError
from tests.broker.conftest import CLIENTS, MakeTopic, all_of, numbered, read, values, write

if TYPE_CHECKING:
    from streamlearn.daemon.kafka.sink import KafkaSink
    from tests.broker.apache_kafka import ApacheKafka

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


def test_source_and_sink_go_on_by_themselves_or_are_closed(
    own_broker: ApacheKafka,
    make_topic: MakeTopic,
    producer: Producer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, outputs = make_topic(2), [make_topic() for _ in CLIENTS]
    write(producer, topic, numbered(0, 100))
    connections = both(own_broker.bootstrap)
    sources = [
        KafkaSource(connection, topics=[topic], group_id="outage", refresh_seconds=0.5)
        for connection in connections
    ]
    for source in sources:
        source.open({}, None)
    sinks = [one.sink(output) for one, output in zip(connections, outputs, strict=True)]
    got = [read(source, lambda some: len(values(some)) == 100) for source in sources]
    leaving = [
        (KafkaSource(connection, topics=[topic], group_id="leaving"), connection.sink(make_topic()))
        for connection in connections
    ]
    for source, _ in leaving:
        source.open({}, None)
        source.poll(0.25)
    own_broker.stop()
    try:
        away = time.monotonic() + AWAY
        for sink in sinks:
            sink.send(b"during")
        while time.monotonic() < away:
            for source in sources:
                assert source.poll(0.25) == []
                source.commit({})
        for source, sink in leaving:
            assert_closed_soon(source, sink)
        for sink in sinks:
            with pytest.raises(SinkError, match="not all records delivered"):
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
    for connection, sink, output in zip(connections, sinks, outputs, strict=True):
        sink.flush(10)
        sink.close()
        written = KafkaSource(connection, topics=[output])
        written.open({}, None)
        assert values(all_of(written)) == [b"during"]
        written.close()
    assert caplog.text.count("no answer from the broker") >= len(CLIENTS)
