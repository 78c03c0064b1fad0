"""What the demonstration shows while it runs: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from streamlearn.cli.tables import table
from streamlearn.daemon.observer import Observer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from streamlearn.daemon.config import Config
    from streamlearn.daemon.learners import Learners
    from streamlearn.daemon.observer import Batch, Status

STRETCHES = 60  # into which the stream is cut, to see how errors went


@dataclass
class Track:
    """One learner's errors over the stream, by stretches of equal length."""

    errors: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, values: Any, start: int, length: int) -> None:
        """Errors (1 or 0) of consecutive events, the first of which is event `start`."""
        places = (start + np.arange(len(values))) // length
        for place in range(int(places[0]), int(places[-1]) + 1):
            while len(self.errors) <= place:
                self.errors.append(0.0)
                self.counts.append(0)
            part = values[places == place]
            self.errors[place] += float(np.nansum(part))
            self.counts[place] += int(np.count_nonzero(~np.isnan(part)))

    def mean(self, first: int = 0, last: int | None = None) -> float:
        """The share of errors in some of the stretches."""
        count = sum(self.counts[first:last])
        return sum(self.errors[first:last]) / count if count else float("nan")


class View(Observer):
    """Shows how the learners do."""

    def __init__(self, settings: Config, *, plain: bool, quiet: bool = False) -> None:
        source = settings.source
        self.total = int(getattr(source, "events", 0) or 1)
        self.drift = bool(getattr(source, "drift", False))
        self.length = max(self.total // STRETCHES, 1)
        self.plain = plain
        self.quiet = quiet
        self.page: str | None = None
        self.learners: Learners | None = None
        self.tracks: dict[str, Track] = {}
        self.clicked = self.seen = 0
        self.begun = self.ended = time.monotonic()
        self._live: Live | None = None
        self._next = 1000  # events at which the next plain line is due

    def on_start(self, learners: Learners, status: Status) -> None:  # noqa: ARG002 - the seam's
        """Begin to show."""
        self.learners = learners
        self.tracks = {learner.name: Track() for learner in learners}
        self.begun = time.monotonic()
        if self.quiet:
            return
        if self.plain:
            sys.stdout.write(self.headline() + "\n")
            return
        self._live = Live(self.render(), console=Console(), refresh_per_second=4, transient=False)
        self._live.start()

    def on_batch(self, batch: Batch) -> None:
        """Count errors."""
        for name, outcome in batch.outcomes.items():
            if "error" in outcome.measures and len(batch.events):
                self.tracks[name].add(outcome.measures["error"], self.seen, self.length)
        self.seen += len(batch.events)
        self.clicked += int(np.nansum(batch.events.labels))
        self.ended = time.monotonic()
        if self.plain and not self.quiet and self.seen >= self._next:
            self._next = max(2 * self._next, self.seen + 1)
            self.line()

    def on_tick(self, status: Status) -> None:  # noqa: ARG002 - the seam's
        """Show how things are."""
        if self._live is not None:
            self._live.update(self.render())

    def on_end(self) -> None:
        """Leave the table as it is at the end."""
        if self._live is not None:
            self._live.update(self.render())
            self._live.stop()
            self._live = None
        elif self.plain and not self.quiet and self.seen:
            self.line()

    # -- what is shown ----------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Events a second so far."""
        return self.seen / max(self.ended - self.begun, 1e-9)

    def headline(self) -> str:
        """What is being watched."""
        turn = f"; the truth changes at {self.total // 2:,}" if self.drift else ""
        page = f"\nlive page: {self.page}" if self.page else ""
        return (
            f"{self.total:,} clicks or no clicks are made up, with a sparse truth in them{turn}."
            f"\nEach event is predicted before it is learnt.{page}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row for each learner."""
        found = []
        for learner in self.learners or ():
            track = self.tracks[learner.name]
            found.append(
                {
                    "learner": learner.name,
                    "error": track.mean(),
                    "of late": track.mean(max(len(track.errors) - STRETCHES // 6, 0)),
                    "loss": learner.progress["loss"].mean,
                    "non-zeros": learner.model.nonzero,
                }
            )
        return found

    def status(self) -> str:
        """How far it is."""
        return f"{self.seen:,} of {self.total:,} events, {self.rate:,.0f} events/s"

    def render(self) -> RenderableType:
        """The table with what stands above it."""
        return Group(
            Text(self.headline()), Text(""), Text(self.status(), style="bold"), table(self.rows())
        )

    def line(self) -> None:
        """One plain line."""
        told = "  ".join(
            f"{row['learner']} {row['error']:.4f}/{row['non-zeros']:,}" for row in self.rows()
        )
        sys.stdout.write(f"{self.status()}  error/non-zeros: {told}\n")
        sys.stdout.flush()
