"""The interface of a client library that reads.

What does not depend on the library (topics, start positions, gaps, order) is implemented once, in
the source that uses this interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from streamlearn.errors import SourceChangedError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamlearn.stream.records import Partition, Records


class Topic(NamedTuple):
    """A topic of the cluster; brokers before 2.8 give it no id."""

    id: str
    partitions: int


class Cluster(NamedTuple):
    """A cluster, and those of the requested topics that exist."""

    id: str
    brokers: int
    topics: dict[str, Topic]


class OutOfRangeError(Exception):
    """The broker has no record at this position, or other records before it."""

    def __init__(self, partition: Partition, detail: str) -> None:
        super().__init__(partition, detail)
        self.partition = partition
        self.detail = detail


def cut_off(partition: Partition, position: int, detail: str) -> SourceChangedError:
    """Return the error for a partition that lost records that were read from it."""
    return SourceChangedError(
        f"kafka: {partition.topic}/{partition.number} was truncated before position {position} "
        f"({detail}): the brokers lost records that were learned, or the topic was created again; "
        "use --reset-offsets to resume with these models"
    )


def unreadable(partition: Partition, first: int, end: int, reason: str) -> SourceError:
    """Return the error for records that the client library cannot read."""
    topic, number = partition
    where = f"{topic}:{number}:{first}" + (f" to {end - 1}" if end > first + 1 else "")
    return SourceError(
        f"kafka: unreadable records at {where}: {reason}; use --skip-to {topic}:{number}:{end} to "
        "resume after them"
    )


class KafkaReader(Protocol):
    """A client library that reads from manually assigned partitions.

    `poll`, `assign`, `pause` and `resume` belong to one thread. The other methods may be called
    from another thread, and block until the broker answers.
    """

    def names(self) -> list[str]:
        """Return the names of all topics that this client may describe."""

    def cluster(self, topics: Sequence[str]) -> Cluster:
        """Describe the cluster and these topics, without creating them."""

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Ask a broker which of these topics exist, without a cache and without creating them."""

    def first(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset of each partition's oldest record."""

    def last(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset after each partition's newest readable record."""

    def since(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int | None]:
        """Return the offset of the first record at or after a time in ms, None if there is none."""

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Also read these partitions, from these positions."""

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""

    def poll(self, seconds: float, most: int) -> list[Records]:
        """Return records, waiting at most this long for them; raise `OutOfRangeError` once.

        `Records` without values advance the position over what is not returned: control records of
        transactions, and records of aborted ones.
        """

    def highwater(self, partition: Partition) -> int | None:
        """Return the offset after the newest record as of the last fetch, None before the first."""

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions until `resume`, without losing records."""

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions again."""

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit the positions for lag tools, if there is a group."""

    def close(self) -> None:
        """Close the connections, within a few seconds even without a broker."""
