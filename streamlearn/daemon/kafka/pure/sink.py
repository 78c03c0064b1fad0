"""Writing with kafka-python."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnknownError,
)

from streamlearn.daemon.kafka.pure.headers import Headers, Nulls
from streamlearn.daemon.kafka.pure.settings import connect
from streamlearn.daemon.kafka.sink import (
    DEFAULT_LARGEST,
    FOREVER_MS,
    FULL_SECONDS,
    OVERHEAD,
    KafkaSink,
    check_size,
    check_topic,
    deleted,
    full,
    refused,
    undelivered,
)
from streamlearn.errors import SinkDenied, SinkError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.daemon.kafka.connection import Connection
    from streamlearn.stream.source import Header


UNKNOWN, DENIED = 3, 29  # Kafka's codes for a topic that is not there, that we may not describe
BATCH_BYTES = 1 << 16
SPLIT_SECONDS = 0.005


class PureSink(KafkaSink):
    """A topic to write to, over a KafkaProducer."""

    def __init__(self, connection: Connection, topic: str, *, buffer_bytes: int) -> None:
        self._topic = topic
        self._connection = connection
        admin = connect(KafkaAdminClient, connection)
        try:
            self._largest = _examine(admin, connection, topic)
        finally:
            admin.close()
        self._producer = connect(
            KafkaProducer,
            connection,
            acks="all",
            enable_idempotence=True,
            allow_auto_create_topics=False,
            delivery_timeout_ms=FOREVER_MS,
            max_request_size=self._largest + 2 * OVERHEAD,
            max_block_ms=int(FULL_SECONDS * 1000),
            linger_ms=5,
            # a larger batch would be refused, and split
            batch_size=min(BATCH_BYTES, max(self._largest, 0)),
            metrics_enabled=False,
            value_serializer=Nulls(),
        )
        self._producer.partitions_for(topic)  # known before the first record has to wait for it
        self._buffer_bytes = buffer_bytes
        self._waiting = 0  # bytes since the last flush: kafka-python 3 has no bound of its own
        self._refusal: SinkError | None = None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def largest(self) -> int:
        """How many bytes a record may have."""
        return self._largest

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Hand over one record."""
        self._check_refusal()
        check_size(self._topic, self._largest, value, key, headers)
        if self._waiting > self._buffer_bytes:
            self._drain(FULL_SECONDS, full)
        with self._lock:
            self._waiting += len(value or b"") + OVERHEAD
        if value is None and key is None:
            key = b""  # kafka-python wants one of them
        try:
            future = self._hand_over(value, key, list(headers))
        except KafkaTimeoutError as error:
            raise deleted(self._topic) if self._gone() else full(self._topic, str(error)) from error
        except KafkaError as error:
            raise refused(self._topic, str(error)) from error
        future.add_errback(self._refused)

    def _hand_over(self, value: bytes | None, key: bytes | None, headers: list[Header]) -> Any:
        try:
            return self._producer.send(self._topic, value, key, headers)
        except (TypeError, UnicodeEncodeError):  # a null value, or a name that is not UTF-8
            return self._producer.send(self._topic, value, key, Headers(headers))

    def flush(self, seconds: float) -> None:
        """Deliver what was handed over before."""
        try:
            self._drain(seconds, lambda topic, why: undelivered(topic, seconds, why))
        finally:
            self._check_refusal()

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
            except UnknownError as split:  # so it calls a batch that was split: wait for the parts
                if time.monotonic() > end:
                    raise error(self._topic, None) from split
                time.sleep(SPLIT_SECONDS)
        with self._lock:
            self._waiting -= waiting

    def _refused(self, error: BaseException) -> None:
        if self._refusal is None:
            denied = isinstance(error, TopicAuthorizationFailedError)
            self._refusal = (
                SinkDenied(str(self._connection.denied([self._topic], "WRITE")))
                if denied
                else refused(self._topic, str(error))
            )

    def _check_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _known(self) -> bool:
        """Whether the producer knows partitions of the topic; it waits only if it knows none."""
        try:
            return bool(self._producer.partitions_for(self._topic))
        except KafkaTimeoutError:
            return False

    def _gone(self) -> bool:
        """Whether the cluster answers that it has no such topic."""
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
        """Give the connection back."""
        if not self._closed:
            self._closed = True
            try:
                self._producer.close(timeout=1)
            except KafkaTimeoutError:  # records that can't be delivered: it would try for ever
                self._producer._sender.initiate_close()  # noqa: SLF001 -- `close` got not so far
                self._producer._sender.force_close()  # noqa: SLF001
                self._producer._closed = True  # noqa: SLF001


def _examine(admin: Any, connection: Connection, topic: str) -> int:
    """Refuse a topic that can't be written to; return how large a record may be."""
    try:
        found = admin.describe_topics([topic])[0]
    except KafkaError as error:
        raise SinkError(f"topic {topic!r}: {error}") from error
    exists = bool(found["partitions"])
    rights = found["authorized_operations"] if exists else None
    check_topic(connection, topic, exists=exists or found["error_code"] == DENIED, rights=rights)
    if not exists:
        raise SinkDenied(str(connection.denied([topic], "WRITE")))
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        settings = admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return int(settings["max.message.bytes"]["value"]) - OVERHEAD
    except (KafkaError, KeyError):  # not ours to ask
        return DEFAULT_LARGEST - OVERHEAD
