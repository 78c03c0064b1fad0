"""The interface between the daemon and the origin of its records, such as Kafka or files.

A source gives raw records by partition, and with each batch the position to resume from. A
checkpoint keeps these positions; a source that is opened with them gives exactly the records that
follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.stream.records import Partition, Records


class Source(Protocol):
    """Records, from given positions on."""

    def identity(self) -> dict[str, str]:
        """What tells this stream from another of the same name (cluster and topic ids, inodes).

        A checkpoint keeps it; `open` is given the kept one.
        """

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Go to the positions, and where there is none to the configured start.

        `SourceError` if the stream is another than the one of `identity`, or a position is no
        longer, or not yet, there.
        """

    def poll(self, seconds: float) -> list[Records]:
        """The next records, at most a batch; nothing if none came in this time."""

    def lag(self) -> dict[Partition, int | None]:
        """How many records (bytes, of files) wait in each partition; None: not known yet."""

    def lost(self) -> Mapping[Partition, int]:
        """How many records were gone before they could be read, since the start."""

    def ended(self) -> bool:
        """Whether all there was at the start has been given (a file that is not followed)."""

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Tell the source's own tools how far a durable checkpoint has come."""

    def close(self) -> None:
        """Give everything back; may be called twice."""
