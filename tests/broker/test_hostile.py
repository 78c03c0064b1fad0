"""Records that nobody would write on purpose: each is learned or a dead letter, whole, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from kafka import KafkaProducer

from streamlearn.daemon.process.exits import Exit
from streamlearn.kafka import Connection, KafkaSource
from tests.broker.conftest import all_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import Producer

    from streamlearn.kafka.connection import Client
    from streamlearn.stream.records import Header
    from tests.broker.apache_kafka import ApacheKafka
    from tests.broker.conftest import MakeDaemons, MakeTopic


LATIN = "gr\udcf6\udcdfe"  # b"gr\xf6\xdfe", which is not UTF-8
GOOD = b'{"click":true,"x":1.0}'
FOREVER = str((1 << 63) - 1)
ANY_TIME = {
    "message_timestamp_after_max_ms": FOREVER,
    "message_timestamp_before_max_ms": FOREVER,
}
DEAD = '\n[dead_letters]\ntopic = "{}"\nmax_invalid_ratio = 1.0\n'


class Sent(NamedTuple):
    """A record, and its dead letter if it is to be one."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()
    time: int = 1_000_000


HOSTILE = {
    "null header": Sent(b"{", b"k", [("trace", None)]),
    "null and empty names and values": Sent(b"{", b"", [("", None), ("", b""), ("a", b"")]),
    "one name, many times": Sent(b"{", b"k", [("a", b"1"), ("b", None), ("a", b"2"), ("a", None)]),
    "controls": Sent(b"\x00{\x1b", b"\x00\x7f", [("\n\t\x01\x7f", b"\x00"), ("\u2028", b"\r\n")]),
    "not UTF-8": Sent(b"\xff\xfe", b"\xc3\x28", [("a", b"\xff\x00\xed\xa0\x80")]),
    "our own names": Sent(b"{", b"k", [("streamlearn.size", None), ("streamlearn.reason", b"x")]),
    "many headers": Sent(b"{", b"k", [(f"h{i}", b"%d" % i) for i in range(1000)]),
    "large key": Sent(b"{", b"k" * 300_000, [("a", b"1")]),
    "before 1970": Sent(b"{", b"k", time=-5),
    "no time": Sent(b"{", b"k", time=-1),
    "a time out of all calendars": Sent(b"{", b"k", time=1 << 62),
    "tombstone with headers": Sent(None, b"k", [("a", None)]),
    "good with null header": Sent(GOOD, None, [("a", None), ("", None)]),
    "good out of all calendars": Sent(GOOD, b"\xff", time=1 << 62),
    "good before 1970": Sent(GOOD, b"\xff", time=-(1 << 40)),
}
HUGE = Sent(b"{", b"k" * 990_000, [("a", b"1")])  # its key leaves no room for metadata
NAMES = [
    Sent(GOOD, b"k", [("a", b"1")]),
    Sent(b"{", b"k", [("a", b"1"), (LATIN, b"2"), ("b", b"")]),
    Sent(GOOD, b"k", [(LATIN, b"1")]),
    Sent(b"[", b"k", [("\U0010ffffa", b"1")]),
    Sent(GOOD, b"k"),
]
# As labels without an event: those whose time tells when they wait in vain, or that are too large
LABELS = [one for one in HOSTILE.values() if one.time == 1_000_000 and one.value is not None]
LATE = """
[labels]
topic = "{}"
hold_for = 10.0
orphans = true
"""
DROPPED = [("streamlearn.dropped", b"headers: one has a name that is not UTF-8")]


class Raw(str):
    """A name that kafka-python sends as the bytes that it stands for."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return str.encode(self, "utf-8", "surrogateescape")


@pytest.fixture
def raw(bootstrap: str) -> Iterator[Any]:
    """A plain producer that writes names of headers as they are."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=100, compression_type="gzip")
    yield producer
    producer.close()


def write(producer: Producer, topic: str, records: Sequence[Sent]) -> None:
    """Write these records to the first partition."""
    for value, key, headers, time in records:
        producer.produce(topic, value, key, 0, timestamp=time, headers=list(headers))
        producer.poll(0)
    assert producer.flush(30) == 0


def write_raw(producer: Any, topic: str, records: Sequence[Sent]) -> None:
    """Write these as one batch, whatever the names of their headers."""
    for value, key, headers, time in records:
        producer.send(topic, value, key, [(Raw(name), item) for name, item in headers], 0, time)
    producer.flush(30)


def letters(bootstrap: str, topic: str) -> dict[tuple[str, int], Sent]:
    """Each dead letter as it was, by the topic and offset that it came from."""
    source = KafkaSource(Connection(bootstrap=bootstrap), topics=[topic])
    source.open({}, None)
    found = {}
    for records in all_of(source):
        for i, value in enumerate(records.values):
            headers = list((records.headers or ())[i])
            metadata = dict(headers)
            own = headers[: [name for name, _ in headers].index("streamlearn.topic")]
            time = int(metadata["streamlearn.record_time"] or b"")
            place = (
                (metadata["streamlearn.topic"] or b"").decode(),
                int(metadata["streamlearn.offset"] or 0),
            )
            assert place not in found
            found[place] = Sent(value, (records.keys or ())[i], own, time)
    source.close()
    return found


