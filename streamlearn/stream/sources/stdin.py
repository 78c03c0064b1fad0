"""Standard input as a source: each line is a record, read once."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

from streamlearn.errors import SourceChangedError
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITION = Partition("stdin")
BLOCK = 1 << 16


class StandardInput:
    """Lines of standard input, or of another pipe by its descriptor.

    They are read once, so a checkpoint's position cannot be resumed. The first poll that returns
    lines returns at least `first` of them if there are so many, so that column types inferred from
    them do not depend on when the lines arrived. With the `delimiter` of CSV, quoted values may
    contain line breaks.
    """

    def __init__(
        self,
        *,
        batch: int = 2000,
        first: int = 0,
        delimiter: str | None = None,
        descriptor: int | None = None,
    ) -> None:
        self.batch = batch
        self._descriptor = descriptor
        self._lines = Lines("standard input", first=first, delimiter=delimiter)
        self._ended = False

    def identity(self) -> dict[str, str]:
        """Return a constant: inputs cannot be distinguished."""
        return {"stdin": ""}

    def open(
        self,
        positions: Mapping[Partition, int],
        identity: Mapping[str, str] | None,  # noqa: ARG002 - inputs cannot be distinguished
    ) -> None:
        """Begin; SourceChangedError if there is a position."""
        at = positions.get(PARTITION, 0)
        if at:
            raise SourceChangedError(
                f"the checkpoint is at byte {at} of standard input, which cannot be resumed: use a "
                "file, or start over without the checkpoint"
            )

    def poll(self, seconds: float) -> list[Records]:
        """Return the next lines, or none if none came in this time."""
        if not self._lines.waiting and not self._ended:
            self._read(seconds)
        if not self._lines.waiting:
            return []
        offsets, values, end = self._lines.take(self.batch)
        return [Records(PARTITION, offsets, values, end)] if offsets else []

    def _read(self, seconds: float) -> None:
        descriptor = sys.stdin.fileno() if self._descriptor is None else self._descriptor
        ready, _, _ = select.select([descriptor], [], [], seconds)
        if not ready:
            return
        if not self._lines.fill(lambda room: os.readv(descriptor, [room]), BLOCK):
            self._ended = True
            self._lines.finish()

    def stop(self) -> None:
        """End the input after the complete lines that were read, as Ctrl-C does."""
        self._ended = True
        self._lines.release()

    def lag(self) -> dict[Partition, int | None]:
        """Return 0 at the end; until then nothing is known of a pipe, which may be silent."""
        return {PARTITION: 0} if self.ended() else {}

    def lost(self) -> Mapping[Partition, int]:
        """Return an empty mapping: a pipe loses no lines."""
        return {}

    def ended(self) -> bool:
        """Whether the last line was returned."""
        return self._ended and not self._lines.waiting

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Do nothing: a pipe has no place for positions."""

    def close(self) -> None:
        """Leave the input open: this source has not opened it."""
