"""A topic to write to: what is the same over any client library.

A record waits in a bounded buffer, and is sent again and again while the broker is away, each
stored once (idempotent, acknowledged by all replicas). Only `flush` says that records are safe.
Once the broker has refused one for good, every later call fails: no checkpoint can pass it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from streamlearn.errors import (
    SinkDenied,
    SinkError,
    SinkFenced,
    SinkFull,
    SinkNotFound,
    SinkRefused,
)
from streamlearn.stream.records import name_bytes
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.transactions import Fencing, Transactions
    from streamlearn.stream.records import Header

FULL_SECONDS = 5.0  # how long `send` waits for room in a full buffer
OVERHEAD = 256  # bytes that a record batch of one record, its lengths and its times take
DEFAULT_LARGEST = 1_048_588  # Kafka's max.message.bytes, where we may not ask for it
COMMITTING = "the transaction before is still being committed"
NOT_TOLD = "does a broker answer, and is the topic still there?"
FOREVER_MS = 2**31 - 1  # of trying again: the daemon decides when to give up, not the library


class KafkaSink(Sink):
    """What the sinks of both client libraries share."""

    def __init__(self, connection: Connection, topic: str, fencing: Fencing | None) -> None:
        self._connection = connection
        self._topic = topic
        self._fencing = fencing
        self._largest = 0
        self._transactions: Transactions | None = None
        self._refusal: SinkError | None = None  # raised by every later call
        self._lock = threading.Lock()
        self._closed = False

    @property
    def largest(self) -> int:
        """Maximum bytes of a record's key, value, header names and header values together."""
        return self._largest

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Send one record."""
        self.send_all([(value, key, headers)])

    def _check_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal


def check_topic(
    connection: Connection, topic: str, *, exists: bool, rights: Iterable[str] | None
) -> None:
    """Refuse a topic that is not there or not writable; rights are None where nobody tells."""
    if not exists:
        raise SinkNotFound(
            f"kafka at {connection.bootstrap}: no topic {topic!r}: create it (streamlearn creates "
            "none, so that a mistyped name is noticed)"
        )
    if rights is not None and "WRITE" not in rights:
        raise SinkDenied(str(connection.denied([topic], "WRITE")))


def too_large(topic: str, size: int, largest: int) -> SinkRefused:
    """Return the error for a record that the broker would refuse."""
    return SinkRefused(
        f"topic {topic!r} takes {largest + OVERHEAD} bytes (max.message.bytes), and a record of "
        f"{size} with an overhead of {OVERHEAD} is to be sent: raise its max.message.bytes"
    )


def full(topic: str, why: str | None) -> SinkFull:
    """Return the error for a buffer that stays full; `why` is None where nobody tells."""
    return SinkFull(
        f"topic {topic!r}: the buffer stays full, records are not taken: {why or NOT_TOLD}"
    )


def undelivered(topic: str, seconds: float, why: str | None) -> SinkError:
    """Return the error for records that are still on their way."""
    return SinkError(
        f"topic {topic!r}: not all records delivered within {seconds:g} s: {why or NOT_TOLD}"
    )


def deleted(topic: str) -> SinkNotFound:
    """Return the error for a topic that is no longer there."""
    return SinkNotFound(
        f"topic {topic!r} was deleted while it was written to: create it, and start again"
    )


def refused(topic: str, why: str) -> SinkRefused:
    """Return the error for a record that was refused for good."""
    return SinkRefused(
        f"topic {topic!r}: a record was refused: {why}: start again when the topic is as it should "
        "be"
    )


def fenced(topic: str, seconds: float) -> SinkFenced:
    """Return the error of a producer whose transactions the brokers refuse."""
    return SinkFenced(
        f"topic {topic!r}: the brokers refuse the transactions of this instance: another one took "
        f"over, or this one was silent for {seconds:g} s; what was not committed is sent again "
        "from the last checkpoint"
    )


def not_begun(topic: str, why: str) -> SinkError:
    """Return the error of a producer that can't have transactions."""
    return SinkError(
        f"topic {topic!r}: transactions cannot be used: {why}: check the brokers' "
        "transaction.state.log.replication.factor and transaction.max.timeout.ms, or set "
        "checkpoint.transactions = false"
    )


def check_size(
    topic: str, largest: int, value: bytes | None, key: bytes | None, headers: Sequence[Header]
) -> None:
    """Refuse a record that the broker would refuse."""
    if (
        (value is None or 4 * len(value) < largest)
        and (key is None or 4 * len(key) < largest)
        and len(headers) < 16
    ):
        return  # as nearly all are; headers that are huge the library refuses
    size = size_of(value, key, headers)
    if size > largest:
        raise too_large(topic, size, largest)


def size_of(value: bytes | None, key: bytes | None, headers: Sequence[Header]) -> int:
    """Return how many bytes of `largest` a record takes."""
    size = len(value or b"") + len(key or b"")
    return size + sum(len(name_bytes(name)) + len(item or b"") + 10 for name, item in headers)
