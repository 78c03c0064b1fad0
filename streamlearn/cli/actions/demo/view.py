"""What the demonstration counts while it runs, and when it is over."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.until import UntilEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.cli.actions.demo.screen import Silent
    from streamlearn.cli.actions.demo.story import Story
    from streamlearn.config import Config
    from streamlearn.daemon.collectors.observer import Batch, Status
    from streamlearn.daemon.collectors.telemetry import TelemetryCollector
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.stream import Source

STRETCHES = 60  # into which the stream is cut, to see how errors went
# the last comparator of each learner is given this part of the time that the stream took
SOLVE_SHARE, SOLVE_SECONDS = 0.1, 1.5  # and at most so many seconds
GAP = 1e-3  # of those comparators, an event
PAGE_SECONDS = 15.0  # the page stays so long after all was told, or somebody looked at it
IDLE_SECONDS = 0.1


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


@dataclass(frozen=True)
class Row:
    """How a learner does."""

    learner: str
    error: float
    late: float  # of the last sixth of the stream
    loss: float
    regret: tuple[float, float] | None  # per event, at least and at most
    nonzero: int


class View(Observer):
    """Looks on; `screen` shows what it sees, and `tell` makes the story of it at the end."""

    def __init__(
        self,
        settings: Config,
        screen: Silent,
        watching: TelemetryCollector,
        tell: Callable[[], Story],
    ) -> None:
        source = settings.source
        self.total = int(getattr(source, "events", 0) or 1)
        self.drift = bool(getattr(source, "drift", False))
        self.length = max(self.total // STRETCHES, 1)
        self.wish = settings.telemetry.port
        self.screen = screen
        self.watching = watching
        self.tell = tell
        self.wanted = threading.Event()  # set: it shall end
        self.learners: Learners | None = None
        self.story: Story | None = None
        self.tracks: dict[str, Track] = {}
        self.looked: dict[str, tuple[float, float]] = {}  # regrets of the board, when seen last
        self.regrets: dict[str, tuple[float, float]] = {}  # an event's, at least and at most
        self.clicked = self.seen = 0
        self.begun = self.learned = self.ended = time.monotonic()

    # -- told by the loop -------------------------------------------------------------------------

    def on_start(self, learners: Learners, status: Status) -> None:  # noqa: ARG002 - the seam's
        """Begin to show."""
        self.learners = learners
        self.tracks = {learner.name: Track() for learner in learners}
        for learner in learners:
            if learner.tracker is not None:  # coarse, so that there soon is something to see
                learner.tracker.ledger.gap, learner.tracker.ledger.seconds = GAP, SOLVE_SECONDS
        self.begun = self.learned = time.monotonic()
        self.screen.begin(self)

    def on_batch(self, batch: Batch) -> None:
        """Count errors."""
        for name, outcome in batch.outcomes.items():
            if "error" in outcome.measures and len(batch.events):
                self.tracks[name].add(outcome.measures["error"], self.seen, self.length)
        self.seen += len(batch.events)
        self.clicked += int(np.nansum(batch.events.labels))
        self.learned = time.monotonic()
        self.screen.learned(self)

    def on_tick(self, status: Status) -> None:  # noqa: ARG002 - the seam's
        """Show how things are."""
        if self.story is None:
            self._look()
            self.screen.draw(self)

    def on_end(self) -> None:
        """It is over, perhaps before its time."""
        self.finish()

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Measure, show how it ended, and tell its story: once."""
        if self.story is not None or self.learners is None:
            return
        for learner in self.learners if self.seen else ():
            self.screen.draw(self, f"measuring the regret of {learner.name} ..")
            if not self.wanted.is_set():
                self._solve(learner)
        self.story = self.tell()
        self.ended = time.monotonic()
        self.screen.end(self, self.story.text)

    def _solve(self, learner: Learner) -> None:
        if learner.tracker is not None:
            seconds = min(SOLVE_SHARE * (self.learned - self.begun), SOLVE_SECONDS)
            report = learner.tracker.report(seconds)
            if report.bracket is not None:
                self._measured(learner.name, *report.bracket)

    def _measured(self, name: str, low: float, high: float) -> None:
        """Both ends of a regret."""
        self.regrets[name] = (low / self.seen, high / self.seen)

    @property
    def stays(self) -> bool:
        """Whether the page is still served when all is told."""
        return self.screen.live and self.page is not None and not self.wanted.is_set()

    def unwatched(self) -> float:
        """For how many seconds nobody has looked at the page since all was told."""
        return time.monotonic() - max(self.ended, self.watching.board.looked_at)

    # -- what there is to see ---------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Events a second so far."""
        return self.seen / max(self.learned - self.begun, 1e-9)

    @property
    def page(self) -> str | None:
        """The address of the live page, if it is served."""
        server = self.watching.server
        return f"http://{server.host}:{server.port}/" if self.watching.serving else None

    def rows(self) -> list[Row]:
        """A row for each learner."""
        return [self._row(learner) for learner in self.learners or ()]

    def _look(self) -> None:
        """Take over regrets that were measured just now: those before were of fewer events."""
        board = self.watching.board
        for name in self.tracks:
            low, high = (board.value(f"regret_{end}", name) for end in ("low", "high"))
            if low is not None and high is not None and self.looked.get(name) != (low, high):
                self.looked[name] = (low, high)
                self._measured(name, low, high)

    def _row(self, learner: Learner) -> Row:
        track = self.tracks[learner.name]
        return Row(
            learner.name,
            track.mean(),
            track.mean(max(len(track.errors) - STRETCHES // 6, 0)),
            learner.progress["loss"].mean,
            self.regrets.get(learner.name),
            learner.model.nonzero,
        )


class UntilNobodyLooks(UntilEnd):
    """Until the last event is learned, all is told, and nobody looks at the page any more."""

    def __init__(self, view: View) -> None:
        self.view = view

    def reached(self, source: Source) -> bool:
        """Whether it is over."""
        if not super().reached(source):
            return False
        view = self.view
        view.finish()
        if not view.stays or view.unwatched() > PAGE_SECONDS:
            return True
        time.sleep(IDLE_SECONDS)
        return False
