"""Standard input as a source: a line a record, once."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING

from streamlearn.errors import SourceChanged
from streamlearn.stream.lines import Lines
from streamlearn.stream.source import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITION = Partition("stdin")
BLOCK = 1 << 16


class StandardInput:
    """Lines of standard input, or of another pipe by its descriptor.

    What was read is gone, so a checkpoint's position cannot be gone on from. The first poll that
    gives lines gives `first` of them at least, if there are so many: for what is guessed of them is
    not to depend on when they came.
    """

    def __init__(self, *, batch: int = 2000, first: int = 0, descriptor: int | None = None) -> None:
        self.batch = batch
        self._first = self._missing = first  # lines that the first poll still waits for
        self._held: list[bytes] = []
        self._descriptor = descriptor
        self._lines = Lines("standard input")
        self._ended = False

    def identity(self) -> dict[str, str]:
        """Nothing tells one input from another."""
        return {"stdin": ""}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Begin; SourceChanged if something was read before."""
        at = positions.get(PARTITION, 0)
        if at or (identity is not None and dict(identity) != self.identity()):
            raise SourceChanged(
                f"the checkpoint has read {at} bytes of its source, and standard input cannot be "
                "read again: give the data as a file, or begin afresh without the checkpoint"
            )

    def poll(self, seconds: float) -> list[Records]:
        """The next lines, or none if none came in this time."""
        if not self._lines.waiting and not self._ended:
            self._read(seconds)
        if self._held:
            return []
        offsets, values, end = self._lines.take(max(self.batch, self._first))
        if offsets:
            self._first = 0
        return [Records(PARTITION, offsets, values, end)] if offsets else []

    def _read(self, seconds: float) -> None:
        descriptor = sys.stdin.fileno() if self._descriptor is None else self._descriptor
        ready, _, _ = select.select([descriptor], [], [], seconds)
        if not ready:
            return
        if self._missing > 0:
            more = self._hold(os.read(descriptor, BLOCK))
        else:
            more = self._lines.fill(lambda room: os.readv(descriptor, [room]), BLOCK) > 0
        if not more:
            self._ended = True
            self._lines.finish()

    def _hold(self, block: bytes) -> bool:
        """Keep a block back until there are as many lines as the first poll is to give."""
        self._missing -= block.count(b"\n")
        self._held.append(block)
        if self._missing <= 0 or not block:
            held = b"".join(self._held)
            self._held = []
            self._lines.fill(io.BytesIO(held).readinto, len(held))
        return bool(block)

    def lag(self) -> dict[Partition, int | None]:
        """Not to be known of a pipe."""
        return {PARTITION: 0 if self.ended() else None}

    def ended(self) -> bool:
        """Whether the last line was given."""
        return self._ended and not self._lines.waiting

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nothing to do: nobody watches."""

    def close(self) -> None:
        """The input stays open: it is not ours."""
