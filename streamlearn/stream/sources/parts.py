"""Parts of a source: its first records before it is polled, and a range of its records."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from streamlearn.stream.column_rows import ColumnRows
from streamlearn.stream.formats.arrow import ArrowDecoder
from streamlearn.stream.sources.record_files import RecordFiles
from streamlearn.stream.sources.stdin import StandardInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.stream.formats.decoder import Decoder
    from streamlearn.stream.records import Partition, Records
    from streamlearn.stream.sources.source import Source

POLL_SECONDS = 0.25


class SourcePart:
    """The records [start, stop) of a source; those at its beginning can be read ahead.

    Parameters
    ----------
    source
        The source, read from its beginning.
    start, stop
        Numbers of records; stop None: to the end.

    Examples
    --------
    >>> from streamlearn.stream import Clicks, Synthetic
    >>> part = SourcePart(Synthetic(Clicks("clicks", 0), events=30, batch=10), 5, 25)
    >>> len(part.first(10))
    15
    >>> [len(one.offsets) for _ in range(3) for one in part.poll(0.0)], part.ended()
    ([5, 10, 5], True)
    """

    def __init__(self, source: Source, start: int = 0, stop: int | None = None) -> None:
        self.source = source
        self.start, self.stop = start, stop
        self.interrupted = False  # while the first records were read ahead
        self._at = 0  # records polled
        self._ahead: deque[list[Records]] = deque()
        self._opened = False

    def first(self, count: int) -> list[bytes]:
        """Return the first records, at least so many unless there are fewer; they are polled later.

        Nothing else has opened the source. Ctrl-C ends the part after the records that are there.
        """
        self.open({}, None)
        try:
            while not self._ended() and self._held() < count:
                if polled := self._poll(POLL_SECONDS):
                    self._ahead.append(polled)
        except KeyboardInterrupt:
            self.interrupted = True
            if isinstance(self.source, StandardInput):  # which may hold lines back
                self.source.stop()
                while polled := self._poll(0.0):
                    self._ahead.append(polled)
            self.stop = self._at
        records = [one for polled in self._ahead for one in polled]
        return [value for one in records for value in one.values if value is not None]

    def meaningless(self) -> dict[str, str]:
        """Return the columns of the records read ahead that no field can hold, and their types."""
        found: dict[str, str] = {}
        for one in (one for polled in self._ahead for one in polled):
            if isinstance(one.values, ColumnRows):
                found |= one.values.meaningless
        return found

    def identity(self) -> dict[str, str]:
        """Return what distinguishes the source."""
        return self.source.identity()

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Open the source, once."""
        if not self._opened:
            self._opened = True
            self.source.open(positions, identity)

    def poll(self, seconds: float) -> list[Records]:
        """Return the records that were read ahead, then the next ones."""
        return self._ahead.popleft() if self._ahead else self._poll(seconds)

    def lag(self) -> dict[Partition, int | None]:
        """Return the lag of the source."""
        return self.source.lag()

    def lost(self) -> Mapping[Partition, int]:
        """Return how many records were lost."""
        return self.source.lost()

    def ended(self) -> bool:
        """Whether all records of the part were returned."""
        return not self._ahead and self._ended()

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit the positions."""
        self.source.commit(positions)

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def _held(self) -> int:
        return sum(len(one.offsets) for polled in self._ahead for one in polled)

    def _ended(self) -> bool:
        return (self.stop is not None and self._at >= self.stop) or self.source.ended()

    def _poll(self, seconds: float) -> list[Records]:
        while not self._ended():
            polled = self.source.poll(seconds)
            if not polled:
                return []
            found = [part for records in polled if (part := self._cut(records)) is not None]
            if found:
                return found
        return []

    def _cut(self, records: Records) -> Records | None:
        """Return what is in the part; None if nothing is."""
        size, before = len(records.offsets), self._at
        self._at += size
        low = min(max(self.start - before, 0), size)
        high = size if self.stop is None else min(max(self.stop - before, 0), size)
        return records.part(low, high) if low < high else None


def whole(source: Source) -> Source:
    """Return the source that this one is a part of."""
    return source.source if isinstance(source, SourcePart) else source


def narrow(source: Source, decoder: Decoder) -> None:
    """Let a source leave out the columns that the decoder has not read in the last batch."""
    files = whole(source)
    if isinstance(files, RecordFiles) and isinstance(decoder, ArrowDecoder):
        files.leave_out(decoder.unread())


def count_records(source: Source) -> int:
    """Return how many records a source has, and close it.

    >>> from streamlearn.stream import Clicks, Synthetic
    >>> count_records(Synthetic(Clicks("clicks", 0), events=30, batch=7))
    30
    """
    count = 0
    source.open({}, None)
    if isinstance(source, RecordFiles) and source.unit == "rows":
        return source.progress()[1]
    try:
        while not source.ended():
            count += sum(len(one.offsets) for one in source.poll(POLL_SECONDS))
    finally:
        source.close()
    return count
