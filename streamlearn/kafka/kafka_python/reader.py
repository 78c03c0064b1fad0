"""Read with kafka-python.

It reads raw bytes without a deserializer (if one raises, every later poll spins), without a group
(every poll would wait for its coordinator), without auto-commit and without offset resets.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import (
    KafkaError,
    LogTruncationError,
    NoError,
    OffsetOutOfRangeError,
    RetriableError,
    TopicAuthorizationFailedError,
)
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer import IsolationLevel, OffsetSpec
from kafka.structs import OffsetAndMetadata

from streamlearn.errors import SourceError
from streamlearn.kafka.failures import unanswered
from streamlearn.kafka.kafka_python.repair import RepairingManager, UnreadableRecords, headers
from streamlearn.kafka.kafka_python.settings import connect
from streamlearn.kafka.lazy import Lazy
from streamlearn.kafka.reader import Cluster, OutOfRangeError, Topic, unreadable
from streamlearn.stream.records import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from streamlearn.kafka.connection import Connection

log = logging.getLogger(__name__)

PATIENCE = 3.0  # seconds to wait for transient errors to pass
TOPIC_DENIED = 29
NO_TOPIC_ID = "00000000-0000-0000-0000-000000000000"


class KafkaPythonReader:
    """`KafkaReader` over a KafkaConsumer and a KafkaAdminClient."""

    def __init__(
        self, connection: Connection, *, isolation: str, fetch_bytes: int, group: str | None
    ) -> None:
        self._group = group
        self._connection = connection
        self._isolation = isolation
        self._fetch_bytes = fetch_bytes
        self._admin = connect(KafkaAdminClient, connection)
        self._consumer: Any = None
        self._ends: dict[Partition, int] = {}  # the positions that poll has returned
        self._unreadable: dict[Partition, UnreadableRecords] | None = (
            None  # None: nothing is repaired
        )

    def names(self) -> list[str]:
        """Return the names of all topics."""
        names: list[str] = self._ask(self._admin.list_topics)
        return names

    def cluster(self, topics: Sequence[str]) -> Cluster:
        """Describe the cluster and these topics."""
        about = self._ask(self._admin.describe_cluster)
        return Cluster(str(about["cluster_id"]), len(about["brokers"]), self.topics(topics))

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Describe those of these topics that exist."""
        found = self._ask(self._admin.describe_topics, list(names)) if names else []
        denied = sorted(topic["name"] for topic in found if topic["error_code"] == TOPIC_DENIED)
        if denied:
            raise self._connection.denied(denied, "READ")
        return {
            topic["name"]: Topic(_id(topic["topic_id"]), len(topic["partitions"]))
            for topic in found
            if topic["partitions"]
        }

    def first(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the oldest offsets."""
        return self._offsets(partitions, OffsetSpec.EARLIEST)

    def last(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offsets after the newest readable record."""
        return self._offsets(partitions, OffsetSpec.LATEST)

    def since(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int | None]:
        """Return the first offsets at or after a time."""
        found = self._offsets(partitions, moment)
        return {partition: None if at < 0 else at for partition, at in found.items()}

    def _offsets(self, partitions: Iterable[Partition], spec: object) -> dict[Partition, int]:
        wanted = {TopicPartition(*partition): spec for partition in partitions}
        if not wanted:
            return {}
        level = IsolationLevel.build_from(self._isolation)
        found = self._ask(self._admin.list_partition_offsets, wanted, level)
        return {Partition(*where): at.offset for where, at in found.items()}

    def _ask(self, question: Any, *arguments: object) -> Any:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return question(*arguments)
            except TopicAuthorizationFailedError as error:
                raise self._connection.denied(error.args, "READ") from error
            except KafkaError as error:
                if not isinstance(error, RetriableError) or time.monotonic() > deadline:
                    raise unanswered(self._connection.bootstrap, str(error)) from error
            time.sleep(0.1)  # a leader is being elected, or a connection opened

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Also read these partitions."""
        if self._consumer is None:
            self._consumer = self._connect(len(positions))
        self._ends.update(positions)
        self._consumer.assign([TopicPartition(*partition) for partition in self._ends])
        for partition, position in positions.items():
            self._consumer.seek(TopicPartition(*partition), position)

    def _connect(self, partitions: int) -> Any:
        # A response for all partitions of a broker is kept while the next one is fetched, both in
        # several copies at times: small responses stay within the prefetch limit.
        brokers = len(self._ask(self._admin.describe_cluster)["brokers"])
        response = max(self._fetch_bytes // (8 * max(brokers, 1)), 1 << 16)
        share = min(max(response // max(partitions, 1), 1 << 18), 1 << 22, response)
        network: Callable[..., Any] = KafkaNetClient
        if self._unreadable is not None:
            network = partial(RepairingManager.client, self._unreadable)
        return connect(
            KafkaConsumer,
            self._connection,
            network,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            isolation_level=self._isolation,
            fetch_max_bytes=response,
            max_partition_fetch_bytes=share,
            metrics_enabled=False,
        )

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""
        for partition in partitions:
            self._ends.pop(partition, None)
        self._consumer.assign([TopicPartition(*partition) for partition in self._ends])

    def poll(self, seconds: float, most: int) -> list[Records]:
        """Return the next records."""
        try:
            batches = self._consumer.poll(timeout_ms=int(seconds * 1000), max_records=most)
            return [self._records(*batch) for batch in batches.items()] or self._moved()
        except OffsetOutOfRangeError as error:
            raise OutOfRangeError(Partition(*next(iter(error.args[0]))), "out of range") from error
        except LogTruncationError as error:
            where, differs = next(iter(error.divergent_offsets.items()))
            detail = f"other records from {differs.offset} on" if differs else "other records"
            raise OutOfRangeError(Partition(*where), detail) from error
        except TopicAuthorizationFailedError as error:
            raise self._connection.denied(error.args[0], "READ") from error
        except Exception as error:  # noqa: BLE001 -- of any kind, as the bytes are
            self._begin_repairs(error)
            return []

    def _begin_repairs(self, error: Exception) -> None:
        """Read again from the positions with repairs; raise if repairs were made already.

        The consumer that has raised might spin or skip records in its next poll.
        """
        reason = f"{type(error).__name__}: {error}"
        if self._unreadable is not None:
            ahead = {
                one.first - self._ends[where]: one
                for where, one in self._unreadable.items()
                if one.end > self._ends.get(where, one.end)
            }
            if not ahead:
                raise SourceError(f"kafka: {reason}") from error
            raise unreadable(*ahead[min(ahead)]) from error
        log.warning("unreadable records, repairs enabled", extra={"error": reason})
        self._unreadable = {}
        paused = self._consumer.paused()
        self._consumer.close(autocommit=False, timeout_ms=1000)
        self._consumer = None
        self.assign(dict(self._ends))
        self._consumer.pause(*paused)

    def _records(self, where: tuple[str, int], messages: list[Any]) -> Records:
        partition = Partition(*where)
        offsets = [message.offset for message in messages]
        self._ends[partition] = end = offsets[-1] + 1
        return Records(
            partition,
            offsets,
            [message.value for message in messages],
            end,
            keys=Lazy(messages, attrgetter("key")),
            times=Lazy(messages, attrgetter("timestamp")),
            headers=Lazy(messages, headers),
            epochs=Lazy(messages, attrgetter("leader_epoch")),
        )

    def _moved(self) -> list[Records]:
        """Return positions that have advanced over records that are not returned."""
        moved = []
        for partition, end in self._ends.items():
            highwater = self.highwater(partition)
            if highwater is not None and highwater > end:
                position = self._consumer.position(TopicPartition(*partition), timeout_ms=0)
                if position is not None and position > end:
                    moved.append(Records(partition, (), (), position))
        self._ends.update((records.partition, records.end) for records in moved)
        return moved

    def highwater(self, partition: Partition) -> int | None:
        """Return the offset after the newest record."""
        mark: int | None = self._consumer.highwater(TopicPartition(*partition))
        return mark

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions."""
        self._consumer.pause(*(TopicPartition(*partition) for partition in partitions))

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions again."""
        self._consumer.resume(*(TopicPartition(*partition) for partition in partitions))

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit the positions for lag tools."""
        if self._group is None:
            return
        offsets = {
            TopicPartition(*partition): OffsetAndMetadata(position, "", None)
            for partition, position in positions.items()
        }
        outcome = self._ask(self._admin.alter_group_offsets, self._group, offsets)
        failed = {where: error for where, error in outcome.items() if error is not NoError}
        for where, error in failed.items():
            raise SourceError(
                f"group {self._group}, {where.topic}/{where.partition}: {error.__name__}"
            )

    def close(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            self._consumer.close(autocommit=False, timeout_ms=1000)
        self._admin.close()


def _id(topic_id: str | None) -> str:
    return "" if topic_id in {None, NO_TOPIC_ID} else str(topic_id)
