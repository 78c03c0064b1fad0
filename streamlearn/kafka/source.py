"""Kafka as a source: all partitions of some topics, each from the checkpoint's position.

Partitions are assigned manually: the owner of the models reads all of them, and only the positions
of the checkpoint count. Committed offsets are for lag tools.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from streamlearn.core.times import timestamp
from streamlearn.errors import SourceChangedError, SourceDeniedError, SourceError
from streamlearn.kafka.backlog import Backlog
from streamlearn.kafka.epochs import LeaderEpochs, marks_of, without, written
from streamlearn.kafka.positions import Start, StartPolicy, start_positions
from streamlearn.kafka.reader import OutOfRangeError, cut_off
from streamlearn.kafka.topics import (
    TopicSelection,
    TopicWatcher,
    identity_of,
    ids_of,
    partitions_of,
)
from streamlearn.kafka.verification import UnverifiedRecords, topic_recreated
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.lines import size_and_nulls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.kafka.topics import TopicChanges

log = logging.getLogger(__name__)

LONGEST_POLL = 0.25  # seconds; a signal does not interrupt a poll
PAYLOAD_SHARE = 4  # one of so many prefetched bytes may be in memory as Python objects
RECORD_BYTES = 320  # of a record as Python objects, without its value


class KafkaSource:
    """Records of Kafka topics.

    Parameters
    ----------
    connection
        How to connect to the cluster.
    topics, pattern
        Names of topics, or a regular expression that matches whole names; give one of the two.
    group_id
        The group under which positions are committed for lag tools; None: they are not committed.
    start
        Where to start without a position: `"earliest"`, `"latest"`, or a time (ISO 8601 or
        milliseconds since 1970). Partitions that are created later are read from their beginning.
    isolation
        `"read_committed"` (without the records of aborted transactions) or `"read_uncommitted"`.
    order
        How a backlog is drained: `"even"` across partitions, or by the records' `"time"`.
    fetch_bytes
        Maximum bytes that are prefetched, all partitions together.
    on_gap
        If retention has deleted records at a position: `"stop"`, or `"continue"` at the oldest
        record, with the deleted ones counted in `lost()`.
    reset_offsets
        Also resume if a position is past the end (at the end), and in topics that were created
        again or are of another cluster (at `start`).
    batch
        Maximum records of one poll.
    refresh_seconds
        Seconds between searches for new topics and partitions.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        group_id: str | None = None,
        start: str | int | datetime = "earliest",
        isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
        order: Literal["even", "time"] = "even",
        fetch_bytes: int = 64 << 20,
        on_gap: Literal["stop", "continue"] = "stop",
        reset_offsets: bool = False,
        batch: int = 2000,
        refresh_seconds: float = 5.0,
    ) -> None:
        self._connection = connection
        self._selection = TopicSelection(tuple(topics), pattern)
        self._group = group_id
        self._asked = StartPolicy(moment(start), on_gap == "continue", reset_offsets)
        self._isolation = isolation
        self._fetch_bytes = fetch_bytes
        self._by_time = order == "time"
        self._batch = batch
        self._refresh = refresh_seconds
        self._lost: dict[Partition, int] = {}
        self._identity: dict[str, str] = {}
        self._ends: dict[Partition, int] = {}  # positions after the records that poll has returned
        self._goal: dict[Partition, int] = {}  # the ends when the source was opened
        self._starts: list[Records] = []  # positions to return, without records
        self._backlog = Backlog(by_time=self._by_time)
        self._paused: set[Partition] = set()
        self._most = min(batch, 500)  # records to request, by their size; small until it is known
        self._asked_ends = 0.0
        self._reader: KafkaReader | None = None
        self._held: UnverifiedRecords | None = None
        self._fault: SourceError | None = None  # raised after all earlier records were returned
        self._epochs = LeaderEpochs()
        self._watch: TopicWatcher | None = None

    def identity(self) -> dict[str, str]:
        """Return the ids of the cluster and of the topics.

        Topics that are no longer read keep theirs: a checkpoint has positions in them. The leader
        epoch of each partition's last record shows whether the log before a position has changed.
        """
        return {**self._identity, **written(self._epochs.marks)}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Connect and seek to the positions; `SourceError` with the reason if this fails."""
        reader = self._connection.reader(
            isolation=self._isolation, fetch_bytes=self._fetch_bytes, group=self._group
        )
        self._reader = reader
        try:
            cluster = self._selection.look(reader)
            self._selection.check(reader, cluster, self._connection.bootstrap)
            now = identity_of(cluster)
            self._identity = {**(identity or {}), **now}
            settled = start_positions(
                reader,
                partitions_of(cluster),
                positions,
                (identity, now),
                self._asked,
                by_pattern=self._selection.pattern is not None,
            )
            self._held = UnverifiedRecords(reader, ids_of(cluster))
            self._goal = settled.ends
            self._count_lost(settled.lost)
            self._identity = without(self._identity, settled.positions)
            if not self._asked.reset:
                self._epochs.seek(marks_of(identity or {}, settled.positions))
            self._assign(settled.positions)
        except BaseException:
            self.close()
            raise
        self._watch = TopicWatcher(reader, self._selection, self._refresh, cluster)

    def _assign(self, positions: Mapping[Partition, int]) -> None:
        if positions:
            start = self._epochs.start
            self._live().assign({where: start(where, at) for where, at in positions.items()})
        self._ends.update(positions)
        # A checkpoint needs a position for every partition, also for those without records.
        self._starts += [Records(partition, (), (), end) for partition, end in positions.items()]

    def poll(self, seconds: float) -> list[Records]:
        """Return the next records, at most `batch` of them."""
        self._hear()
        if self._starts:
            starts, self._starts = self._starts, []
            return starts
        if not self._ends:  # a pattern that matches nothing yet
            time.sleep(min(seconds, LONGEST_POLL))
            return []
        self._fill(0.0)
        held = self._holding()
        if not held and not self._may_take():
            self._fill(min(seconds, LONGEST_POLL))
        # All partitions get their share, so wait for one whose records are all unconfirmed.
        if not all(map(self._backlog.waits, held.partitions())):
            self._confirm(LONGEST_POLL)
            self._fill(0.0)  # what is fetched now is confirmed while these records are learned
        taken = self._backlog.take(self._batch) if self._may_take() else []
        if self._fault is not None and not taken and not held:
            raise self._fault
        for records in taken:
            self._ends[records.partition] = records.end
            self._epochs.given(records)
        return taken

    def _hear(self) -> None:
        """Apply what the watcher has found."""
        for news in self._watch.take() if self._watch is not None else ():
            self._forget(news)
            self._identity.update(identity_of(news.cluster))
            self._holding().set_topic_ids(ids_of(news.cluster))
            if news.beginnings:
                log.info("new partitions: %d, read from their beginning", len(news.beginnings))
                self._assign(news.beginnings)

    def _forget(self, news: TopicChanges) -> None:
        gone = [partition for partition in self._ends if partition.topic in news.gone]
        if gone:
            log.warning("topics deleted", extra={"topics": ", ".join(news.gone)})
            self._live().drop(gone)
            self._backlog.drop(gone)
            self._holding().drop(gone)
            self._paused.difference_update(gone)
            for partition in gone:
                del self._ends[partition]
                self._goal.pop(partition, None)

    def _fill(self, seconds: float) -> None:
        """Fetch records until each partition that lags has some."""
        reader, held = self._live(), self._holding()
        while self._fault is None:
            try:
                came = reader.poll(seconds, self._most)
            except OutOfRangeError as gap:
                self._overtaken(gap)
                continue
            except SourceError as error:
                self._fault = error
                break
            for records in came:
                self._hold(self._epochs.new(records))
            self._confirm(0.0)
            self._throttle()
            full = held.size + self._backlog.size > self._fetch_bytes // PAYLOAD_SHARE
            if not came or full or self._nobody_lacks():
                return
            seconds = 0.0

    def _confirm(self, seconds: float) -> None:
        """Move confirmed records to the backlog."""
        for records, size in self._holding().take(seconds):
            self._backlog.add(records, size)

    def _hold(self, records: Records) -> None:
        size, _ = size_and_nulls(records.values)
        size += RECORD_BYTES * len(records.offsets)
        self._holding().add(records, size)
        if records.offsets:
            # So many that they take a few megabytes, even if they were compressed well.
            room = self._fetch_bytes // (2 * PAYLOAD_SHARE)
            fitting = room * len(records.offsets) // max(size, 1)
            self._most = min(max(fitting, 1), self._batch)

    def _nobody_lacks(self) -> bool:
        held = self._holding().partitions()
        return len(self._ends) == 1 or all(partition in held for partition in self._lacking())

    def _lacking(self) -> list[Partition]:
        """Return the partitions with records on the broker and none in the backlog."""
        reader = self._live()
        lacking = []
        for partition, end in self._ends.items():
            if not self._backlog.waits(partition):
                mark = reader.highwater(partition)
                if mark is None or mark > end:
                    lacking.append(partition)
        return lacking

    def _may_take(self) -> bool:
        """Whether a record may be returned: by time, not while an earlier one may still arrive."""
        if not self._by_time:
            return self._backlog.size > 0 or any(map(self._backlog.waits, self._ends))
        lacking = self._lacking()
        if lacking and time.monotonic() - self._asked_ends > LONGEST_POLL:
            # The high watermark counts records of open transactions, which are not readable yet.
            self._asked_ends = time.monotonic()
            ends = self._live().last(lacking)
            return all(ends[partition] <= self._ends[partition] for partition in lacking)
        return not lacking

    def _throttle(self) -> None:
        """By time, do not fetch partitions with many records while another one has none."""
        if not self._by_time or len(self._ends) == 1:
            return
        share = self._fetch_bytes // PAYLOAD_SHARE // len(self._ends)
        sizes = self._backlog.sizes()
        rich = {partition for partition, size in sizes.items() if size > share}
        poor = {partition for partition in self._paused if sizes.get(partition, 0) < share // 2}
        if rich - self._paused:
            self._live().pause(rich - self._paused)
        if poor:
            self._live().resume(poor)
        self._paused = (self._paused | rich) - poor

    def _overtaken(self, gap: OutOfRangeError) -> None:
        """Resume after a gap if this is allowed: retention has overtaken the position."""
        reader, partition = self._live(), gap.partition
        position = self._ends[partition]
        if self._epochs.give_up(partition):  # retention deleted the marked record
            reader.drop([partition])
            self._assign({partition: position})
            return
        first, last = reader.first([partition])[partition], reader.last([partition])[partition]
        if position >= first and not self._asked.reset:
            detail = f"it ends at {last}" if position > last else gap.detail
            raise cut_off(partition, position, detail)
        if position < first and not self._asked.skip_gaps:
            raise SourceChangedError(
                f"kafka: {partition.topic}/{partition.number} now begins at offset {first}: "
                f"retention deleted records from {position} on; use --on-gap=continue to skip them"
            )
        self._backlog.drop([partition])
        self._holding().drop([partition])
        target = min(max(position, first), last)
        self._count_lost({partition: max(target - position, 0)})
        reader.drop([partition])
        self._assign({partition: target})

    def _count_lost(self, lost: Mapping[Partition, int]) -> None:
        for partition, count in lost.items():
            if count:
                self._lost[partition] = self._lost.get(partition, 0) + count
                log.warning(
                    "records deleted before they were read",
                    extra={
                        "topic": partition.topic, "partition": partition.number, "records": count,
                    },
                )  # fmt: skip

    # -- several processes ------------------------------------------------------------------------

    @property
    def checked(self) -> bool:
        """Whether the log before each position was found to be the one that was read."""
        return not self._epochs.sought

    def hand_over(self) -> dict[Partition, int]:
        """Return the positions, from which others read; what was fetched beyond them is dropped.

        They report with `advance`. `poll` still returns positions of new partitions, and raises.
        """
        self._live().drop(list(self._ends))
        self._backlog.drop(list(self._ends))
        self._holding().drop(list(self._ends))
        self._paused.clear()
        return dict(self._ends)

    def confirm(self, topics: Iterable[str]) -> bool:
        """Return whether a broker knows these topics by their ids; `SourceChangedError` if others.

        False: no broker answers, or topics are missing, which the watcher reports.
        """
        known = {name.removeprefix("topic "): text for name, text in self._identity.items()}
        wanted = sorted({name for name in topics if known.get(name)})
        try:
            found = self._live().topics(wanted) if wanted else {}
        except SourceDeniedError:
            raise
        except SourceError:
            return False
        for name, topic in found.items():
            if topic.id not in {known[name], ""}:
                raise topic_recreated(name, known[name], topic.id)
        return len(found) == len(wanted)

    def advance(self, read: Iterable[Records]) -> None:
        """Note what others have read; of each partition the last record is enough."""
        for records in read:
            if records.partition in self._ends:
                self._ends[records.partition] = records.end
                self._epochs.given(records)

    def goals(self) -> dict[Partition, int]:
        """Return the ends of the partitions when the source was opened."""
        return dict(self._goal)

    def lost(self) -> dict[Partition, int]:
        """Return how many records were deleted before they were read."""
        return dict(self._lost)

    def lag(self) -> dict[Partition, int | None]:
        """Return the lag of each partition as of the last fetch, None before the first."""
        lag: dict[Partition, int | None] = {}
        for partition, end in self._ends.items():
            mark = None if self._reader is None else self._reader.highwater(partition)
            lag[partition] = None if mark is None else max(mark - end, 0)
        return lag

    def ended(self) -> bool:
        """Whether all records that existed when the source was opened were returned."""
        return not self._starts and all(
            self._ends[partition] >= end for partition, end in self._goal.items()
        )

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit these positions for lag tools in the background; an error is logged."""
        if self._watch is not None:
            there = {where: at for where, at in positions.items() if where in self._ends}
            self._watch.commit(there)

    def close(self) -> None:
        """Close the connections."""
        held, self._held = self._held, None
        if held is not None:
            held.close()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close(2.0)
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(Exception):  # the broker may be unreachable
                reader.close()

    def _live(self) -> KafkaReader:
        if self._reader is None:
            raise ValueError("this source is not open: call open first")
        return self._reader

    def _holding(self) -> UnverifiedRecords:
        if self._held is None:
            raise ValueError("this source is not open: call open first")
        return self._held


def moment(start: str | int | datetime) -> Start:
    """Return a start as "earliest", "latest" or milliseconds; a time without a zone is UTC.

    >>> moment("latest"), moment("1970-01-01T00:00:02Z"), moment("1970-01-01 00:00:02")
    ('latest', 2000, 2000)
    >>> moment("yesterday")
    Traceback (most recent call last):
    ...
    ValueError: start 'yesterday': expected earliest, latest, or a time such as 2026-01-31T00:00:00Z
    """
    if isinstance(start, str):
        if start in {"earliest", "latest"}:
            return "earliest" if start == "earliest" else "latest"
        try:
            start = int(timestamp(start) * 1000)
        except ValueError as error:
            raise ValueError(
                f"start {start!r}: expected earliest, latest, or a time such as "
                "2026-01-31T00:00:00Z"
            ) from error
    if isinstance(start, datetime):
        start = int(timestamp(start) * 1000)
    if start < 0:
        raise ValueError(f"start {start}: expected milliseconds since 1970, at least 0")
    return start
