"""Count the errors and regrets of the demo while it runs, and decide when it ends."""

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
    from streamlearn.cli.actions.demo.summary import Summary
    from streamlearn.config import Config
    from streamlearn.daemon.collectors.observer import Batch, Status
    from streamlearn.daemon.collectors.telemetry import TelemetryCollector
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.stream import Source

SEGMENTS = 60  # of the stream, for errors over time
# time limit of each learner's last hindsight: a share of the time of the stream, and seconds
SOLVE_SHARE, LEAST_SECONDS, SOLVE_SECONDS = 0.1, 0.5, 2.0
GAP = 1e-3  # of those hindsights, per event
PAGE_SECONDS = 15.0  # the page is served this long after the end, or after the last request
IDLE_SECONDS = 0.1


@dataclass
class Track:
    """One learner's errors by segments of equal length."""

    errors: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, values: Any, start: int, length: int) -> None:
        """Add errors (1 or 0) of consecutive events from event `start`."""
        places = (start + np.arange(len(values))) // length
        for place in range(int(places[0]), int(places[-1]) + 1):
            while len(self.errors) <= place:
                self.errors.append(0.0)
                self.counts.append(0)
            part = values[places == place]
            self.errors[place] += float(np.nansum(part))
            self.counts[place] += int(np.count_nonzero(~np.isnan(part)))

    def mean(self, first: int = 0, last: int | None = None) -> float:
        """Return the error rate of some segments."""
        count = sum(self.counts[first:last])
        return sum(self.errors[first:last]) / count if count else float("nan")


@dataclass(frozen=True)
class Row:
    """A learner's row of the table."""

    learner: str
    error: float
    recent: float  # error rate of the last tenth of the stream
    loss: float
    regret: tuple[float, float] | None  # bracket, per event
    nonzero: int


class View(Observer):
    """Observes the run, shows it on a screen, and summarizes it at the end."""

    def __init__(
        self,
        settings: Config,
        screen: Silent,
        telemetry: TelemetryCollector,
        summarize: Callable[[], Summary],
    ) -> None:
        source = settings.source
        self.total = int(getattr(source, "events", 0) or 1)
        self.drift = bool(getattr(source, "drift", False))
        self.length = max(self.total // SEGMENTS, 1)
        self.port = settings.telemetry.port
        self.screen = screen
        self.telemetry = telemetry
        self.summarize = summarize
        self.stop_requested = threading.Event()
        self.learners: Learners | None = None
        self.summary: Summary | None = None
        self.tracks: dict[str, Track] = {}
        self.regrets: dict[str, tuple[float, float]] = {}  # brackets, per event
        self.clicked = self.seen = 0
        self.started = self.learned = self.ended = time.monotonic()

    # -- called by the loop -----------------------------------------------------------------------

    def on_start(self, learners: Learners, status: Status) -> None:  # noqa: ARG002 - an Observer's
        """Start the screen."""
        self.learners = learners
        self.tracks = {learner.name: Track() for learner in learners}
        for learner in learners:
            if learner.tracker is not None:  # coarse, for early results
                learner.tracker.ledger.gap, learner.tracker.ledger.seconds = GAP, SOLVE_SECONDS
        self.started = self.learned = time.monotonic()
        self.screen.begin(self)

    def on_batch(self, batch: Batch) -> None:
        """Count errors."""
        for name, result in batch.results.items():
            if "error" in result.measures and len(batch.events):
                self.tracks[name].add(result.measures["error"], self.seen, self.length)
        self.seen += len(batch.events)
        self.clicked += int(np.nansum(batch.events.labels))
        self.learned = time.monotonic()
        self.screen.learned(self)

    def on_tick(self, status: Status) -> None:  # noqa: ARG002 - an Observer's
        """Redraw the screen."""
        if self.summary is None:
            self._read_regrets()
            self.screen.draw(self)

    def on_end(self) -> None:
        """Finish, also when interrupted."""
        self.finish()

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Measure the regrets and show the summary, once."""
        if self.summary is not None or self.learners is None:
            return
        for learner in self.learners if self.seen else ():
            self.screen.draw(self, f"measuring the regret of {learner.name}...")
            if not self.stop_requested.is_set():
                self._solve(learner)
        self.summary = self.summarize()
        self.ended = time.monotonic()
        self.screen.end(self, self.summary.text)

    def _solve(self, learner: Learner) -> None:
        if learner.tracker is not None:
            took = self.learned - self.started
            seconds = min(max(SOLVE_SHARE * took, LEAST_SECONDS), SOLVE_SECONDS)
            report = learner.tracker.report(seconds)
            self._set_regret(learner.name, report.regret_low, report.regret_high, report.solved_at)

    def _set_regret(
        self, name: str, low: float | None, high: float | None, events: float | None
    ) -> None:
        """Set the bracket of a regret, per event."""
        if low is not None and high is not None and events:
            self.regrets[name] = (low / events, high / events)

    @property
    def stays(self) -> bool:
        """Whether the page is served after the end."""
        return self.screen.live and self.page is not None and not self.stop_requested.is_set()

    def unwatched(self) -> float:
        """Return the seconds since the last request to the page, or since the end."""
        return time.monotonic() - max(self.ended, self.telemetry.board.looked_at)

    # -- results -----------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Events per second so far."""
        return self.seen / max(self.learned - self.started, 1e-9)

    @property
    def page(self) -> str | None:
        """The address of the live page, if it is served."""
        server = self.telemetry.server
        return f"http://{server.host}:{server.port}/" if self.telemetry.serving else None

    def rows(self) -> list[Row]:
        """Return a row for each learner."""
        return [self._row(learner) for learner in self.learners or ()]

    def _read_regrets(self) -> None:
        """Read the regrets that were measured last."""
        board = self.telemetry.board
        for name in self.tracks:
            low, high, events = (
                board.value(f"regret_{part}", name) for part in ("low", "high", "events")
            )
            self._set_regret(name, low, high, events)

    def _row(self, learner: Learner) -> Row:
        track = self.tracks[learner.name]
        return Row(
            learner.name,
            track.mean(),
            track.mean(max(len(track.errors) - SEGMENTS // 10, 0)),
            learner.progress["loss"].mean,
            self.regrets.get(learner.name),
            learner.model.nonzero,
        )


class UntilUnwatched(UntilEnd):
    """Runs until the last event is learned, the summary is shown and the page is not watched."""

    def __init__(self, view: View) -> None:
        self.view = view

    def reached(self, source: Source) -> bool:
        """Return whether to end."""
        if not super().reached(source):
            return False
        view = self.view
        view.finish()
        if not view.stays or view.unwatched() > PAGE_SECONDS:
            return True
        time.sleep(IDLE_SECONDS)
        return False
