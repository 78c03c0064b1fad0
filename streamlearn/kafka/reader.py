"""The seam between the source and a client library: what is asked of one that reads.

All that makes a source the same over any library (which topics, where to start, what a gap means,
in which order) is written once, above this seam.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from streamlearn.errors import SourceChanged, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamlearn.stream.records import Partition, Records


class Topic(NamedTuple):
    """A topic as the cluster has it; brokers before 2.8 give no id."""

    id: str
    partitions: int


class Cluster(NamedTuple):
    """What the cluster says of itself and of the topics that were asked for and exist."""

    id: str
    brokers: int
    topics: dict[str, Topic]


class OutOfRange(Exception):
    """The broker does not have the record at this position, or not what was read before it."""

    def __init__(self, partition: Partition, detail: str) -> None:
        super().__init__(partition, detail)
        self.partition = partition
        self.detail = detail


def cut_off(partition: Partition, position: int, detail: str) -> SourceChanged:
    """Return the error for a partition that lacks records that were read from it."""
    return SourceChanged(
        f"kafka: {partition.topic}/{partition.number} was cut before position {position} "
        f"({detail}): the brokers lost records that were learned, or the topic was made again; "
        "--reset-offsets resumes with these models"
    )


def unreadable(partition: Partition, first: int, end: int, reason: str) -> SourceError:
    """Return the error for records of which the client library can make nothing."""
    topic, number = partition
    where = f"{topic}:{number}:{first}" + (f" to {end - 1}" if end > first + 1 else "")
    return SourceError(
        f"kafka: unreadable records at {where}: {reason}; --skip-to {topic}:{number}:{end} resumes "
        "after them"
    )


class KafkaReader(Protocol):
    """A client library that reads from partitions assigned by hand.

    `poll`, `assign`, `pause` and `resume` are for one thread; the others may be called from
    another one, and wait for the broker.
    """

    def names(self) -> list[str]:
        """Return the names of all topics that we may know of."""

    def cluster(self, topics: Sequence[str]) -> Cluster:
        """Describe the cluster and these topics; never makes one."""

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Ask a broker, now, for those of these topics that exist; never makes one."""

    def first(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset of the oldest record."""

    def last(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset after the newest record that may be read."""

    def since(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int | None]:
        """Return the offset of the first record at or after a time in ms; None: there is none."""

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions too, from these positions on."""

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Read these no more."""

    def poll(self, seconds: float, most: int) -> list[Records]:
        """Return what has come, waiting for it at most this long; `OutOfRange` once if so.

        Records without values say that the position has moved over what is not for us: the marks
        of transactions, and what aborted ones wrote.
        """

    def highwater(self, partition: Partition) -> int | None:
        """Return the offset after the newest record, as of the last fetch; None: before any."""

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Do not fetch these until `resume`; loses nothing."""

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch these again."""

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Store the positions for lag tools, if there is a group to store them under."""

    def close(self) -> None:
        """Give the connections back, within a few seconds even without a broker."""
