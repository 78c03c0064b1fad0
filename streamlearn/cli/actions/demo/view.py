"""Count the errors, regrets and true weights of the demo while it runs, and decide when it ends."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.until import UntilEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamlearn.cli.actions.demo.screen import Silent
    from streamlearn.cli.actions.demo.summary import Summary
    from streamlearn.config import Config
    from streamlearn.core.arrays import Array
    from streamlearn.daemon.batch import Batch
    from streamlearn.daemon.collectors.telemetry import TelemetryCollector
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.daemon.status import Status
    from streamlearn.estimators.linear import Linear
    from streamlearn.stream import Clicks, Source

TRUTH = "the truth"  # its row in the table
SEGMENTS = 240  # of the stream, for errors over time
RECENT = 12  # segments: a twentieth of the stream
# time limit of each learner's last hindsight: a share of the time of the stream, and seconds
SOLVE_SHARE, LEAST_SECONDS, SOLVE_SECONDS = 0.1, 0.5, 2.0
GAP = 1e-3  # of those hindsights, per event
READ_SECONDS = 1.0  # an event is shown this long, and weights are counted so often
IDLE_SECONDS = 0.1


@dataclass
class Track:
    """One learner's errors by segments of equal length."""

    errors: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, values: Array, start: int, length: int) -> None:
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

    @property
    def recent(self) -> float:
        """The error rate of the last twentieth of the stream."""
        return self.mean(max(len(self.errors) - RECENT, 0))


@dataclass(frozen=True)
class Row:
    """A learner's row of the table, or that of the truth."""

    name: str
    error: float
    recent: float
    regret: tuple[float, float] | None  # bracket, per event
    kept: int  # non-zero weights
    real: int  # of which are in the truth

    @property
    def is_truth(self) -> bool:
        """Whether this is the truth."""
        return self.name == TRUTH


class View(Observer):
    """Observes the run, shows it on a screen, and summarizes it at the end."""

    stream: Clicks
    decoder_state: Callable[[], dict[str, Any]]  # to save with a model
    shown: str  # the learner whose predictions are shown

    def __init__(
        self,
        settings: Config,
        screen: Silent,
        telemetry: TelemetryCollector,
        summarize: Callable[[], Summary],
    ) -> None:
        source = settings.source
        self.total = int(getattr(source, "events", 0) or 1)
        self.half = self.total // 2 if getattr(source, "drift", False) else None
        self.length = max(self.total // SEGMENTS, 1)
        self.port = settings.telemetry.port
        self.screen = screen
        self.telemetry = telemetry
        self.summarize = summarize
        self.stays = False  # whether the page is served until Ctrl-C
        self.stop_requested = threading.Event()
        self.learners: Learners | None = None
        self.summary: Summary | None = None
        self.tracks: dict[str, Track] = {}
        self.truth = Track()
        self.real: dict[str, int] = {}
        self.regrets: dict[str, tuple[float, float]] = {}  # brackets, per event
        self.latest = ""  # event, as text
        self.clicked = self.seen = 0
        self._read_at = 0.0
        self._shown_score = 0.0
        self.started = self.learned = time.monotonic()

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
        count = len(batch.events)
        if count:
            for name, result in batch.results.items():
                self.tracks[name].add(result.measures["error"], self.seen, self.length)
            labels = batch.events.labels
            wrong = (self.stream.chances(self.seen, count) > 0.5) != (labels > 0.5)
            self.truth.add(wrong.astype(float), self.seen, self.length)
            self._shown_score = float(batch.results[self.shown].scores[-1])
            self.clicked += int(labels.sum())
        self.seen += count
        self.learned = time.monotonic()
        self.screen.learned(self)

    def on_tick(self, status: Status) -> None:  # noqa: ARG002 - an Observer's
        """Redraw the screen."""
        if self.summary is not None:
            return
        if time.monotonic() - self._read_at >= READ_SECONDS:
            self._read_at = time.monotonic()
            self.read()
        self.screen.draw(self)

    def on_end(self) -> None:
        """Finish, also when interrupted."""
        self.finish()

    def read(self) -> None:
        """Read what is shown for a second: regrets, true weights, the last event."""
        board = self.telemetry.board
        for name in self.tracks:
            low, high, events = (
                board.value(f"regret_{part}", name) for part in ("low", "high", "events")
            )
            self._set_regret(name, low, high, events)
        if not self.seen:
            return
        truth = self.stream.truth(self.seen - 1)
        for learner in self.learners or ():
            self.real[learner.name] = real_weights(learner.model, truth)
        self.latest = self._sentence()
        board.about.note = (
            f"The truth behind this stream itself errs on {self.truth.mean():.1%} of the events: "
            "clicks are partly chance, so nobody errs less."
        )

    def _sentence(self) -> str:
        """Describe the last event, what was predicted for it, and what happened."""
        event = msgspec.json.decode(self.stream.value(self.seen - 1))
        clicked = event.pop("clicked")
        chance = 1.0 / (1.0 + math.exp(-self._shown_score))
        what = ", ".join(f"{name} {event[name]}" for name in ("user", "ad", "site"))
        happened = "clicked" if clicked else "not clicked"
        return f"{what}: {self.shown} said {chance:.0%}, then it was {happened}"

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Measure the regrets and show the summary, once."""
        if self.summary is not None or self.learners is None:
            return
        self.read()
        for learner in self.learners if self.seen else ():
            self.screen.draw(self, f"measuring the regret of {learner.name}...")
            if not self.stop_requested.is_set():
                self._solve(learner)
        self.summary = self.summarize()
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

    # -- results -----------------------------------------------------------------------------------

    @property
    def changed(self) -> bool:
        """Whether the truth has changed."""
        return self.half is not None and self.seen > self.half

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
        """Return a row for each learner, and one for the truth."""
        found = [self._row(learner) for learner in self.learners or ()]
        if self.seen:
            count = len(self.stream.truth(self.seen - 1))
            found.append(
                Row(TRUTH, self.truth.mean(), self.truth.recent, None, kept=count, real=count)
            )
        return found

    def _row(self, learner: Learner) -> Row:
        track, name = self.tracks[learner.name], learner.name
        regret, real = self.regrets.get(name), self.real.get(name, 0)
        return Row(name, track.mean(), track.recent, regret, learner.model.nonzero, real)


def real_weights(model: Linear, truth: Mapping[str, float]) -> int:
    """Count the non-zero weights that are in the truth, with the same sign.

    >>> import streamlearn as sl
    >>> model = sl.LinearClassifier()
    >>> for _ in range(20):
    ...     model.learn_one({"ad": "shoes"}, True)
    ...     model.learn_one({"ad": "books"}, False)
    >>> real_weights(model, {"ad=shoes": 1.0, "ad=books": 0.5, "ad=cars": 2.0})
    1
    """
    weights = model.coefficients()[0]
    slots = ((model.reader.slot_of(name), value) for name, value in truth.items())
    return sum(
        slot is not None and slot < len(weights) and bool(weights[slot] * value > 0.0)
        for slot, value in slots
    )


class UntilInterrupted(UntilEnd):
    """Runs until the last event is learned and summarized; if the page stays, until Ctrl-C."""

    def __init__(self, view: View) -> None:
        self.view = view

    def reached(self, source: Source) -> bool:
        """Return whether to end."""
        if not super().reached(source):
            return False
        self.view.finish()
        if not self.view.stays or self.view.page is None:
            return True
        time.sleep(IDLE_SECONDS)
        return False