def bad(topic: str, records: Sequence[Sent]) -> dict[tuple[str, int], Sent]:
    """Those that are to be dead letters, by their place."""
    return {
        (topic, i): one._replace(headers=list(one.headers))
        for i, one in enumerate(records)
        if one.value not in {GOOD, None}
    }


def test_a_dead_letter_has_key_headers_and_time_of_its_record(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, bootstrap: str
) -> None:
    topic, dead = make_topic(**ANY_TIME), make_topic()
    sent = [*HOSTILE.values(), HUGE]
    write(producer, topic, sent)
    daemons = make_daemons(topic, outputs=DEAD.format(dead))
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    assert daemons.records() == len(sent)
    sent[-1] = HUGE._replace(key=None, headers=[])
    assert letters(bootstrap, dead) == bad(topic, sent)


def test_header_names_that_are_not_utf_8_are_read(
    make_daemons: MakeDaemons, make_topic: MakeTopic, raw: Any, bootstrap: str, client: Client
) -> None:
    topic, dead = make_topic(), make_topic()
    for _ in range(2):
        write_raw(raw, topic, NAMES)
    sent = [*NAMES, *NAMES]
    daemons = make_daemons(topic, outputs=DEAD.format(dead))
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    assert daemons.records() == len(sent)
    expected = bad(topic, sent)
    if client == "confluent":  # which gives none of the headers then
        expected = {
            at: one._replace(headers=DROPPED) if LATIN in dict(one.headers) else one
            for at, one in expected.items()
        }
    assert letters(bootstrap, dead) == expected


def test_any_events_and_labels_are_read_to_the_end(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, bootstrap: str
) -> None:
    topic, labels, dead = make_topic(**ANY_TIME), make_topic(**ANY_TIME), make_topic()
    sent = [*HOSTILE.values()]
    for one in (topic, labels):
        write(producer, one, sent)
    daemons = make_daemons(topic, outputs=LATE.format(labels) + DEAD.format(dead))
    options = ["--set", "source.order=time", "--until", "end"]
    assert daemons.run(*options) == Exit.OK, daemons.log_text()[-3000:]
    assert daemons.records() == 2 * len(sent)
    found = letters(bootstrap, dead)
    assert {**bad(topic, sent), **bad(labels, sent)}.items() <= found.items()


def test_the_dead_letter_of_a_label_without_event_is_complete(
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    raw: Any,
    bootstrap: str,
    client: Client,
) -> None:
    topic, labels, dead = make_topic(), make_topic(), make_topic()
    sent = [
        one._replace(value=b'{"click":true,"id":"nobody%d"}' % i)
        for i, one in enumerate([*LABELS, NAMES[1]])
    ]
    write(producer, labels, sent[:-1])
    write_raw(raw, labels, sent[-1:])
    daemons = make_daemons(topic, outputs=LATE.format(labels) + DEAD.format(dead))
    options = ["--set", "source.order=time", "--until", "end"]
    assert daemons.run(*options) == Exit.OK, daemons.log_text()[-3000:]
    assert letters(bootstrap, dead) == {}, "they wait, in the checkpoint"
    later = [Sent(b'{"id":"e%d","x":1.0}' % i, time=2_000_000) for i in range(10)]  # believed
    write(producer, topic, later)
    assert daemons.run(*options) == Exit.OK, daemons.log_text()[-3000:]
    expected = bad(labels, sent)
    if client == "confluent":
        last = labels, len(LABELS)
        expected[last] = expected[last]._replace(headers=DROPPED)
    assert letters(bootstrap, dead) == expected


def test_a_damaged_batch_is_reported_and_can_be_skipped(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, own_broker: ApacheKafka
) -> None:
    topic = make_topic()
    for name in ("a", "damaged", "b"):
        write(producer, topic, [Sent(b'{"click":true,"%s":1.0}' % name.encode())] * 10)
    (log,) = own_broker.directory.glob(f"data/{topic}-0/*.log")
    data = log.read_bytes()
    with log.open("r+b") as file:
        file.seek(data.index(b"damaged"))
        file.write(b"D")
    daemons = make_daemons(topic)
    assert daemons.run("--until", "end") == Exit.SOURCE, daemons.log_text()[-3000:]
    assert f"{topic}:0:10 to 19" in daemons.log_text()
    assert daemons.records() == 10
    skip = f"{topic}:0:20"
    assert f"--skip-to {skip} " in daemons.log_text()
    assert daemons.run("--until", "end", "--skip-to", skip) == Exit.OK, daemons.log_text()[-3000:]
    assert daemons.records() == 20
