"""A source of records in Kafka: all partitions of some topics, each from a position that is ours.

Partitions are assigned by hand: whoever owns the models reads all of them, and the positions of a
checkpoint are the truth. What is committed is for lag tools.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from streamlearn.errors import SourceChanged, SourceError
from streamlearn.kafka.epochs import LeaderEpochs, marks_of, without, written
from streamlearn.kafka.held import Unverified
from streamlearn.kafka.order import Backlog
from streamlearn.kafka.positions import Asked, Start, settle
from streamlearn.kafka.reader import OutOfRange, cut_off
from streamlearn.kafka.topics import Selection, Watch, identity_of, ids_of, partitions_of
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.lines import weighed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.kafka.connection import Connection
    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.kafka.topics import News

log = logging.getLogger(__name__)

LONGEST_POLL = 0.25  # seconds; a signal does not interrupt a poll
PAYLOAD_SHARE = 4  # of the bytes fetched ahead, one in so many may wait here as Python objects
RECORD_BYTES = 320  # that a record takes as Python objects, beside those of its value


class KafkaSource:
    """Records of Kafka's topics.

    Parameters
    ----------
    connection
        Where the cluster is, over which library, who we are.
    topics, pattern
        Topics by name, or all whose whole name matches a regular expression; one of the two.
    group_id
        Under what name positions are committed for lag tools; None: they are not.
    start
        Where to begin without a position: `"earliest"`, `"latest"`, or a time (ISO 8601 or
        milliseconds since 1970). What appears later begins at its beginning.
    isolation
        `"read_committed"` (records of aborted transactions are not seen) or `"read_uncommitted"`.
    order
        How a backlog is drained: partitions `"even"`, or by the records' `"time"`.
    fetch_bytes
        How much is fetched ahead, of all partitions together.
    on_gap
        If records at a position are gone, because retention has overtaken it: `"stop"`, or
        `"continue"` at what is left, counting in `lost()` how many are not there.
    reset_offsets
        Go on, too, where a position is past the end (at the end), and in topics that were made
        again or are of another cluster (at `start`).
    batch
        How many records a poll returns at most.
    refresh_seconds
        How often to look for new topics and partitions.
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
        batch: int = 5000,
        refresh_seconds: float = 5.0,
    ) -> None:
        self._connection = connection
        self._selection = Selection(tuple(topics), pattern)
        self._group = group_id
        self._asked = Asked(moment(start), on_gap == "continue", reset_offsets)
        self._isolation = isolation
        self._fetch_bytes = fetch_bytes
        self._by_time = order == "time"
        self._batch = batch
        self._refresh = refresh_seconds
        self._lost: dict[Partition, int] = {}
        self._identity: dict[str, str] = {}
        self._ends: dict[Partition, int] = {}  # of what poll has given
        self._goal: dict[Partition, int] = {}  # the ends when it was opened
        self._told: list[Records] = []  # positions to tell of, without records
        self._backlog = Backlog(by_time=self._by_time)
        self._paused: set[Partition] = set()
        self._most = min(batch, 500)  # records to ask for, by their size; small until it is known
        self._asked_ends = 0.0
        self._reader: KafkaReader | None = None
        self._held: Unverified | None = None
        self._fault: SourceError | None = None  # raised when all that came before it was given
        self._epochs = LeaderEpochs()
        self._watch: Watch | None = None

    def identity(self) -> dict[str, str]:
        """Return the ids of the cluster and of the topics, as of now.

        Those of topics that are no longer read stay: a checkpoint has positions in them. The leader
        epoch of each partition's last record tells whether the log before a position has changed.
        """
        return {**self._identity, **written(self._epochs.marks)}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Connect, and go to the positions; `SourceError` with the reason if that can't be."""
        reader = self._connection.reader(
            isolation=self._isolation, fetch_bytes=self._fetch_bytes, group=self._group
        )
        self._reader = reader
        try:
            cluster = self._selection.look(reader)
            self._selection.check(reader, cluster, self._connection.bootstrap)
            now = identity_of(cluster)
            self._identity = {**(identity or {}), **now}
            settled = settle(
                reader,
                partitions_of(cluster),
                positions,
                (identity, now),
                self._asked,
                by_pattern=self._selection.pattern is not None,
            )
            self._held = Unverified(reader, ids_of(cluster))
            self._goal = settled.ends
            self._count_lost(settled.lost)
            self._identity = without(self._identity, settled.positions)
            if not self._asked.reset:
                self._epochs.seek(marks_of(identity or {}, settled.positions))
            self._assign(settled.positions)
        except BaseException:
            self.close()
            raise
        self._watch = Watch(reader, self._selection, self._refresh, cluster)

    def _assign(self, positions: Mapping[Partition, int]) -> None:
        if positions:
            start = self._epochs.start
            self._live().assign({where: start(where, at) for where, at in positions.items()})
        self._ends.update(positions)
        # A checkpoint is to have a position for every partition, with or without a record of it.
        self._told += [Records(partition, (), (), end) for partition, end in positions.items()]

    def poll(self, seconds: float) -> list[Records]:
        """Return the next records, at most a batch."""
        self._hear()
        if self._told:
            told, self._told = self._told, []
            return told
        if not self._ends:  # a pattern that matches nothing yet
            time.sleep(min(seconds, LONGEST_POLL))
            return []
        self._fill(0.0)
        held = self._holding()
        if not held and not self._may_take():
            self._fill(min(seconds, LONGEST_POLL))
        # All partitions are to have their share: one whose records are all held is waited for.
        if not all(map(self._backlog.waits, held.partitions())):
            self._confirm(LONGEST_POLL)
            self._fill(0.0)  # what comes now is confirmed while this is learned
        taken = self._backlog.take(self._batch) if self._may_take() else []
        if self._fault is not None and not taken and not held:
            raise self._fault
        for records in taken:
            self._ends[records.partition] = records.end
            self._epochs.given(records)
        return taken

    def _hear(self) -> None:
        """Take what the watch has found."""
        for news in self._watch.take() if self._watch is not None else ():
            self._forget(news)
            self._identity.update(identity_of(news.cluster))
            self._holding().know(ids_of(news.cluster))
            if news.beginnings:
                log.info("%d new partitions, from their beginning", len(news.beginnings))
                self._assign(news.beginnings)

    def _forget(self, news: News) -> None:
        gone = [partition for partition in self._ends if partition.topic in news.gone]
        if gone:
            log.warning("deleted, and no longer read: %s", ", ".join(news.gone))
            self._live().drop(gone)
            self._backlog.drop(gone)
            self._holding().drop(gone)
            self._paused.difference_update(gone)
            for partition in gone:
                del self._ends[partition]
                self._goal.pop(partition, None)

    def _fill(self, seconds: float) -> None:
        """Let what has come wait its turn, until each partition that lags has some."""
        reader, held = self._live(), self._holding()
        while self._fault is None:
            try:
                came = reader.poll(seconds, self._most)
            except OutOfRange as gap:
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
        """Let those wait for their turn that are of the topics that we read."""
        for records, size in self._holding().take(seconds):
            self._backlog.add(records, size)

    def _hold(self, records: Records) -> None:
        size, _ = weighed(records.values)
        size += RECORD_BYTES * len(records.offsets)
        self._holding().add(records, size)
        if records.offsets:
            # So many that they are a few megabytes, also of records that were compressed well.
            room = self._fetch_bytes // (2 * PAYLOAD_SHARE)
            fitting = room * len(records.offsets) // max(size, 1)
            self._most = min(max(fitting, 1), self._batch)

    def _nobody_lacks(self) -> bool:
        held = self._holding().partitions()
        return len(self._ends) == 1 or all(partition in held for partition in self._lacking())

    def _lacking(self) -> list[Partition]:
        """Return the partitions that have records for us on the broker, and none to give."""
        reader = self._live()
        lacking = []
        for partition, end in self._ends.items():
            if not self._backlog.waits(partition):
                mark = reader.highwater(partition)
                if mark is None or mark > end:
                    lacking.append(partition)
        return lacking

    def _may_take(self) -> bool:
        """Whether a record may be given: by time, none while an earlier one may be on its way."""
        if not self._by_time:
            return self._backlog.size > 0 or any(map(self._backlog.waits, self._ends))
        lacking = self._lacking()
        if lacking and time.monotonic() - self._asked_ends > LONGEST_POLL:
            # The mark counts records of a transaction that is open, which are not for us yet.
            self._asked_ends = time.monotonic()
            ends = self._live().last(lacking)
            return all(ends[partition] <= self._ends[partition] for partition in lacking)
        return not lacking

    def _throttle(self) -> None:
        """By time, partitions with much that waits are not fetched while another has nothing."""
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

    def _overtaken(self, gap: OutOfRange) -> None:
        """Resume after a gap, if that is wanted: retention was faster than we are."""
        reader, partition = self._live(), gap.partition
        position = self._ends[partition]
        if self._epochs.give_up(partition):  # retention deleted the last record before the position
            reader.drop([partition])
            self._assign({partition: position})
            return
        first, last = reader.first([partition])[partition], reader.last([partition])[partition]
        if position >= first and not self._asked.reset:
            detail = f"it ends at {last}" if position > last else gap.detail
            raise cut_off(partition, position, detail)
        if position < first and not self._asked.skip_gaps:
            raise SourceChanged(
                f"kafka: {partition.topic}/{partition.number} begins at offset {first} now: "
                f"retention has overtaken position {position}, and what lies between is lost; "
                "--on-gap=continue goes on without it"
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
                    "%s/%d: %d records were deleted before they were read",
                    partition.topic,
                    partition.number,
                    count,
                )

    def lost(self) -> dict[Partition, int]:
        """Return how many records were deleted before they were read."""
        return dict(self._lost)

    def lag(self) -> dict[Partition, int | None]:
        """Return how many records wait on the broker and here, as of the last fetch."""
        lag: dict[Partition, int | None] = {}
        for partition, end in self._ends.items():
            mark = None if self._reader is None else self._reader.highwater(partition)
            lag[partition] = None if mark is None else max(mark - end, 0)
        return lag

    def ended(self) -> bool:
        """Whether all that was there when the source was opened has been given."""
        return not self._told and all(
            self._ends[partition] >= end for partition, end in self._goal.items()
        )

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Have these positions stored for lag tools, soon; an error is a line in the log."""
        if self._watch is not None:
            there = {where: at for where, at in positions.items() if where in self._ends}
            self._watch.commit(there)

    def close(self) -> None:
        """Give the connections back."""
        held, self._held = self._held, None
        if held is not None:
            held.close()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close(2.0)
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(Exception):  # a broker that is away can't be told
                reader.close()

    def _live(self) -> KafkaReader:
        if self._reader is None:
            raise ValueError("this source is closed, or not yet open")
        return self._reader

    def _holding(self) -> Unverified:
        if self._held is None:
            raise ValueError("this source is closed, or not yet open")
        return self._held


def moment(start: str | int | datetime) -> Start:
    """Return a start as "earliest", "latest" or milliseconds; a time without a zone is of UTC.

    >>> moment("latest"), moment("1970-01-01T00:00:02Z"), moment("1970-01-01 00:00:02")
    ('latest', 2000, 2000)
    >>> moment("yesterday")
    Traceback (most recent call last):
    ...
    ValueError: start 'yesterday': earliest, latest, or a time as 2026-01-31T00:00:00Z
    """
    if isinstance(start, str):
        if start in {"earliest", "latest"}:
            return "earliest" if start == "earliest" else "latest"
        try:
            start = datetime.fromisoformat(start)
        except ValueError as error:
            raise ValueError(
                f"start {start!r}: earliest, latest, or a time as 2026-01-31T00:00:00Z"
            ) from error
    if isinstance(start, datetime):
        zoned = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
        start = int(zoned.timestamp() * 1000)
    if start < 0:
        raise ValueError(f"start {start}: not before 1970")
    return start
