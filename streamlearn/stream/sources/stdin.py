"""Standard input as a source: a line a record, once."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

from streamlearn.errors import SourceChanged
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITION = Partition("stdin")
BLOCK = 1 << 16


class StandardInput:
    """Lines of standard input, or of another pipe by its descriptor.

    What was read is gone, so a checkpoint's position cannot be gone on from. The first poll that
    gives lines gives `first` of them at least, if there are so many: for what is guessed of them is
    not to depend on when they came. With the `delimiter` of CSV, values in quotes may have line
    breaks.
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
        """Nothing tells one input from another."""
        return {"stdin": ""}

    def open(
        self,
        positions: Mapping[Partition, int],
        identity: Mapping[str, str] | None,  # noqa: ARG002 - nothing tells inputs apart
    ) -> None:
        """Begin; SourceChanged if something was read of it before."""
        at = positions.get(PARTITION, 0)
        if at:
            raise SourceChanged(
                f"the checkpoint has read {at} bytes of standard input, and they cannot be read "
                "again: give the data as a file, or begin afresh without the checkpoint"
            )

    def poll(self, seconds: float) -> list[Records]:
        """The next lines, or none if none came in this time."""
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

    def lag(self) -> dict[Partition, int | None]:
        """Not to be known of a pipe."""
        return {PARTITION: 0 if self.ended() else None}

    def lost(self) -> Mapping[Partition, int]:
        """None."""
        return {}

    def ended(self) -> bool:
        """Whether the last line was given."""
        return self._ended and not self._lines.waiting

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nothing to do: nobody watches."""

    def close(self) -> None:
        """The input stays open: it is not ours."""
