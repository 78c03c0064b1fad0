"""The interface between the daemon and the origin of its records, such as Kafka or files.

A source gives raw records by partition, and with each batch the position to resume from. A
checkpoint keeps these positions; a source that is opened with them gives exactly the records that
follow. `conformance` tests whether a source does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.stream.records import Partition, Records


class Source(Protocol):
    """A stream of records that is read from given positions."""

    def identity(self) -> dict[str, str]:
        """Return what distinguishes this stream from others of the same name, such as topic ids.

        A checkpoint keeps it for `open`.
        """

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Seek to the positions, and in other partitions to the configured start.

        `SourceError` if the stream does not have this identity, or does not hold a position.
        """

    def poll(self, seconds: float) -> list[Records]:
        """Return the next records, at most a batch; none if none came in this time."""

    def lag(self) -> dict[Partition, int | None]:
        """Return the records left in each partition, estimated for lines; None if unknown."""

    def lost(self) -> Mapping[Partition, int]:
        """Return how many records were deleted before they were read, since the start."""

    def ended(self) -> bool:
        """Whether all records that existed at the start were returned; never if followed."""

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Publish the positions of a durable checkpoint for lag tools."""

    def close(self) -> None:
        """Release all resources; may be called twice."""


METHODS = tuple(name for name in vars(Source) if not name.startswith("_"))
