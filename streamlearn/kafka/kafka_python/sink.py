"""Write with kafka-python."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    UnknownError,
)
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.protocol.producer import InitProducerIdRequest

from streamlearn.errors import SinkDeniedError, SinkError, SinkFullError, SourceError
from streamlearn.kafka.kafka_python.headers import Headers, Nulls
from streamlearn.kafka.kafka_python.settings import connect
from streamlearn.kafka.sink import (
    COMMITTING,
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
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.transactions import Fencing
    from streamlearn.stream.records import Header
    from streamlearn.stream.sinks.sink import Record


UNKNOWN, DENIED = (
    3,
    29,
)  # Kafka's error codes for a topic that does not exist, or may not be described
BATCH_BYTES = 1 << 16
SPLIT_SECONDS = 0.005
RECONNECT_SECONDS = 0.02
# Errors of a producer that another has replaced. One that asks for a newer epoch is about to be
# refused (`Reconnecting`); a commit until then fails because of that state.
LOST = [
    *(
        kind.__name__
        for kind in (ProducerFencedError, InvalidProducerEpochError, IllegalStateError)
    ),
    "BUMPING_PRODUCER_EPOCH",
]


class Reconnecting(KafkaNetClient):
    """Connections of a transactional producer that survive an unreachable broker.

    Without a connection, kafka-python 3.0 loses the request to its coordinator, and with it the
    transaction. After a timeout it gives up permanently. Here both are connection errors, after
    which it sends the request again.
    """

    def await_ready(self, node_id: Any, timeout_ms: float = 30_000) -> bool:
        """Wait for a connection; return False instead of raising if there is none."""
        try:
            return bool(super().await_ready(node_id, timeout_ms))  # type: ignore[no-untyped-call]
        except KafkaConnectionError:
            time.sleep(RECONNECT_SECONDS)  # the coordinator is searched again immediately
            return False

    def send(self, node_id: Any, request: Any, **options: Any) -> Any:
        """Send a request; return a future of its response."""
        outcome = Future()

        def failed(error: Exception) -> None:
            late = isinstance(error, RequestTimedOutError)
            outcome.failure(KafkaConnectionError(str(error)) if late else error)

        # A fenced producer would request a newer epoch. Brokers reject that, but first abort the
        # open transaction of the new owner.
        if isinstance(request, InitProducerIdRequest) and request.producer_id >= 0:
            return outcome.failure(ProducerFencedError())
        sent = super().send(node_id, request, **options)  # type: ignore[no-untyped-call]
        sent.add_callback(outcome.success)
        sent.add_errback(failed)
        return outcome


class Producer(KafkaProducer):
    """A producer that can be abandoned."""

    def abandon(self) -> None:
        """Stop although `close` has failed: it would retry undeliverable records forever."""
        self._sender.initiate_close()
        self._sender.force_close()
        self._closed = True


class KafkaPythonSink(KafkaSink):
    """A topic as a sink, over a KafkaProducer."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        buffer_bytes: int,
        fencing: Fencing | None = None,
    ) -> None:
        super().__init__(connection, topic, fencing)
        admin = connect(KafkaAdminClient, connection)
        try:
            self._max_bytes = _examine(admin, connection, topic)
        finally:
            admin.close()
        self._producer: Any = None if fencing else self._connect()
        self._buffer_bytes = buffer_bytes
        self._waiting = 0  # bytes since the last flush: kafka-python 3 has no limit of its own

    def _connect(self, **settings: Any) -> Any:
        producer = connect(
            Producer,
            self._connection,
            acks="all",
            enable_idempotence=True,
            allow_auto_create_topics=False,
            delivery_timeout_ms=FOREVER_MS,
            max_request_size=self._max_bytes + 2 * OVERHEAD,
            max_block_ms=int(FULL_SECONDS * 1000),
            linger_ms=5,
            # a larger batch would be rejected, and split
            batch_size=min(BATCH_BYTES, max(self._max_bytes, 0)),
            metrics_enabled=False,
            value_serializer=Nulls(),
            **settings,
        )
        producer.partitions_for(self._topic)  # so that the first record does not wait for it
        return producer

    def take_over(self, identity: str) -> None:
        """Create a producer whose transactions fence those of earlier owners."""
        if self._fencing is None:
            return
        name = self._fencing.id(self._connection.client_id, identity)
        self._producer = self._connect(
            network=Reconnecting,
            transactional_id=name,
            transaction_timeout_ms=self._fencing.timeout_ms,
        )
        deadline = time.monotonic() + INIT_SECONDS
        while True:
            try:
                self._producer.init_transactions()
            except TransactionalIdAuthorizationFailedError as error:
                raise self._connection.denied_transactions(name) from error
            except KafkaError as error:
                if not isinstance(error, KafkaTimeoutError) or time.monotonic() > deadline:
                    raise not_begun(self._topic, str(error)) from error
            else:
                break
        self._transactions = Transactions(self._begin, self._commit, self._abort)

    def _begin(self) -> None:
        try:
            self._producer.begin_transaction()
        except KafkaError as error:
            raise self._failure(error) from error

    def _commit(self, _: threading.Event) -> None:
        try:
            self._producer.commit_transaction()
        except KafkaError as error:
            raise self._failure(error) from error

    def _abort(self) -> None:
        """Leave the transaction to the next owner: an abort might never return."""

    def _failure(self, error: BaseException) -> SinkError:
        """Return the error for a producer's error."""
        told = (repr(error), repr(getattr(error, "args", ())))
        if self._fencing is not None and any(name in text for name in LOST for text in told):
            return fenced(self._topic, self._fencing.seconds)
        if any(TopicAuthorizationFailedError.__name__ in text for text in told):
            return SinkDeniedError(str(self._connection.denied([self._topic], "WRITE")))
        return self._refusal or refused(self._topic, str(error))

    def send_all(self, records: Sequence[Record]) -> None:
        """Send records, in one transaction."""
        with self._sending() as ready:
            if not ready:
                raise deleted(self._topic) if self._gone() else full(self._topic, COMMITTING)
            for taken, record in enumerate(records):
                try:
                    self._send(*record)
                except SinkFullError as error:
                    error.taken = taken
                    raise

    def _sending(self) -> AbstractContextManager[bool]:
        if self._transactions is None:
            return nullcontext(enter_result=True)
        return self._transactions.sending(FULL_SECONDS)

    def _send(self, value: bytes | None, key: bytes | None, headers: Sequence[Header]) -> None:
        self._check_refusal()
        check_size(self._topic, self._max_bytes, value, key, headers)
        if self._waiting > self._buffer_bytes:
            self._drain(FULL_SECONDS, full)
        with self._lock:
            self._waiting += len(value or b"") + OVERHEAD
        if value is None and key is None:
            key = b""  # kafka-python requires a value or a key
        try:
            future = self._hand_over(value, key, list(headers))
        except KafkaTimeoutError as error:
            raise deleted(self._topic) if self._gone() else full(self._topic, str(error)) from error
        except KafkaError as error:
            raise self._failure(error) from error
        if self._transactions is None:  # else the commit fails
            future.add_errback(self._refused)

    def _hand_over(self, value: bytes | None, key: bytes | None, headers: list[Header]) -> Any:
        try:
            return self._producer.send(self._topic, value, key, headers)
        except (TypeError, UnicodeEncodeError):  # a null value, or a name that is not UTF-8
            return self._producer.send(self._topic, value, key, Headers(headers))

    def flush(self, seconds: float) -> None:
        """Deliver the records that were sent."""
        deadline = time.monotonic() + seconds

        def late(topic: str, why: str | None) -> SinkError:
            return undelivered(topic, seconds, why)

        try:
            self._drain(seconds, late)
        finally:
            self._check_refusal()
        if self._transactions and not self._transactions.commit(deadline - time.monotonic()):
            raise late(self._topic, COMMITTING)

    def _drain(self, seconds: float, error: Callable[[str, str | None], SinkError]) -> None:
        with self._lock:
            waiting = self._waiting
        end = time.monotonic() + seconds
        while True:
            try:
                self._producer.flush(max(end - time.monotonic(), 0))
                break
            except KafkaTimeoutError as timeout:
                if not self._known() and self._gone():
                    raise deleted(self._topic) from timeout
                raise error(self._topic, None) from timeout
            except (
                UnknownError
            ) as split:  # its error for a batch that was split: wait for the parts
                if time.monotonic() > end:
                    raise error(self._topic, None) from split
                time.sleep(SPLIT_SECONDS)
            except KafkaError as failure:
                raise self._failure(failure) from failure
        with self._lock:
            self._waiting -= waiting

    def _refused(self, error: BaseException) -> None:
        self._refusal = self._refusal or self._failure(error)

    def _known(self) -> bool:
        """Whether the producer knows partitions of the topic; blocks only if it knows none."""
        try:
            return bool(self._producer.partitions_for(self._topic))
        except KafkaTimeoutError:
            return False

    def _gone(self) -> bool:
        """Whether the cluster answers that the topic does not exist."""
        try:
            admin = connect(KafkaAdminClient, self._connection)
        except SourceError:
            return False
        try:
            return bool(admin.describe_topics([self._topic])[0]["error_code"] == UNKNOWN)
        except KafkaError:
            return False
        finally:
            admin.close()

    def close(self) -> None:
        """Close the connection."""
        if not self._closed and self._producer is not None:
            self._closed = True
            if self._transactions is not None:
                self._transactions.close()
            try:
                self._producer.close(timeout=1)
            except KafkaError:
                self._producer.abandon()


def _examine(admin: Any, connection: Connection, topic: str) -> int:
    """Refuse a topic that is not writable; return the maximum size of a record."""
    try:
        found = admin.describe_topics([topic])[0]
    except KafkaError as error:
        raise SinkError(f"topic {topic!r}: {error}") from error
    exists = bool(found["partitions"])
    rights = found["authorized_operations"] if exists else None
    check_topic(connection, topic, exists=exists or found["error_code"] == DENIED, rights=rights)
    if not exists:
        raise SinkDeniedError(str(connection.denied([topic], "WRITE")))
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        settings = admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return int(settings["max.message.bytes"]["value"]) - OVERHEAD
    except (KafkaError, KeyError):  # reading it is not allowed
        return DEFAULT_LARGEST - OVERHEAD
