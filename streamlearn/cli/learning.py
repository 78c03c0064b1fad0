"""One pass over a source: its records as decoded batches; bad lines are refused, or counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from streamlearn.engine.events import Events
from streamlearn.stream import Files, decoded
from streamlearn.stream.sources.ahead import ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from streamlearn.stream import Decoder, Records, Source

POLL_SECONDS = 0.25
NAMED = 5  # bad lines that are named; the others are counted
MANY = 50  # different numbers that are hardly classes


def doubt(events: Events) -> str | None:
    """What to ask about labels that are learned as classes, if they look like measurements."""
    labels = {events.label_of(i) for i in range(len(events))}
    numbers = sum(isinstance(label, int | float) and label not in (0, 1) for label in labels)
    if numbers <= MANY:
        return None
    return (
        f"among the first labels are {numbers:,} different numbers, and each is learned as a class "
        "of its own, which takes its time: did you mean --regression?"
    )


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
    first
        A batch ends after so many records, and after twice as many, and so on (`at_point`); None:
        batches are what the source gives.
    """

    def __init__(
        self,
        source: Source,
        decoder: Decoder,
        *,
        skip: bool,
        tell: Callable[[Source], None] | None = None,
        first: int | None = None,
    ) -> None:
        self.source = source
        self.decoder = decoder
        self.skip = skip
        self.tell = tell
        self.next = first
        self._batches: Generator[tuple[Records, Events] | None, None, None] | None = None
        self.at_point = False
        self.records = self.events = self.bad = 0
        self.reasons: Counter[str] = Counter()
        self.named: list[str] = []

    def __iter__(self) -> Iterator[Events]:
        # where points are made, what a learner costs is measured: nothing else goes on then
        whole = self.next is None
        self._batches = ahead(decoded(self.source, self.decoder)) if whole else self._parts()
        for batch in self._batches:
            if self.tell is not None:
                self.tell(self.source)
            if batch is not None:
                self._count(*batch)
                yield batch[1]

    def close(self) -> None:
        """Read no more."""
        if self._batches is not None:
            self._batches.close()
        self.source.close()

    def _parts(self) -> Generator[tuple[Records, Events], None, None]:
        """Batches that end where points are."""
        events = Events()
        self.source.open({}, None)
        while True:
            polled = self.source.poll(POLL_SECONDS)
            for records in polled:
                for part in self._cut(records):
                    events.clear()
                    self.decoder.decode(part.values, events)
                    yield part, events
            if not polled and self.source.ended():
                return

    def _cut(self, records: Records) -> Iterator[Records]:
        """The records up to the next point, and those behind it."""
        start, n = 0, len(records.offsets)
        while start < n:
            stop = n if self.next is None else min(n, start + self.next - self.records)
            self.at_point = self.next is not None and self.records + stop - start == self.next
            if self.at_point and self.next is not None:
                self.next *= 2
            yield replace(
                records, offsets=records.offsets[start:stop], values=records.values[start:stop]
            )
            start = stop

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
        """What a record is called in a message: its file and the number of its line."""
        name, offset = records.partition.topic, records.offsets[index]
        if isinstance(self.source, Files):
            return f"{name}:{self.source.line_number(records.partition, offset)}"
        return f"{name}: line {self.records + index + 1}"
