"""Stop conditions: at the end of the stream, at a time, or after a number of records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.core.times import timestamp
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.stream.polled import Polled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.stream import Partition, Records, Source


class Until:
    """Never stop; the base class of the other conditions."""

    def truncate(self, polled: Sequence[Records]) -> Sequence[Records]:
        """Return the records before the end; the positions of the others stay unchanged."""
        return polled

    def reached(self, source: Source) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether to stop."""
        return False


class UntilEnd(Until):
    """Stop after the records that were present at the start."""

    def reached(self, source: Source) -> bool:
        """Tell whether the source has delivered them all."""
        return source.ended()


class UntilCount(Until):
    """Stop after exactly this many records."""

    def __init__(self, count: int) -> None:
        self.remaining = count

    def truncate(self, polled: Sequence[Records]) -> Sequence[Records]:
        """Return at most the remaining number of records, in polled order."""
        whole = Polled(polled)
        if len(whole) <= self.remaining:
            self.remaining -= len(whole)
            return polled
        which, _ = whole.find(np.arange(self.remaining))
        counts = np.bincount(which, minlength=len(polled)).tolist()
        self.remaining = 0
        return [one.part(0, count) for one, count in zip(polled, counts, strict=True) if count]

    def reached(self, source: Source) -> bool:
        """Tell whether the count is reached, or the source has ended."""
        return self.remaining <= 0 or source.ended()


class UntilTime(Until):
    """Stop each partition at its first record with a time at or after this one."""

    def __init__(self, moment: float) -> None:
        self.moment = moment  # milliseconds since 1970
        self._finished: set[Partition] = set()

    def truncate(self, polled: Sequence[Records]) -> Sequence[Records]:
        """Return the records before the first later one of their partition."""
        return [part for one in polled if (part := self._before(one)) is not None]

    def _before(self, records: Records) -> Records | None:
        if records.partition in self._finished:
            return None
        if not len(records.offsets):
            return records
        if records.times is None:
            raise Stop(
                Exit.USAGE,
                "--until TIME: the records of this source have no times; use a number of records",
            )
        late = (i for i, moment in enumerate(records.times) if moment >= self.moment)
        first_late = next(late, None)
        if first_late is None:
            return records
        self._finished.add(records.partition)
        return records.part(0, first_late) if first_late else None

    def reached(self, source: Source) -> bool:
        """Tell whether each partition has passed the time, or has no earlier records left."""
        if source.ended():
            return True
        lags = source.lag()
        if not lags or not time.time() * 1000.0 >= self.moment:
            return False
        return all(where in self._finished or lag == 0 for where, lag in lags.items())


def parse_until(value: str | int | None) -> Until:
    """Parse the value of `--until`, or of run.until.

    >>> type(parse_until("end")).__name__, parse_until("100").remaining, parse_until(100).remaining
    ('UntilEnd', 100, 100)
    """
    if value is None:
        return Until()
    text = str(value)
    if text == "end":
        return UntilEnd()
    if text.isdigit():
        return UntilCount(int(text))
    try:
        return UntilTime(timestamp(text) * 1000.0)
    except ValueError:
        raise Stop(
            Exit.USAGE,
            f'until = {text!r}: expected "end", a number of events, or a time such as '
            "2026-01-31T00:00:00Z",
        ) from None
