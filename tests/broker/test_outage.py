"""The broker goes away in mid-stream and comes back, over both client libraries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from streamlearn.daemon.kafka import Connection, KafkaSource
from streamlearn.errors import SinkError
from tests.broker.conftest import MakeTopic, all_of, numbered, read, values, write

if TYPE_CHECKING:
    from tests.broker.apache_kafka import ApacheKafka

AWAY = 4.0  # seconds; back-off has reached its maximum by then


def test_source_and_sink_go_on_by_themselves(
    own_broker: ApacheKafka,
    connection: Connection,
    make_topic: MakeTopic,
    producer: Producer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, output = make_topic(2), make_topic()
    write(producer, topic, numbered(0, 100))
    source = KafkaSource(connection, topics=[topic], group_id="outage", refresh_seconds=0.5)
    source.open({}, None)
    sink = connection.sink(output)
    got = read(source, lambda some: len(values(some)) == 100)
    own_broker.stop()
    try:
        away = time.monotonic() + AWAY
        sink.send(b"during")
        while time.monotonic() < away:
            assert source.poll(0.25) == []
            source.commit({})
        with pytest.raises(SinkError, match="not all records delivered"):
            sink.flush(0.5)
    finally:
        own_broker.start()
    back = time.monotonic()
    write(Producer({"bootstrap.servers": connection.bootstrap}), topic, numbered(100, 200), 1)
    got += read(source, lambda some: len(values(some)) == 100, seconds=5 + time.monotonic() - back)
    sink.flush(10)
    source.close()
    sink.close()
    assert values(got, 0) == numbered(0, 100)
    assert values(got, 1) == numbered(100, 200)
    assert "no answer from the broker" in caplog.text
    written = KafkaSource(connection, topics=[output])
    written.open({}, None)
    assert values(all_of(written)) == [b"during"]
    written.close()


def test_closing_does_not_wait_for_a_broker(
    own_broker: ApacheKafka, connection: Connection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    source = KafkaSource(connection, topics=[topic], group_id="outage")
    source.open({}, None)
    source.poll(0.25)
    sink = connection.sink(topic)
    own_broker.stop()
    try:
        sink.send(b"never")
        start = time.monotonic()
        sink.close()
        source.commit({next(iter(source.lag())): 0})
        source.close()
        assert time.monotonic() - start < 8  # of the 10 s that the whole daemon has
    finally:
        own_broker.start()
