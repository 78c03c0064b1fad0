"""Topics as sinks: what does not depend on the client library.

Records wait in a bounded buffer. They are retried while the broker is unreachable, and each is
stored once (idempotent, acknowledged by all replicas). Only after `flush` are they delivered. After
the broker has rejected a record permanently, every later call fails, so that no checkpoint can pass
it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from streamlearn.errors import (
    SinkDeniedError,
    SinkError,
    SinkFencedError,
    SinkFullError,
    SinkNotFoundError,
    SinkRefusedError,
)
from streamlearn.stream.records import name_bytes
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.transactions import Fencing, Transactions
    from streamlearn.stream.records import Header

FULL_SECONDS = 5.0  # maximum time that `send` waits on a full buffer
OVERHEAD = 256  # bytes of a record batch with one record, without the record's data
DEFAULT_LARGEST = 1_048_588  # Kafka's default max.message.bytes, used if it may not be read
COMMITTING = "the previous transaction is still being committed"
UNKNOWN_REASON = "check that the broker is reachable and that the topic exists"
FOREVER_MS = 2**31 - 1  # of retries: the daemon decides when to give up, not the library


class KafkaSink(Sink):
    """What the sinks of both client libraries share."""

    def __init__(self, connection: Connection, topic: str, fencing: Fencing | None) -> None:
        self._connection = connection
        self._topic = topic
        self._fencing = fencing
        self._max_bytes = 0
        self._transactions: Transactions | None = None
        self._refusal: SinkError | None = None  # raised by every later call
        self._lock = threading.Lock()
        self._closed = False

    @property
    def max_bytes(self) -> int:
        """Maximum bytes of a record's key, value, header names and header values together."""
        return self._max_bytes

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
    """Refuse a topic that does not exist or is not writable; rights are None if unknown."""
    if not exists:
        raise SinkNotFoundError(
            f"kafka at {connection.bootstrap}: no topic {topic!r}; create it, or check its name "
            "(streamlearn creates no topics)"
        )
    if rights is not None and "WRITE" not in rights:
        raise SinkDeniedError(str(connection.denied([topic], "WRITE")))


def too_large(topic: str, size: int, max_bytes: int) -> SinkRefusedError:
    """Return the error for a record that is too large for the topic."""
    return SinkRefusedError(
        f"topic {topic!r}: a record of {size} bytes with an overhead of {OVERHEAD} exceeds its "
        f"max.message.bytes of {max_bytes + OVERHEAD}; raise max.message.bytes"
    )


def full(topic: str, why: str | None) -> SinkFullError:
    """Return the error for a buffer that stays full; `why` is None if unknown."""
    return SinkFullError(f"topic {topic!r}: the buffer stays full; {why or UNKNOWN_REASON}")


def undelivered(topic: str, seconds: float, why: str | None) -> SinkError:
    """Return the error for records that were not delivered in time."""
    return SinkError(
        f"topic {topic!r}: not all records delivered within {seconds:g} s; {why or UNKNOWN_REASON}"
    )


def deleted(topic: str) -> SinkNotFoundError:
    """Return the error for a topic that was deleted."""
    return SinkNotFoundError(
        f"topic {topic!r} was deleted while it was written to; create it and restart"
    )


def refused(topic: str, why: str) -> SinkRefusedError:
    """Return the error for a record that was rejected permanently."""
    # records have the time of this machine, of which a broker allows an hour too much
    remedy = "compare this machine's clock" if "timestamp" in why.lower() else "fix the topic"
    return SinkRefusedError(f"topic {topic!r}: a record was rejected: {why}; {remedy} and restart")


def fenced(topic: str, seconds: float) -> SinkFencedError:
    """Return the error for a producer whose transactions are fenced."""
    return SinkFencedError(
        f"topic {topic!r}: the transactions of this instance are fenced: another instance took "
        f"over, or this one was silent for {seconds:g} s; restart to send what was not committed "
        "from the last checkpoint"
    )


def not_begun(topic: str, why: str) -> SinkError:
    """Return the error for a producer that cannot use transactions."""
    return SinkError(
        f"topic {topic!r}: transactions cannot be used: {why}; check the brokers' "
        "transaction.state.log.replication.factor and transaction.max.timeout.ms, or set "
        "checkpoint.transactions = false"
    )


def check_size(
    topic: str, max_bytes: int, value: bytes | None, key: bytes | None, headers: Sequence[Header]
) -> None:
    """Refuse a record that is too large for the topic."""
    if (
        (value is None or 4 * len(value) < max_bytes)
        and (key is None or 4 * len(key) < max_bytes)
        and len(headers) < 16
    ):
        return  # nearly always; the library refuses huge headers
    size = size_of(value, key, headers)
    if size > max_bytes:
        raise too_large(topic, size, max_bytes)


def size_of(value: bytes | None, key: bytes | None, headers: Sequence[Header]) -> int:
    """Return the bytes of a record that count against `max_bytes`."""
    size = len(value or b"") + len(key or b"")
    return size + sum(len(name_bytes(name)) + len(item or b"") + 10 for name, item in headers)
