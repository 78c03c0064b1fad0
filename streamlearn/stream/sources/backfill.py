"""Files of the past, then a live stream: one source, which resumes in either part.

History has the events before a cut, the stream those at or after it, each told by its own time:
decoders leave out the others (`Decoder.use_window`). So the stream has to be read from a little
before the cut, where events arrive in disorder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.errors import SourceChangedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamlearn.stream.records import Partition, Records
    from streamlearn.stream.sources.source import Source

CUT = "backfill"  # its name in the identity
ENDED = "ended"  # after the cut, once history was read


class Backfill:
    """History until its end, then the stream.

    The stream is opened first, so that a checkpoint has its start from the beginning on, and closed
    while history is read.

    Parameters
    ----------
    history, stream
        The sources of both.
    cut
        What separates them; resuming with another one is refused.
    starts
        Positions at which the stream starts, instead of its own choice.
    on_end
        Called when history ends.
    """

    def __init__(
        self,
        history: Source,
        stream: Source,
        *,
        cut: str,
        starts: Mapping[Partition, int] | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.history = history
        self.stream = stream
        self.cut = cut
        self.in_history = True
        self._starts = dict(starts or {})
        self._on_end = on_end
        self._first: list[Records] = []  # of the stream: where it starts
        self._positions: dict[Partition, int] = {}  # of the stream
        self._identity: dict[str, str] = {}

    def identity(self) -> dict[str, str]:
        """Return the identities of both, and the cut."""
        if self.in_history:
            return {**self._identity, **self.history.identity(), CUT: self.cut}
        return {**self.stream.identity(), CUT: f"{self.cut} {ENDED}"}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Open the part that is to be resumed; history need not exist any more after its end."""
        if identity is not None:
            refuse_other_cut(identity, self.cut)
        self.in_history = identity is None or not cut_of(identity)[1]
        self._positions = {**self._starts, **positions}
        self.stream.open(self._positions, identity)
        if self.in_history:
            self._identity = self.stream.identity()
            self._first = self.stream.poll(0.0)
            self._positions |= {one.partition: one.end for one in self._first}
            self.stream.close()
            self.history.open(positions, identity)

    def poll(self, seconds: float) -> list[Records]:
        """Return the next records, all of history or all of the stream."""
        if self._first:
            first, self._first = self._first, []
            return first
        if self.in_history:
            found = self.history.poll(seconds)
            if found or not self.history.ended():
                return found
            self._end_history()
        return self.stream.poll(seconds)

    def _end_history(self) -> None:
        """Continue with the stream."""
        self.history.close()
        self.stream.open(self._positions, self._identity)
        self.in_history = False
        self._on_end()

    def lag(self) -> dict[Partition, int | None]:
        """Return the lag of the part that is read."""
        return self.history.lag() if self.in_history else self.stream.lag()

    def lost(self) -> Mapping[Partition, int]:
        """Return how many records of the stream were deleted before they were read."""
        return self.stream.lost()

    def ended(self) -> bool:
        """Whether both have ended."""
        return not self.in_history and self.stream.ended()

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Publish the positions in the stream."""
        self.stream.commit(positions)

    def close(self) -> None:
        """Close both."""
        self.history.close()
        self.stream.close()


def cut_of(identity: Mapping[str, str]) -> tuple[str, bool]:
    """Return the cut of a checkpoint, "" for none, and whether all of history was read.

    >>> cut_of({"backfill": "2026-11-18"}), cut_of({"backfill": "2026-11-18 ended"}), cut_of({})
    (('2026-11-18', False), ('2026-11-18', True), ('', False))
    """
    cut, _, ended = identity.get(CUT, "").partition(" ")
    return cut, bool(ended)


def refuse_other_cut(identity: Mapping[str, str], cut: str) -> None:
    """Refuse a checkpoint with another cut, or of the stream alone."""
    before, _ = cut_of(identity)
    if before != cut:
        learned = f"history before {before}" if before else "the stream, which comes after history"
        raise SourceChangedError(
            f"backfill.until is {cut}, but the checkpoint has learned {learned}; restore the "
            "configuration, or use another checkpoint.path"
        )


def refuse_unfinished(identity: Mapping[str, str]) -> None:
    """Refuse a checkpoint within history, for a source without it."""
    before, ended = cut_of(identity)
    if before and not ended:
        raise SourceChangedError(
            f"the checkpoint has learned only a part of the history before {before}; restore "
            "[backfill] until all of it is learned"
        )
