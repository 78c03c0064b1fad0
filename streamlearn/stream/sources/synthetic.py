"""Synthetic streams as a source, for demonstrations, scenarios and tests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.errors import SourceChangedError
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.clicks import Clicks, delayed_clicks

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

PARTITION = Partition("synthetic")


class DelayedClicks:
    """Impressions, a thousand per second, and the clicks on some of them, in one log.

    Half of the clicks come within a second, one of nine after more than five seconds.

    >>> log = DelayedClicks(1000, seed=3)
    >>> len(log) > 1000, log.values(0, 1) == Clicks("impressions", seed=3).values(0, 1)
    (True, True)
    """

    def __init__(self, impressions: int, seed: int = 0, drift_at: int | None = None) -> None:
        stream = Clicks("impressions", seed, drift_at)
        self._name = f"DelayedClicks({impressions}, {stream!r})"
        self._log = [value for _, _, value in delayed_clicks(stream, impressions, scale=1.0)]

    def __len__(self) -> int:
        return len(self._log)

    def __repr__(self) -> str:
        return self._name

    def values(self, start: int, n: int) -> list[bytes]:
        """Return the records start .. start + n - 1."""
        return self._log[start : start + n]


class Synthetic:
    """A stream of `Clicks` as a source: offsets are the numbers of events.

    Parameters
    ----------
    stream
        The stream; None: `Clicks()`.
    events
        Number of events; None: endless.
    rate
        Events per second; None: unlimited.
    batch
        Maximum events of one poll.

    Examples
    --------
    >>> source = Synthetic(Clicks(seed=1), events=3)
    >>> source.open({}, None)
    >>> [batch] = source.poll(0.0)
    >>> batch.offsets, batch.end, source.ended()
    (range(0, 3), 3, True)
    """

    def __init__(
        self,
        stream: Clicks | DelayedClicks | None = None,
        *,
        events: int | None = None,
        rate: float | None = None,
        batch: int = 2000,
    ) -> None:
        self.stream = Clicks() if stream is None else stream
        self.events, self.rate, self.batch = events, rate, batch
        self._at = self._first = 0
        self._since = time.monotonic()

    def identity(self) -> dict[str, str]:
        """Return the parameters of the stream."""
        return {"synthetic": repr(self.stream)}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Start at event `positions[PARTITION]`, or at the first one."""
        was = (identity or {}).get("synthetic", repr(self.stream))
        if was != repr(self.stream):
            raise SourceChangedError(
                f"the checkpoint is of {was}, but this source is {self.stream!r}: use the same "
                "seed and drift, or start over without the checkpoint"
            )
        at = positions.get(PARTITION, 0)
        if at < 0 or (self.events is not None and at > self.events):
            raise SourceChangedError(
                f"the checkpoint is at event {at}, but this source has {self.events}: increase "
                "`events`, or start over without the checkpoint"
            )
        self._at = self._first = at
        self._since = time.monotonic()

    def _due(self) -> int:
        """Return the offset before which events are due."""
        due = self._at + self.batch
        if self.rate is not None:
            due = min(due, self._first + int((time.monotonic() - self._since) * self.rate))
        return due if self.events is None else min(due, self.events)

    def poll(self, seconds: float) -> list[Records]:
        """Return the next events; with a rate, those that are due."""
        due = self._due()
        if due <= self._at and self.rate is not None and not self.ended():
            time.sleep(min(seconds, max(1.0 / self.rate, 0.01)))
            due = self._due()
        if due <= self._at:
            return []
        start, self._at = self._at, due
        values = self.stream.values(start, due - start)
        return [Records(PARTITION, range(start, due), values, due)]

    def lag(self) -> dict[Partition, int | None]:
        """Return how many events are left."""
        return {PARTITION: None if self.events is None else self.events - self._at}

    def lost(self) -> Mapping[Partition, int]:
        """Return an empty mapping: nothing is lost."""
        return {}

    def ended(self) -> bool:
        """Whether the last event was returned."""
        return self.events is not None and self._at >= self.events

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Do nothing: no tool reads the positions."""

    def close(self) -> None:
        """Do nothing: there are no resources."""


def write(path: str | os.PathLike[str], stream: Clicks, events: int, start: int = 0) -> None:
    """Write events to a file, one per line."""
    with Path(path).open("wb") as file:
        for at in range(start, start + events, 10_000):
            values = stream.values(at, min(10_000, start + events - at))
            file.write(b"\n".join(values) + b"\n")
