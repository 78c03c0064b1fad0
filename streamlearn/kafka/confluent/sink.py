"""Write with confluent-kafka."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from streamlearn.errors import SinkDeniedError, SinkError, SinkFencedError
from streamlearn.kafka.confluent.settings import DENIED, SECONDS, UNKNOWN, common, wait_for_cluster
from streamlearn.kafka.failures import ConnectionErrors
from streamlearn.kafka.sink import (
    DEFAULT_LARGEST,
    FOREVER_MS,
    FULL_SECONDS,
    OVERHEAD,
    KafkaSink,
    check_size,
    check_topic,
    deleted,
    fenced,
    full,
    not_begun,
    refused,
    undelivered,
)
from streamlearn.kafka.transactions import INIT_SECONDS, Transactions

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from confluent_kafka import Message

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.transactions import Fencing
    from streamlearn.stream.sinks.sink import Record

SERVE_EVERY = 256  # records; delivery reports accumulate until they are served
BATCH_BYTES = 1_000_000
GONE = {*UNKNOWN, KafkaError._UNKNOWN_PARTITION}  # partitions are only deleted with their topic
DELETED_MS = 10_000  # for which a topic must be missing until its records are rejected
MIN_LARGEST = 1000  # that the library accepts
WAIT_SECONDS = 0.05  # for space in the buffer, or for a running flush
COMMIT_TRY_SECONDS = 1.0
# Consequences of a transaction's fatal error, which has its own code.
FATAL = {KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}


class ConfluentSink(KafkaSink):
    """A topic as a sink, over a Producer."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        buffer_bytes: int,
        fencing: Fencing | None = None,
    ) -> None:
        super().__init__(connection, topic, fencing)
        self._reasons = ConnectionErrors()
        admin = AdminClient(common(connection, self._reasons))
        wait_for_cluster(admin, connection, self._reasons)
        self._max_bytes = _examine(admin, connection, topic)
        self._settings = {
            **common(connection, self._reasons),
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": FOREVER_MS,
            "message.max.bytes": max(self._max_bytes + 2 * OVERHEAD, MIN_LARGEST),
            # a larger batch would be rejected
            "batch.size": min(BATCH_BYTES, max(self._max_bytes, 1)),
            "queue.buffering.max.kbytes": max(buffer_bytes // 1024, 1),
            # kbytes count only values and keys, and a record takes about 500 bytes more
            "queue.buffering.max.messages": max(buffer_bytes // 512, 1000),
            "topic.metadata.propagation.max.ms": DELETED_MS,
            "linger.ms": 5,
            # A report for each record would cost as much as producing it: all are delivered when
            # none are left in the queue.
            "delivery.report.only.error": True,
        }
        self._producer: Any = None if fencing else Producer(self._settings)
        # `flush` holds `_lock`, or records sent meanwhile might keep it from ever finishing.

    def take_over(self, identity: str) -> None:
        """Create a producer whose transactions fence those of earlier owners."""
        if self._fencing is None:
            return
        name = self._fencing.id(self._connection.client_id, identity)
        timeout = self._fencing.timeout_ms
        self._producer = producer = Producer(
            {
                **self._settings,
                "transactional.id": name,
                "transaction.timeout.ms": timeout,
                "delivery.timeout.ms": timeout,  # must not be longer
            }
        )
        try:
            producer.init_transactions(INIT_SECONDS)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise self._connection.denied_transactions(name) from error
            raise not_begun(self._topic, error.args[0].str()) from error
        self._transactions = Transactions(self._begin, self._commit, self._abort)

    def _begin(self) -> None:
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._failure(error) from error

    def _commit(self, closed: threading.Event) -> None:
        while True:
            try:
                self._producer.commit_transaction(COMMIT_TRY_SECONDS)
            except KafkaException as error:
                if closed.is_set() or not error.args[0].retriable():
                    raise self._failure(error) from error
            else:
                return

    def _abort(self) -> None:
        with suppress(KafkaException):  # the next owner aborts it
            self._producer.abort_transaction(COMMIT_TRY_SECONDS)

    def _failure(self, error: KafkaException) -> SinkError:
        """Return the error for a producer's error; a fatal one is kept."""
        found = self._refusal or self._meaning(error.args[0])
        if error.args[0].fatal() or isinstance(found, SinkFencedError):
            self._refusal = found
        return found

    def _meaning(self, error: KafkaError) -> SinkError:
        """Return the error for a permanent error of the producer."""
        if self._fencing is not None and error.code() in FENCED:
            return fenced(self._topic, self._fencing.seconds)
        if error.code() in GONE:
            return deleted(self._topic)
        if error.code() in DENIED:
            return SinkDeniedError(str(self._connection.denied([self._topic], "WRITE")))
        return refused(self._topic, error.str())

    def send_all(self, records: Sequence[Record]) -> None:
        """Send records; wait for space in the buffer, but not forever."""
        at, deadline = 0, time.monotonic() + FULL_SECONDS
        while at < len(records):
            self._check_refusal()
            start, at = at, self._try(records, at)
            now = time.monotonic()
            if at > start:
                deadline = now + FULL_SECONDS
            elif now > deadline:
                error = full(self._topic, self._reasons.known())
                error.taken = at
                raise error

    def _try(self, records: Sequence[Record], start: int) -> int:
        """Send some records, unless a transaction is being committed; return the next place."""
        if self._transactions is None:
            return self._hand_over(records, start)
        with self._transactions.sending(WAIT_SECONDS) as ready:
            return self._hand_over(records, start) if ready else start

    def _hand_over(self, records: Sequence[Record], start: int) -> int:
        """Send some records, if the buffer has space soon; return the next place."""
        topic, max_bytes, report = self._topic, self._max_bytes, self._report
        produce = self._producer.produce
        at, seconds = start, 0.0
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            return at
        try:
            for value, key, headers in records[start : start + SERVE_EVERY]:
                check_size(topic, max_bytes, value, key, headers)
                given = headers if type(headers) is list else list(headers)
                produce(topic, value, key, -1, report, None, 0, given)
                at += 1
        except BufferError:
            seconds = WAIT_SECONDS
        except KafkaException as error:
            if self._transactions is None or error.args[0].code() not in FATAL:
                raise self._failure(error) from error
            self._transactions.hurry()  # its commit raises the reason
            seconds = WAIT_SECONDS
        finally:
            self._lock.release()
        self._serve(seconds)
        return at

    def _serve(self, seconds: float) -> None:
        """Serve delivery reports, waiting this long for the first."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:  # a fatal one
            raise self._failure(error) from error

    def _report(self, error: KafkaError | None, _: Message) -> None:
        """Keep the error of a record that was rejected."""
        if error is not None and (self._transactions is None or error.code() not in FATAL):
            self._refusal = self._refusal or self._meaning(error)

    def flush(self, seconds: float) -> None:
        """Deliver the records that were sent; senders wait meanwhile."""
        deadline = time.monotonic() + seconds
        late = partial(undelivered, self._topic, seconds)
        if not self._lock.acquire(timeout=seconds):
            raise late(self._reasons.known())
        try:
            while self._producer.flush(WAIT_SECONDS) and self._refusal is None:
                if time.monotonic() > deadline:
                    raise late(self._reasons.known())
        except KafkaException as error:  # a fatal one
            raise self._failure(error) from error
        finally:
            self._lock.release()
        self._check_refusal()
        if self._transactions and not self._transactions.commit(deadline - time.monotonic()):
            raise late(self._reasons.known())
        self._reasons.clear()

    def close(self) -> None:
        """Close the connection."""
        if self._closed or self._producer is None:
            return
        self._closed = True
        if self._transactions is not None:
            self._transactions.close()
        with suppress(KafkaException):  # a fatal one
            if self._producer.flush(1):
                self._producer.purge()
                self._producer.flush(1)  # serves the reports of purged records


def _examine(admin: AdminClient, connection: Connection, topic: str) -> int:
    """Refuse a topic that is not writable; return the maximum size of a record."""
    wanted = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=SECONDS
    )
    try:
        found = wanted[topic].result(SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() in DENIED:
            raise SinkDeniedError(str(connection.denied([topic], "WRITE"))) from error
        check_topic(connection, topic, exists=error.args[0].code() not in UNKNOWN, rights=None)
        raise SinkError(
            f"kafka at {connection.bootstrap}: topic {topic!r}: {error.args[0].str()}"
        ) from error
    operations = found.authorized_operations
    rights = None if operations is None else [operation.name for operation in operations]
    check_topic(connection, topic, exists=True, rights=rights)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    settings = admin.describe_configs([resource], request_timeout=SECONDS)
    try:
        return int(settings[resource].result(SECONDS + 1)["max.message.bytes"].value) - OVERHEAD
    except KafkaException:  # reading it is not allowed
        return DEFAULT_LARGEST - OVERHEAD
