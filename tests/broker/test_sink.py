"""The sink for predictions and dead letters, on a real broker, over both client libraries."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from streamlearn.errors import SinkError, SinkFencedError, SinkNotFoundError, SinkRefusedError
from streamlearn.kafka import Connection, Fencing, KafkaSource, transactions
from streamlearn.kafka.sink import size_of
from tests.broker.conftest import MakeTopic, all_of, numbered, read, values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlearn.stream.sinks.sink import Record, Sink


def read_all(connection: Connection, topic: str) -> list[Any]:
    source = KafkaSource(connection, topics=[topic])
    source.open({}, None)
    got = all_of(source)
    source.close()
    return got


def until_refused(sink: Sink, value: bytes) -> SinkError:
    """Send this until it is refused: what an admin has changed takes effect a little later."""
    for _ in range(1000):
        sink.send(value)
        try:
            sink.flush(3)
        except SinkError as error:
            return error
    pytest.fail("it was taken a thousand times")


def lower_limit(admin: Any, connection: Connection, topic: str, limit: int) -> None:
    """From now on records of a topic may have so many bytes."""
    probe = connection.sink(topic)  # which knows the limit of before
    setting = {"max.message.bytes": str(limit)}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, setting)])
    until_refused(probe, bytes(limit))
    probe.close()


def test_flushed_records_are_stored_once(connection: Connection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    sink = connection.sink(topic)
    for number in range(5000):
        sink.send(b"%d" % number, key=b"k")
    sink.flush(20)
    sink.send(None, headers=[("reason", b"tombstone"), ("raw", b"\xff\x00")])
    sink.send(b"")
    sink.flush(20)
    sink.flush(20)  # nothing to do
    sink.close()
    sink.close()
    got = read_all(connection, topic)
    assert values(got) == [*numbered(0, 5000), None, b""]
    last = [records for records in got if records.values][-1]
    assert last.headers is not None
    assert list(last.headers[-2]) == [("reason", b"tombstone"), ("raw", b"\xff\x00")]


def test_a_full_buffer_is_flushed(connection: Connection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    sink = connection.sink(topic, buffer_bytes=1 << 16)
    blob = b"x" * 1000
    for _ in range(1000):
        sink.send(blob)
    sink.flush(20)
    sink.close()
    assert len(values(read_all(connection, topic))) == 1000


def test_the_largest_record_fits_and_a_larger_one_is_refused(
    connection: Connection, make_topic: MakeTopic
) -> None:
    for settings in ({}, {"max_message_bytes": "5000"}, {"max_message_bytes": "3000000"}):
        topic = make_topic(**settings)
        sink = connection.sink(topic)
        headers = [("reason", b"why"), ("offset", b"17")]
        room = sink.max_bytes - size_of(b"", b"key", headers)
        sink.send(bytes(room), key=b"key", headers=headers)
        sink.flush(20)
        with pytest.raises(SinkError, match=r"max\.message\.bytes"):
            sink.send(bytes(room + 1), key=b"key", headers=headers)
        sink.flush(20)
        sink.close()
        assert values(read_all(connection, topic)) == [bytes(room)]


@pytest.mark.parametrize("fencing", [None, Fencing("predictions", 60.0)])
def test_a_late_rejection_makes_every_flush_fail(
    connection: Connection, make_topic: MakeTopic, admin: Any, fencing: Fencing | None
) -> None:
    topic = make_topic()
    sink = connection.sink(topic, fencing=fencing)
    sink.take_over(topic)
    lower_limit(admin, connection, topic, 1000)
    sink.send(bytes(20_000))
    for _ in range(2):
        with pytest.raises(SinkRefusedError):
            sink.flush(20)
    with pytest.raises(SinkRefusedError):
        sink.send(b"small")
    sink.close()


@pytest.mark.parametrize("limit", ["1", "120", "300"])
def test_a_topic_of_tiny_records_refuses_larger_ones(
    connection: Connection, make_topic: MakeTopic, limit: str
) -> None:
    sink = connection.sink(make_topic(max_message_bytes=limit))
    with pytest.raises(SinkRefusedError, match=rf"max\.message\.bytes of {limit}"):
        sink.send(bytes(100))
    sink.flush(20)
    sink.close()


@pytest.mark.parametrize("fencing", [None, Fencing("predictions", 60.0)])
def test_one_rejection_among_many_is_noticed(
    connection: Connection, make_topic: MakeTopic, admin: Any, fencing: Fencing | None
) -> None:
    topic = make_topic(partitions=3)
    sink = connection.sink(topic, fencing=fencing)
    sink.take_over(topic)
    lower_limit(admin, connection, topic, 50_000)
    small: list[Any] = [(b"%d" % number, b"k%d" % number, []) for number in range(5000)]
    with suppress(SinkRefusedError):  # a transaction may be known to fail before all is sent
        sink.send_all([*small[:2500], (bytes(60_000), b"large", []), *small[2500:]])
    for _ in range(2):
        with pytest.raises(SinkRefusedError):
            sink.flush(20)
    sink.close()


@pytest.mark.parametrize("early", [True, False])
def test_a_topic_with_small_batches_gets_all_records(
    connection: Connection, make_topic: MakeTopic, admin: Any, *, early: bool
) -> None:
    """Also when the limit was lowered after the sink had asked: kafka-python splits its batches."""
    topic = make_topic(partitions=3, **({"max_message_bytes": "3000"} if early else {}))
    sink = connection.sink(topic)
    if not early:
        lower_limit(admin, connection, topic, 3000)
    sent = [b"%100d" % number for number in range(500)]
    sink.send_all([(value, b"k" + value, []) for value in sent])
    if early or connection.client == "kafka-python":
        sink.flush(20)
        assert set(values(read_all(connection, topic))) >= set(sent)
    else:
        with pytest.raises(SinkError, match="topic"):
            sink.flush(20)
    sink.close()


def test_a_flush_ends_while_others_send(connection: Connection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    sink = connection.sink(topic)
    handed_over, enough = 0, threading.Event()

    def send() -> None:
        nonlocal handed_over
        for number in itertools.count():
            if enough.is_set():
                return
            sink.send_all([(b"%5000d" % number, None, [("of", b"many")])] * 100)
            handed_over += 100

    sender = threading.Thread(target=send)
    looking = Consumer({"bootstrap.servers": connection.bootstrap, "group.id": topic})
    sender.start()
    try:
        for _ in range(20):
            before = handed_over
            sink.flush(10)
            _, end = looking.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
            assert end >= before
    finally:
        enough.set()
        sender.join()
    sink.flush(20)
    _, end = looking.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    assert end == handed_over > 100
    looking.close()
    sink.close()


def test_a_missing_topic_is_refused_and_not_created(
    connection: Connection, make_topic: MakeTopic, admin: Any
) -> None:
    wrong = f"{make_topic()}-mistyped"
    with pytest.raises(SinkError, match=wrong):
        connection.sink(wrong)
    assert wrong not in admin.list_topics()


def test_writing_to_a_deleted_topic_does_not_create_it(
    connection: Connection, make_topic: MakeTopic, admin: Any
) -> None:
    topic = make_topic()
    sink = connection.sink(topic)
    sink.send(b"before")
    sink.flush(20)
    admin.delete_topics([topic])
    until_refused(sink, b"after")
    deadline = time.monotonic() + 60
    error: SinkError | None = None
    while not isinstance(error, SinkNotFoundError):
        assert time.monotonic() < deadline, error
        with pytest.raises(SinkError) as raised:
            sink.flush(3)
        error = raised.value
    sink.close()
    assert topic not in admin.list_topics()


@pytest.fixture
def owned(connection: Connection) -> Iterator[Callable[[str, str], Sink]]:
    """Return a function that makes the output of a new owner of a checkpoint."""
    sinks = []

    def take_over(topic: str, identity: str) -> Sink:
        sinks.append(connection.sink(topic, fencing=Fencing("predictions", 60.0)))
        sinks[-1].take_over(identity)
        return sinks[-1]

    yield take_over
    for sink in sinks:
        sink.close()


def until_fenced(sink: Sink) -> None:
    """Send until the brokers refuse it."""
    with pytest.raises(SinkFencedError):  # noqa: PT012 -- which call is told of it first is the client's
        for _ in range(1000):
            sink.send_all([(b"late", None, [])] * 100)
            sink.flush(20)


def test_an_overtaken_owner_is_fenced(
    connection: Connection,
    make_topic: MakeTopic,
    owned: Callable[[str, str], Sink],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And does not end the transaction that its successor has open."""
    monkeypatch.setattr(transactions, "COMMIT_SECONDS", 60.0)
    topic = make_topic()
    first = owned(topic, topic)
    first.send(b"1")
    first.flush(20)
    first.send(b"unseen")
    source = KafkaSource(connection, topics=[topic], isolation="read_uncommitted")
    source.open({}, None)
    read(source, lambda got: b"unseen" in values(got))
    source.close()
    second = owned(topic, topic)
    second.send(b"2")
    second.flush(20)
    second.send(b"3")
    until_fenced(first)
    for _ in range(2):
        with pytest.raises(SinkFencedError):
            first.flush(20)
    with pytest.raises(SinkFencedError):
        first.send(b"late")
    second.flush(20)
    assert values(read_all(connection, topic)) == [b"1", b"2", b"3"]


