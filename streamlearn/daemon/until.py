"""When the daemon ends by itself: at the end of the stream, at a time, or after N records."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from streamlearn.daemon.exits import Exit, Stop

if TYPE_CHECKING:
    from streamlearn.stream import Partition, Records, Source


class Until:
    """Never, and the base of the others."""

    def part(self, records: Records) -> Records | None:
        """The records before the end; None: none of them, and their position stays."""
        return records

    def reached(self, source: Source) -> bool:  # noqa: ARG002 - others look at it
        """Whether the end has come."""
        return False


class UntilEnd(Until):
    """Until all has been given that was there at the start."""

    def reached(self, source: Source) -> bool:
        """Whether the source says so."""
        return source.ended()


class UntilCount(Until):
    """For so many records, to the record."""

    def __init__(self, count: int) -> None:
        self.left = count

    def part(self, records: Records) -> Records | None:
        """No more than are left."""
        if self.left <= 0:
            return None
        taken = first(records, min(self.left, len(records.offsets)))
        self.left -= len(taken.offsets)
        return taken

    def reached(self, source: Source) -> bool:
        """Whether none is left, or none will come."""
        return self.left <= 0 or source.ended()


class UntilTime(Until):
    """For the records before a time, by their own times; each partition ends at its first later."""

    def __init__(self, moment: float) -> None:
        self.moment = moment  # milliseconds since 1970
        self._past: set[Partition] = set()

    def part(self, records: Records) -> Records | None:
        """Those before the first that is later."""
        if records.partition in self._past:
            return None
        if not len(records.offsets):
            return records
        if records.times is None:
            raise Stop(Exit.USAGE, "--until TIME needs records with times, which these have not")
        late = (i for i, moment in enumerate(records.times) if moment >= self.moment)
        place = next(late, None)
        if place is None:
            return records
        self._past.add(records.partition)
        return first(records, place) if place else None

    def reached(self, source: Source) -> bool:
        """Whether each partition has passed the time, or has nothing more from before it."""
        if source.ended():
            return True
        lags = source.lag()
        if not lags or not time.time() * 1000.0 >= self.moment:
            return False
        return all(where in self._past or lag == 0 for where, lag in lags.items())


def first(records: Records, count: int) -> Records:
    """The first so many of the records; the position is behind them."""
    if count >= len(records.offsets):
        return records
    return dataclasses.replace(
        records,
        offsets=records.offsets[:count],
        values=records.values[:count],
        end=records.offsets[count],
        keys=None if records.keys is None else records.keys[:count],
        times=None if records.times is None else records.times[:count],
        headers=None if records.headers is None else records.headers[:count],
    )


def parsed(text: str | None) -> Until:
    """What `--until` says.

    >>> type(parsed("end")).__name__, parsed("100").left, type(parsed(None)).__name__
    ('UntilEnd', 100, 'Until')
    """
    if text is None:
        return Until()
    if text == "end":
        return UntilEnd()
    if text.isdigit():
        return UntilCount(int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Stop(
            Exit.USAGE,
            f'until = {text!r}: expected "end", a number of events, or a time such as '
            "2026-01-31T00:00:00Z",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return UntilTime(moment.timestamp() * 1000.0)
