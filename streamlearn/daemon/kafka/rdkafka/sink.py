"""Writing with confluent-kafka."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from streamlearn.daemon.kafka.rdkafka.settings import DENIED, SECONDS, common, wait_for_cluster
from streamlearn.daemon.kafka.reasons import Reasons
from streamlearn.daemon.kafka.sink import (
    DEFAULT_LARGEST,
    FOREVER_MS,
    FULL_SECONDS,
    OVERHEAD,
    KafkaSink,
    check_size,
    check_topic,
    full,
    refused,
    undelivered,
)
from streamlearn.errors import SinkDenied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import KafkaError, Message

    from streamlearn.daemon.kafka.connection import Connection
    from streamlearn.stream.sink import Record
    from streamlearn.stream.source import Header

SERVE_EVERY = 256  # records; reports of deliveries pile up until they are served


class Generation:
    """Records handed over between two flushes, and how many of them are on their way."""

    def __init__(self) -> None:
        self.sent = 0
        self.done = 0
        self.refusal: str | None = None

    def report(self, error: KafkaError | None, _: Message) -> None:
        """Take the report on one record; the library calls from the thread that serves."""
        self.done += 1
        if error is not None:
            self.refusal = self.refusal or error.str()


class RdSink(KafkaSink):
    """A topic to write to, over a Producer."""

    def __init__(self, connection: Connection, topic: str, *, buffer_bytes: int) -> None:
        self._topic = topic
        self._reasons = Reasons()
        admin = AdminClient(common(connection, self._reasons))
        wait_for_cluster(admin, connection, self._reasons)
        self._largest = _examine(admin, connection, topic)
        self._producer = Producer(
            {
                **common(connection, self._reasons),
                "acks": "all",
                "enable.idempotence": True,
                "delivery.timeout.ms": FOREVER_MS,
                "message.max.bytes": self._largest + 2 * OVERHEAD,
                "queue.buffering.max.kbytes": max(buffer_bytes // 1024, 1),
                "queue.buffering.max.messages": 1_000_000,
                "linger.ms": 5,
            }
        )
        self._generation = Generation()
        self._older: list[Generation] = []
        self._refusal: str | None = None
        self._lock = threading.Lock()
        self._serving = threading.Lock()  # so that counting needs no lock of its own
        self._unserved = 0  # records handed over since deliveries were last looked at
        self._closed = False

    @property
    def largest(self) -> int:
        """How many bytes a record may have."""
        return self._largest

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Hand over one record."""
        self.send_all([(value, key, headers)])

    def send_all(self, records: Sequence[Record]) -> None:
        """Hand over these; waits for room in the buffer, but not for ever."""
        at, deadline = 0, 0.0
        while at < len(records):
            start, at = at, self._hand_over(records, at)
            self._unserved += at - start
            if at > start:
                deadline = 0.0
                if self._unserved >= SERVE_EVERY:
                    self._unserved = 0
                    self._serve(0)
                continue
            now = time.monotonic()
            deadline = deadline or now + FULL_SECONDS
            if now > deadline:
                error = full(self._topic, self._reasons.worst()[0])
                error.taken = at
                raise error
            self._serve(0.05)

    def _hand_over(self, records: Sequence[Record], start: int) -> int:
        """Hand over some records, until the buffer is full; the place of the next."""
        topic, largest, produce = self._topic, self._largest, self._producer.produce
        at = start
        with self._lock:
            generation = self._generation
            report = generation.report
            try:
                for value, key, headers in records[start : start + SERVE_EVERY]:
                    check_size(topic, largest, value, key, headers)
                    given = headers if type(headers) is list else list(headers)
                    produce(topic, value, key, headers=given, on_delivery=report)
                    at += 1
            except BufferError:
                pass
            except KafkaException as error:
                raise refused(topic, error.args[0].str()) from error
            finally:
                generation.sent += at - start
        return at

    def _serve(self, seconds: float) -> None:
        with self._serving:
            self._producer.poll(seconds)

    def flush(self, seconds: float) -> None:
        """Deliver what was handed over before."""
        with self._lock:
            self._older.append(self._generation)
            self._generation = Generation()
        deadline = time.monotonic() + seconds
        while True:
            self._serve(0.02)
            with self._lock:
                for generation in self._older:
                    self._refusal = self._refusal or generation.refusal
                self._older = [g for g in self._older if g.done < g.sent]
                waiting = bool(self._older)
            if self._refusal is not None:
                raise refused(self._topic, self._refusal)
            if not waiting:
                self._reasons.clear()
                return
            if time.monotonic() > deadline:
                raise undelivered(self._topic, seconds, self._reasons.worst()[0])

    def close(self) -> None:
        """Give the connection back."""
        if not self._closed:
            self._closed = True
            if self._producer.flush(1):
                self._producer.purge()
                self._producer.flush(1)  # takes the reports of what was purged


def _examine(admin: AdminClient, connection: Connection, topic: str) -> int:
    """Refuse a topic that can't be written to; return how large a record may be."""
    wanted = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=SECONDS
    )
    try:
        found = wanted[topic].result(SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() in DENIED:
            raise SinkDenied(str(connection.denied([topic], "WRITE"))) from error
        check_topic(connection, topic, exists=False, rights=None)
        raise
    operations = found.authorized_operations
    rights = None if operations is None else [operation.name for operation in operations]
    check_topic(connection, topic, exists=True, rights=rights)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    settings = admin.describe_configs([resource], request_timeout=SECONDS)
    try:
        return int(settings[resource].result(SECONDS + 1)["max.message.bytes"].value) - OVERHEAD
    except KafkaException:  # not ours to ask
        return DEFAULT_LARGEST - OVERHEAD
