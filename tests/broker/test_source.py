"""The source, on a real broker, over both client libraries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition
from kafka.errors import KafkaError

from streamlearn.errors import SourceChangedError, SourceNotFoundError
from streamlearn.kafka import Connection, KafkaSource, topics
from streamlearn.stream.polled import Polled
from streamlearn.stream.records import Partition
from tests.broker.conftest import (
    MakeTopic,
    all_of,
    create,
    delete,
    grow,
    numbered,
    positions,
    read,
    values,
    write,
)

Open = Callable[..., KafkaSource]


@pytest.fixture
def opened(connection: Connection) -> Iterator[Open]:
    """Return a function that opens a source; they are closed in the end."""
    sources: list[KafkaSource] = []

    def open_source(
        *names: str,
        at: dict[Partition, int] | None = None,
        identity: dict[str, str] | None = None,
        **options: Any,
    ) -> KafkaSource:
        source = KafkaSource(connection, topics=names, **{"refresh_seconds": 0.2, **options})
        source.open(at or {}, identity)
        sources.append(source)
        return source

    yield open_source
    for source in sources:
        source.close()


def test_every_record_once_in_order_and_resumed_anywhere(
    opened: Open, make_topic: MakeTopic, producer: Producer
) -> None:
    topic = make_topic(3)
    for partition in range(3):
        write(producer, topic, numbered(0, 2000), partition)
    whole = all_of(opened(topic, batch=700))
    for partition in range(3):
        assert values(whole, partition) == numbered(0, 2000)
    # Stop after some batches, resume from what was read, as often as needed.
    at: dict[Partition, int] = {}
    got = []
    for _ in range(4):
        source = opened(topic, at=at, batch=700)
        got += read(source, lambda some: len(values(some)) >= 700)  # and at most 1399
        at = positions(got)
        source.close()
    got += all_of(opened(topic, at=at))
    for partition in range(3):
        assert values(got, partition) == numbered(0, 2000)


def test_records_have_keys_times_and_headers(
    opened: Open, make_topic: MakeTopic, producer: Producer
) -> None:
    topic = make_topic()
    producer.produce(
        topic, b"value", b"key", 0, timestamp=1234, headers=[("h", b"\xff"), ("i", None)]
    )
    producer.produce(topic, None, None, 0, timestamp=1235)
    producer.flush(10)
    (first,) = [records for records in all_of(opened(topic)) if records.values]
    assert first.partition == Partition(topic, 0)
    assert list(first.offsets) == [0, 1]
    assert list(first.values) == [b"value", None], "a tombstone passes through"
    assert first.end == 2
    assert list(first.keys or ()) == [b"key", None]
    assert list(first.times or ()) == [1234, 1235]
    assert [list(headers) for headers in first.headers or ()] == [[("h", b"\xff"), ("i", None)], []]


def test_every_partition_has_a_position_at_once(opened: Open, make_topic: MakeTopic) -> None:
    topic = make_topic(4)
    source = opened(topic, start="latest")
    assert positions(source.poll(0)) == {Partition(topic, number): 0 for number in range(4)}


def test_start(opened: Open, make_topic: MakeTopic, producer: Producer) -> None:
    topic = make_topic(2)
    write(producer, topic, numbered(0, 10), 0, times=[1000 + 1000 * i for i in range(10)])
    assert values(all_of(opened(topic, start=5500))) == numbered(5, 10)
    assert values(all_of(opened(topic, start="1970-01-01T00:00:08Z"))) == numbered(7, 10)
    latest = [opened(topic, start=start) for start in ("latest", 99_000)]
    assert [source.ended() for source in latest] == [False, False], "positions are still to tell"
    write(producer, topic, numbered(10, 12), 0)
    write(producer, topic, numbered(12, 14), 1)
    for source in latest:
        got = read(source, lambda some: len(values(some)) == 4)
        assert sorted(values(got), key=str) == numbered(10, 14)


def test_new_partitions_are_read_from_their_beginning(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any, bootstrap: str
) -> None:
    topic = make_topic(1)
    write(producer, topic, numbered(0, 5))
    source = opened(topic, start="latest")
    at = positions(source.poll(0))
    grow(admin, topic, 3)
    fresh = Producer({"bootstrap.servers": bootstrap})  # one that knows of them
    for partition in (1, 2):
        write(fresh, topic, numbered(10 * partition, 10 * partition + 5), partition)
    got = read(source, lambda some: len(values(some)) == 10)
    assert values(got, 1) == numbered(10, 15)
    assert values(got, 2) == numbered(20, 25)
    # The same for one that resumes, and was not running when they appeared.
    late = opened(topic, start="latest", at=at, identity=source.identity())
    assert sorted(values(all_of(late)), key=str) == [*numbered(10, 15), *numbered(20, 25)]


def test_pattern_waits_for_a_topic_and_takes_later_ones(
    opened: Open, producer: Producer, admin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = f"pattern-{time.time_ns()}"
    source = opened(pattern=f"{prefix}-[ab]", start="latest")
    assert "waiting" in caplog.text
    assert source.poll(0.05) == []
    assert source.ended()
    got = []
    for name in ("a", "b", "c", "ab"):
        create(admin, f"{prefix}-{name}")
        write(producer, f"{prefix}-{name}", [name.encode()])
    got = read(source, lambda some: len(values(some)) == 2)
    assert sorted(values(got), key=str) == [b"a", b"b"]
    assert f"topic {prefix}-b" in source.identity()
    # A deleted one is let go; what is left is read on.
    admin.delete_topics([f"{prefix}-a"])
    write(producer, f"{prefix}-b", [b"more"])
    assert values(read(source, lambda some: bool(values(some)))) == [b"more"]


@pytest.mark.parametrize("order", ["even", "time"])
def test_a_backlog_is_drained_evenly_or_by_time(
    opened: Open, make_topic: MakeTopic, producer: Producer, order: str
) -> None:
    topic = make_topic(3)
    for partition in range(3):
        times = [1 + partition + 3 * i for i in range(3000)]  # 1 4 7, 2 5 8, 3 6 9
        write(producer, topic, [b"%d" % at for at in times], partition, times)
    source = opened(topic, order=order, batch=300)
    if order == "time":
        polled_values: list[bytes | None] = []
        while not source.ended():
            polled = Polled(source.poll(0.05))
            turns = range(len(polled)) if polled.order is None else polled.order
            polled_values += [polled.values[k] for k in turns]
        assert polled_values == numbered(1, 9001)
        assert source.poll(0.05) == [], "all is read, and more may come"
        write(producer, topic, [b"more"], 1, [9001])
        assert values(read(source, lambda some: bool(values(some)))) == [b"more"]
        return
    got = source.poll(1.0)
    time.sleep(0.5)  # what has not come yet is not waited for
    got += read(source, lambda some: len(values(got) + values(some)) >= 4500)
    share = [len(values(got, partition)) for partition in range(3)]
    # one after the other it would be 3000, 1500 and 0
    assert max(share) - min(share) <= 1500, share


def test_by_time_an_empty_partition_does_not_block(
    opened: Open, make_topic: MakeTopic, producer: Producer, bootstrap: str
) -> None:
    topic = make_topic(3)
    write(producer, topic, numbered(0, 10), 0, times=list(range(1, 11)))
    transaction = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    transaction.init_transactions(20)
    transaction.begin_transaction()
    transaction.produce(topic, b"late", partition=1, timestamp=1)
    transaction.flush(10)
    source = opened(topic, order="time")
    got = read(source, lambda some: len(values(some)) == 10)
    assert values(got) == numbered(0, 10)
    assert source.ended()
    transaction.commit_transaction(10)
    assert values(read(source, lambda some: bool(values(some)))) == [b"late"]


def test_the_log_before_a_position_is_unchanged(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any, bootstrap: str
) -> None:
    topic = make_topic()
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    writer.init_transactions(20)
    writer.begin_transaction()
    for value in numbered(0, 10):
        writer.produce(topic, value, partition=0)
    writer.commit_transaction(10)
    source = opened(topic)
    at = positions(all_of(source))
    assert at == {Partition(topic, 0): 11}, "past the mark of the transaction"
    kept = source.identity()
    name, mark = f"epoch {topic}/0", "{} 9 11"
    assert kept[name] == mark.format(0)
    resumed = opened(topic, at=at, identity=kept)
    assert resumed.identity() == kept
    write(producer, topic, numbered(10, 20))
    assert values(read(resumed, lambda some: bool(values(some)))) == numbered(10, 20)
    # as if the records of another leader had been read
    other = {**kept, name: mark.format(7)}
    with pytest.raises(SourceChangedError, match=f"{topic}/0 .* position 11"):
        read(opened(topic, at=at, identity=other), lambda some: bool(values(some)))
    reset = opened(topic, at=at, identity=other, reset_offsets=True)
    assert values(all_of(reset)) == numbered(10, 20)
    skipped = opened(topic, at={Partition(topic, 0): 12}, identity=other)
    assert values(all_of(skipped)) == numbered(11, 20)
    admin.delete_records({TopicPartition(topic, 0): 11})
    assert values(all_of(opened(topic, at=at, identity=kept))) == numbered(10, 20)


def test_aborted_transactions_are_skipped(
    opened: Open, make_topic: MakeTopic, bootstrap: str
) -> None:
    topic = make_topic()
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    writer.init_transactions(20)
    for number in range(6):
        writer.begin_transaction()
        for value in numbered(10 * number, 10 * number + 10):
            writer.produce(topic, value, partition=0)
        writer.flush(10)
        if number % 2:
            writer.abort_transaction(10)
        else:
            writer.commit_transaction(10)
    source = opened(topic)
    got = all_of(source)
    assert values(got) == numbered(0, 10) + numbered(20, 30) + numbered(40, 50)
    # The position is past the last mark, so that nothing is left to read, or to be deleted.
    assert positions(got) == {Partition(topic, 0): 66}
    assert source.lag() == {Partition(topic, 0): 0}
    everything = opened(topic, isolation="read_uncommitted")
    assert values(all_of(everything)) == numbered(0, 60)


def test_retention_overtakes_the_checkpoint(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any
) -> None:
    topic = make_topic()
    write(producer, topic, numbered(0, 100))
    here = Partition(topic, 0)
    admin.delete_records({TopicPartition(topic, 0): 60})
    with pytest.raises(SourceChangedError, match=r"offset 60.* at 50.*--on-gap=continue"):
        opened(topic, at={here: 50})
    source = opened(topic, at={here: 50}, on_gap="continue")
    assert values(all_of(source)) == numbered(60, 100)
    assert source.lost() == {here: 10}
    assert values(all_of(opened(topic, at={here: 60}))) == numbered(60, 100)
    with pytest.raises(SourceChangedError, match=r"offset 100.* at 101.*--reset-offsets"):
        opened(topic, at={here: 101})
    reset = opened(topic, at={here: 101}, reset_offsets=True)
    write(producer, topic, numbered(100, 101))
    assert values(read(reset, lambda some: bool(values(some)))) == numbered(100, 101)


@pytest.mark.parametrize("on_gap", ["stop", "continue"])
def test_retention_overtakes_a_slow_reader(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any, on_gap: str
) -> None:
    topic = make_topic(2)
    blob = b"x" * 20_000
    for partition in range(2):
        write(producer, topic, [blob] * 200, partition)
    here = Partition(topic, 0)
    source = opened(topic, batch=10, fetch_bytes=1 << 20, on_gap=on_gap)
    got = read(source, lambda some: len(values(some, 0)) >= 5)
    admin.delete_records({TopicPartition(topic, 0): 199})
    if on_gap == "stop":
        with pytest.raises(SourceChangedError, match=r"offset 199.*--on-gap=continue"):
            read(source, lambda some: len(values(some, 0)) >= 200)
        return
    got += all_of(source)
    assert values(got, 0)[-1] == blob
    assert len(values(got, 0)) + source.lost()[here] == 200
    assert len(values(got, 1)) == 200


def test_a_recreated_topic_is_noticed(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any
) -> None:
    topic = make_topic()
    write(producer, topic, numbered(0, 10))
    running = opened(topic)
    at, before = positions(all_of(running)), running.identity()
    assert values(all_of(opened(topic, at={}, identity=before))) == numbered(0, 10)
    delete(admin, topic)
    create(admin, topic)
    write(producer, topic, numbered(0, 20))
    with pytest.raises(SourceChangedError, match="topic"):
        opened(topic, at=at, identity=before)
    with pytest.raises(SourceChangedError, match="cluster"):
        opened(topic, at=at, identity={**before, "cluster": "another"})
    with pytest.raises(SourceChangedError, match=r"--reset-offsets"):
        read(running, lambda _: False, seconds=10)
    reset = opened(topic, at=at, identity=before, reset_offsets=True)
    assert values(all_of(reset)) == numbered(0, 20)


def test_no_record_of_a_recreated_topic_is_returned(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any
) -> None:
    """Nobody looks at the cluster here, and the position is a good one in the new topic too."""
    topic, other = make_topic(), make_topic()
    write(producer, topic, numbered(0, 10))
    running = opened(topic, other, refresh_seconds=600.0)
    at, before = positions(all_of(running)), running.identity()
    delete(admin, topic)
    create(admin, topic)
    write(producer, topic, numbered(100, 120))
    with pytest.raises(SourceChangedError, match=topic):
        read(running, lambda some: bool(values(some)))
    assert running.identity() == before
    reset = opened(topic, other, at=at, identity=before, reset_offsets=True)
    assert values(all_of(reset)) == numbered(100, 120)


def test_a_truncated_partition_is_noticed_while_it_is_read(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any
) -> None:
    topic = make_topic()
    write(producer, topic, numbered(0, 10))
    running = opened(topic, refresh_seconds=600.0)
    all_of(running)
    delete(admin, topic)
    create(admin, topic, 2)
    with pytest.raises(SourceChangedError, match=r"--reset-offsets"):
        read(running, lambda _: False, seconds=60)


def test_a_dropped_topic_is_recognized_later(
    opened: Open,
    producer: Producer,
    admin: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(topics, "DELETED_SECONDS", 0.5)
    prefix = f"back-{time.time_ns()}"
    there, gone = f"{prefix}-a", f"{prefix}-b"
    for topic in (there, gone):
        create(admin, topic)
        write(producer, topic, numbered(0, 10))
    source = opened(pattern=f"{prefix}-.*", group_id=prefix)
    at = positions(all_of(source))
    delete(admin, gone)
    read(source, lambda _: Partition(gone, 0) not in source.lag())
    caplog.clear()
    source.commit(at)
    source.close()  # waits for the commit
    assert "nknown" not in caplog.text  # topic or partition
    write(producer, there, numbered(10, 15))
    alone = opened(pattern=f"{prefix}-.*", at=at, identity=source.identity())
    assert values(all_of(alone)) == numbered(10, 15)
    create(admin, gone)
    write(producer, gone, numbered(0, 20))  # past the position in the one before
    with pytest.raises(SourceChangedError, match=gone):
        opened(pattern=f"{prefix}-.*", at=at, identity=alone.identity())


def test_a_mistyped_topic_is_refused_and_not_created(
    opened: Open, make_topic: MakeTopic, admin: Any
) -> None:
    topic = make_topic(name="clicks")
    wrong = topic.replace("clicks", "cliks")
    with pytest.raises(SourceNotFoundError, match=rf"'{wrong}'.*{topic}"):
        opened(wrong)
    assert wrong not in admin.list_topics()


def test_reading_a_deleted_topic_does_not_create_it(
    opened: Open,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topics, "DELETED_SECONDS", 1.0)
    topic = make_topic()
    write(producer, topic, numbered(0, 3))
    source = opened(topic)
    all_of(source)
    producer.purge()
    admin.delete_topics([topic])
    with pytest.raises(SourceNotFoundError, match="topic"):
        read(source, lambda _: False, seconds=15)
    assert topic not in admin.list_topics()


def test_identity_is_the_same_over_both_libraries(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    identities = []
    for client in ("kafka-python", "confluent"):
        source = KafkaSource(Connection(bootstrap=bootstrap, client=client), topics=[topic])
        source.open({}, None)
        identities.append(source.identity())
        source.close()
    assert identities[0] == identities[1]
    assert len(identities[0][f"topic {topic}"]) == 36


def test_commits_are_for_lag_tools(
    opened: Open, make_topic: MakeTopic, producer: Producer, admin: Any
) -> None:
    topic = make_topic(2)
    write(producer, topic, numbered(0, 10))
    source = opened(topic, group_id=f"group-{topic}")
    got = read(source, lambda some: len(values(some)) == 10 and None not in source.lag().values())
    assert source.lag() == {Partition(topic, 0): 0, Partition(topic, 1): 0}
    stored: dict[int, int] = {}
    deadline = time.monotonic() + 30
    while not stored:  # the first group makes the broker look for a coordinator
        assert time.monotonic() < deadline
        source.commit(positions(got))
        with suppress(KafkaError):
            found = admin.list_group_offsets(f"group-{topic}").get(f"group-{topic}", {})
            stored = {where.partition: at.offset for where, at in found.items() if at.offset >= 0}
    assert stored == {0: 10, 1: 0}
    source.close()
    assert values(all_of(opened(topic, group_id=f"group-{topic}"))) == numbered(0, 10)
