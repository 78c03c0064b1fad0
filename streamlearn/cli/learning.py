"""One pass over a source: its records as decoded batches; bad lines are refused, or counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from streamlearn.engine.events import Events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlearn.stream import Decoder, Records, Source

POLL_SECONDS = 0.25
NAMED = 5  # bad lines that are named; the others are counted


class Pass:
    """The batches of a source, from its beginning to its end.

    Parameters
    ----------
    source
        Where the records come from.
    decoder
        Makes events of them.
    skip
        Whether bad records are left out; else the first one ends the pass.
    tell
        Is given the source after each batch, for a progress bar.
    """

    def __init__(
        self,
        source: Source,
        decoder: Decoder,
        *,
        skip: bool,
        tell: Callable[[Source], None] | None = None,
    ) -> None:
        self.source = source
        self.decoder = decoder
        self.skip = skip
        self.tell = tell
        self.records = self.events = self.bad = 0
        self.reasons: Counter[str] = Counter()
        self.named: list[str] = []

    def __iter__(self) -> Iterator[Events]:
        events = Events()
        self.source.open({}, None)
        while True:
            polled = self.source.poll(POLL_SECONDS)
            for records in polled:
                events.clear()
                self.decoder.decode(records.values, events)
                self._count(records, events)
                yield events
            if self.tell is not None:
                self.tell(self.source)
            if not polled and self.source.ended():
                return

    def _count(self, records: Records, events: Events) -> None:
        for index, _, reason in events.bad:
            place = self._place(records, index)
            if not self.skip:
                raise ValueError(f"{place}: {reason}; repair it, or leave it out: --on-bad skip")
            if len(self.named) < NAMED:
                self.named.append(f"{place}: {reason}")
        self.records += len(records.offsets)
        self.events += len(events)
        self.bad += len(events.bad)

    def _place(self, records: Records, index: int) -> str:
        """What a record is called in a message."""
        return f"{records.partition.topic}:{records.offsets[index]}"