def test_an_open_transaction_of_an_earlier_owner_is_never_read(
    bootstrap: str, connection: Connection, make_topic: MakeTopic, owned: Callable[[str, str], Sink]
) -> None:
    topic = make_topic()
    frozen = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": Fencing("predictions", 60.0).id(connection.client_id, topic),
        }
    )
    frozen.init_transactions(20)
    frozen.begin_transaction()
    frozen.produce(topic, b"unseen")
    assert frozen.flush(20) == 0
    sink = owned(topic, topic)
    sink.send(b"seen")
    sink.flush(20)
    assert values(read_all(connection, topic)) == [b"seen"]


def test_owners_of_other_models_are_not_fenced(
    connection: Connection, make_topic: MakeTopic, owned: Callable[[str, str], Sink]
) -> None:
    topic = make_topic()
    sinks = [owned(topic, f"{topic}-{name}") for name in ("a", "b")]
    for sink in sinks:
        sink.send(b"x")
        sink.flush(20)
    assert values(read_all(connection, topic)) == [b"x", b"x"]


def test_a_transaction_is_committed_without_a_flush(
    connection: Connection, make_topic: MakeTopic, owned: Callable[[str, str], Sink]
) -> None:
    topic = make_topic()
    sink = owned(topic, topic)
    sink.send_all([(b"soon", None, [])] * 100)
    source = KafkaSource(connection, topics=[topic])
    source.open({}, None)
    read(source, lambda got: len(values(got)) == 100)
    source.close()


def test_a_transaction_longer_than_the_broker_allows_is_refused(
    connection: Connection, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "LONGEST_SECONDS", 3600.0)
    sink = connection.sink(make_topic(), fencing=Fencing("predictions", 3600.0))
    with pytest.raises(SinkError, match=r"transaction\.max\.timeout\.ms"):
        sink.take_over("x")
    sink.close()


def test_undelivered_in_time(connection: Connection, make_topic: MakeTopic) -> None:
    sink = connection.sink(make_topic())
    some: list[Record] = [(b"x" * 1000, None, ())] * 10_000  # more than is stored in a moment

    def is_late() -> bool:
        sink.send_all(some)
        try:
            sink.flush(0)
        except SinkError:
            return True
        return False

    # this process may be interrupted for as long as a delivery takes, but not always
    assert any(is_late() for _ in range(20))
    sink.flush(20)
    sink.close()
