"""Read with confluent-kafka.

The group is never joined: partitions are assigned manually, and positions are in the checkpoint.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
import uuid
from functools import partial
from itertools import groupby
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from streamlearn.errors import SourceError
from streamlearn.kafka.confluent.settings import DENIED, SECONDS, UNKNOWN, common, wait_for_cluster
from streamlearn.kafka.failures import ConnectionErrors
from streamlearn.kafka.lazy import Lazy
from streamlearn.kafka.reader import Cluster, OutOfRangeError, Topic, unreadable
from streamlearn.stream.records import OWN_HEADERS, Header, Partition, Records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamlearn.kafka.connection import Connection

log = logging.getLogger(__name__)

CLOSE_SECONDS = 3.0
PATIENCE = 3.0  # seconds to wait for transient errors to pass
PARTITION_EOF = KafkaError._PARTITION_EOF
OUT_OF_RANGE = KafkaError._AUTO_OFFSET_RESET

# Where a name is not UTF-8, the method returns a result and also sets an exception. A call from C
# (this one) looks for that; a call that Python has specialized does not, and raises it later.
HEADERS = methodcaller("headers")
# Replaces all headers if the name of one is not UTF-8: the library then returns none.
UNREADABLE_HEADERS = (f"{OWN_HEADERS}dropped", b"headers: one has a name that is not UTF-8")

# Errors for a partition that was just created.
FRESH = {
    *UNKNOWN,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
}


class ConfluentReader:
    """`KafkaReader` over a Consumer and an AdminClient."""

    def __init__(
        self, connection: Connection, *, isolation: str, fetch_bytes: int, group: str | None
    ) -> None:
        self._group = group
        self._connection = connection
        self._isolation = isolation
        self._fetch_bytes = fetch_bytes
        self._reasons = ConnectionErrors()
        self._admin = AdminClient(common(connection, self._reasons))
        wait_for_cluster(self._admin, connection, self._reasons)
        self._consumer: Consumer | None = None
        self._ends: dict[Partition, int] = {}  # the positions that poll has returned
        self._raised: Exception | None = (
            None  # raised by the next poll, after the records before it
        )

    def names(self) -> list[str]:
        """Return the names of all topics."""
        return list(self._metadata().topics)

    def _metadata(self, topic: str | None = None) -> Any:
        self._admin.poll(0)
        try:
            found = self._admin.list_topics(topic, timeout=SECONDS)
        except KafkaException as error:
            raise self._explain(error) from error
        self._reasons.clear()  # of earlier errors
        return found

    def cluster(self, topics: Sequence[str]) -> Cluster:
        """Describe the cluster and these topics."""
        # Begin with an ordinary request: an admin request that times out in an outage may abort the
        # process (an assertion in librdkafka).
        about = self._metadata(topics[0] if topics else "")
        return Cluster(str(about.cluster_id), len(about.brokers), self.topics(topics))

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Describe those of these topics that exist."""
        if not names:
            return {}
        wanted = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=SECONDS)
        found = {}
        for name, future in wanted.items():
            try:
                topic = future.result(SECONDS + 1)
            except KafkaException as error:
                if error.args[0].code() in DENIED:
                    raise self._connection.denied([name], "READ") from error
                if error.args[0].code() not in UNKNOWN:
                    raise self._explain(error) from error
            else:
                found[name] = Topic(_id(topic.topic_id), len(topic.partitions))
        return found

    def first(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the oldest offsets."""
        return self._offsets(partitions, OffsetSpec.earliest())

    def last(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offsets after the newest readable record."""
        return self._offsets(partitions, OffsetSpec.latest())

    def since(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int | None]:
        """Return the first offsets at or after a time."""
        found = self._offsets(partitions, OffsetSpec.for_timestamp(moment))
        return {partition: None if at < 0 else at for partition, at in found.items()}

    def _offsets(self, partitions: Iterable[Partition], spec: OffsetSpec) -> dict[Partition, int]:
        wanted = {TopicPartition(*partition): spec for partition in partitions}
        if not wanted:
            return {}
        level = (
            IsolationLevel.READ_COMMITTED
            if self._isolation == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED
        )
        ask = partial(self._admin.list_offsets, isolation_level=level, request_timeout=SECONDS)
        deadline = time.monotonic() + PATIENCE
        while True:
            futures = ask(wanted)
            try:
                return {
                    Partition(where.topic, where.partition): int(future.result(SECONDS + 1).offset)
                    for where, future in futures.items()
                }
            except KafkaException as error:
                code = error.args[0].code()
                if time.monotonic() > deadline or not (error.args[0].retriable() or code in FRESH):
                    raise self._explain(error) from error
            time.sleep(0.1)  # a leader is being elected

    def _result(self, future: Any) -> Any:
        try:
            return future.result(SECONDS + 1)
        except KafkaException as error:
            raise self._explain(error) from error

    def _explain(self, error: KafkaException) -> SourceError:
        self._admin.poll(0)
        if error.args[0].code() in DENIED:
            return self._connection.denied(["(all)"], "READ")
        return self._reasons.unanswered(self._connection.bootstrap, error.args[0].str())

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Also read these partitions."""
        self._ends.update(positions)
        where = [TopicPartition(*partition, position) for partition, position in positions.items()]
        if self._consumer is None:
            self._consumer = self._connect(len(positions))
            self._consumer.assign(where)
        else:
            self._consumer.incremental_assign(where)

    def _connect(self, partitions: int) -> Consumer:
        # One queue for all partitions, bounded by bytes of keys and values and by a count, as each
        # record takes about 400 bytes more. A response is split into records immediately, whatever
        # the queue holds, and adds to its size: so responses are kept small.
        brokers = len(self._metadata("").brokers)
        response = max(self._fetch_bytes // (8 * max(brokers, 1)), 1 << 16)
        share = min(max(response // max(partitions, 1), 1 << 18), 1 << 22, response)
        return Consumer(
            {
                **common(self._connection, self._reasons),
                "group.id": self._group or "streamlearn",  # required, but never joined
                "on_commit": _log_commit,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": self._isolation,
                "enable.partition.eof": True,
                "check.crcs": True,
                "queued.min.messages": min(max(self._fetch_bytes // 1024, 1), 1_000_000),
                "queued.max.messages.kbytes": max(self._fetch_bytes // 2048, 1),
                "fetch.max.bytes": response,
                "message.max.bytes": min(response, 1_000_000),
                "max.partition.fetch.bytes": share,
                "fetch.queue.backoff.ms": 5,
                "max.poll.interval.ms": 86_400_000,
            }
        )

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""
        if self._consumer is not None:
            gone = [TopicPartition(*partition) for partition in partitions]
            self._consumer.incremental_unassign(gone)
        for partition in partitions:
            self._ends.pop(partition, None)

    def poll(self, seconds: float, most: int) -> list[Records]:
        """Return the next records."""
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised
        assert self._consumer is not None  # noqa: S101 -- the source assigns first
        try:
            # `consume` waits for all messages it is asked for: wait for one, then take the rest.
            messages = self._consumer.consume(1, timeout=seconds)
            if messages:
                messages += self._consumer.consume(most, timeout=0)
        except KafkaException as error:
            raise SourceError(f"kafka: {error.args[0].str()}") from error
        errors = [message for message in messages if message.error() is not None]
        if errors:
            messages = self._before_errors(messages)
        records = self._by_partition(messages)
        for message in errors:
            records += self._consider(message)
        if self._raised is not None and not records:
            return self.poll(seconds, most)
        return records

    @staticmethod
    def _before_errors(messages: list[Message]) -> list[Message]:
        """Return the records of each partition before its first permanent error."""
        good, stopped = [], set()
        for message in messages:
            error = message.error()
            if error is not None and error.code() != PARTITION_EOF and not _passes(error):
                stopped.add(_partition(message))
            elif error is None and (not stopped or _partition(message) not in stopped):
                good.append(message)
        return good

    def _by_partition(self, messages: list[Message]) -> list[Records]:
        if not messages:
            return []
        if len(self._ends) == 1:
            return [self._records(next(iter(self._ends)), messages)]
        parts: dict[Partition, list[Message]] = {}
        for key, run in groupby(messages, lambda message: (message.topic(), message.partition())):
            parts.setdefault(Partition(str(key[0]), int(key[1])), []).extend(run)
        return [self._records(partition, run) for partition, run in parts.items()]

    def _records(self, partition: Partition, messages: list[Message]) -> Records:
        self._ends[partition] = end = int(messages[-1].offset() or 0) + 1
        return Records(
            partition,
            [message.offset() for message in messages],  # type: ignore[misc]  # never None here
            [message.value() for message in messages],
            end,
            keys=Lazy(messages, Message.key),
            times=Lazy(messages, _time),
            headers=Lazy(messages, _headers),
            epochs=Lazy(messages, _epoch),
        )

    def _consider(self, message: Message) -> list[Records]:
        """Handle the end of a partition, or an error."""
        error = message.error()
        assert error is not None  # noqa: S101
        partition = _partition(message)
        end = int(message.offset() or 0)
        if error.code() == PARTITION_EOF:
            if end <= self._ends.get(partition, end):
                return []
            self._ends[partition] = end  # what is in between is not readable
            return [Records(partition, (), (), end)]
        if error.code() == OUT_OF_RANGE:
            self._raised = OutOfRangeError(partition, error.str())  # also if the log was truncated
        elif error.code() in DENIED:
            self._raised = self._connection.denied([partition.topic], "READ")
        elif end < 0 and not _passes(error):
            self._raised = SourceError(f"kafka: {_where(partition)}: {error.str()}")
        elif not _passes(error):
            self._raised = unreadable(partition, end, self._after(partition, end), error.str())
        return []

    def _after(self, partition: Partition, damaged: int) -> int:
        """Return the offset after a damaged batch, by bisection.

        The library reports only the batch's first offset, wherever within it one starts to read.
        """
        inside, outside = damaged, self.highwater(partition) or damaged + 1
        deadline = time.monotonic() + PATIENCE
        while outside - inside > 1:
            middle = (inside + outside) // 2
            found = self._found_at(partition, middle, deadline)
            if found is None:
                return inside + 1  # the next start bisects further
            if found == damaged:
                inside = middle
            else:
                outside = middle
        return outside

    def _found_at(self, partition: Partition, offset: int, deadline: float) -> int | None:
        """Return the first offset that is read from there, None if nothing comes in time."""
        assert self._consumer is not None  # noqa: S101
        self._consumer.seek(TopicPartition(*partition, offset))
        while time.monotonic() < deadline:
            for message in self._consumer.consume(1, timeout=0.1):
                if _partition(message) == partition:
                    return int(message.offset() or 0)
        return None

    def highwater(self, partition: Partition) -> int | None:
        """Return the offset after the newest record."""
        assert self._consumer is not None  # noqa: S101
        marks = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
        return None if marks[1] < 0 else marks[1]

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions."""
        assert self._consumer is not None  # noqa: S101
        self._consumer.pause([TopicPartition(*partition) for partition in partitions])

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions again."""
        assert self._consumer is not None  # noqa: S101
        self._consumer.resume([TopicPartition(*partition) for partition in partitions])

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit the positions for lag tools."""
        # Not with the admin client: its call aborts the process if it times out in an outage.
        if self._group is not None and self._consumer is not None:
            offsets = [TopicPartition(*where, position) for where, position in positions.items()]
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            # It would wait a minute for a commit to reach an unreachable broker.
            closing = threading.Thread(target=self._consumer.close, daemon=True)
            closing.start()
            closing.join(CLOSE_SECONDS)


def _id(topic_id: object) -> str:
    """Return a topic's id in the form of the other library."""
    identity = uuid.UUID(bytes=base64.b64decode(f"{topic_id}=="))
    return str(identity) if identity.int else ""


def _where(partition: Partition) -> str:
    return f"{partition.topic}/{partition.number}"


def _log_commit(error: KafkaError | None, _: list[TopicPartition]) -> None:
    if error is not None:
        log.warning("commit for lag tools failed", extra={"error": error.str()})


def _partition(message: Message) -> Partition:
    topic, number = message.topic(), message.partition()
    return Partition(str(topic), int(number or 0))


def _passes(error: KafkaError) -> bool:
    """Whether an error is transient."""
    return error.retriable() or error.code() in UNKNOWN


def _time(message: Message) -> int:
    return message.timestamp()[1]


def _epoch(message: Message) -> int:
    epoch = message.leader_epoch()
    return -1 if epoch is None else epoch


def _headers(message: Message) -> list[Header]:
    try:
        headers: Any = HEADERS(message)
    except SystemError:  # a name is not UTF-8; a second call would return a value that crashes
        headers = [UNREADABLE_HEADERS]
        message.set_headers(headers)
    return list(headers or ())
