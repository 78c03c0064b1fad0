"""Tells the telemetry what happens: the only place where the daemon and its metrics meet.

What is counted is noted once a batch. What costs a look at all weights is looked at between two
batches, so that it is consistent, at most once a second, and less often where it takes long.
"""

from __future__ import annotations

import hashlib
import ipaddress
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from streamlearn.config import plan
from streamlearn.daemon.collectors.counts import OTHERS, CountsCollector
from streamlearn.daemon.collectors.delayed_labels import DelayedLabelsCollector
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.collectors.quality import WINDOW, QualityCollector
from streamlearn.daemon.collectors.regret import RegretCollector
from streamlearn.daemon.collectors.weights import WeightsCollector
from streamlearn.daemon.outputs.dead_letters import reason_code
from streamlearn.rules import Mixture
from streamlearn.telemetry import Access, Bad, Board, Health, History, LastMinutes, Routes, Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn import config
    from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
    from streamlearn.daemon.collectors.observer import Batch, PartitionBatch, Status
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.daemon.process.log import Log

REFRESH_SECONDS = 1.0
CURVE_SECONDS = 0.1  # the least between two points of the curves
PAGE_SECONDS = 3.0  # an open page has asked within this time
PAGE_SHARE = 0.15  # of the time for the shutdown: for an open page to learn of it
MAX_PAYLOAD = 200  # bytes of a bad record that are shown, if they may be
# curves of what is looked at once a second: a point between two looks has none
SLOW_CURVES = {
    "nonzero": "nonzero_weights",
    "low": "regret_low",
    "high": "regret_high",
    "bound": "regret_bound",
}


def wanted(settings: config.Config, log: Log) -> list[Observer]:
    """What watches the daemon, if the configuration wants it."""
    return [TelemetryCollector(settings, log)] if settings.telemetry.enabled else []


class TelemetryCollector(Observer):
    """Keeps the board, the curves and the health, and serves them."""

    name = "telemetry"

    def __init__(
        self,
        settings: config.Config,
        log: Log,
        clock: Callable[[], float] = time.time,
        *,
        serves: bool = True,
    ) -> None:
        """`serves`: whether there is a server, or the numbers are for who has the board."""
        given = settings.telemetry
        self.log = log
        self.clock = clock
        self.shows_events = given.show_invalid_records
        self.board = Board()
        self.history = History()
        self.recent = LastMinutes()
        self.missing_protection = missing_protection(given)
        self.patience = PAGE_SHARE * settings.run.shutdown_seconds
        self.health = Health(settings.run.watchdog_seconds / 2.0)
        access = Access(
            None if given.token is None else given.token.reveal(),
            metrics=given.protect_metrics,
            page=given.page,
            local=is_loopback(given.host),
        )
        routes = Routes(self.board, self.history, self.recent, self.health, access)
        self.server = Server(given.host, given.port, routes.answer)
        self.serving: bool | None = None if serves else False  # None: not yet tried
        self.learners: Learners | None = None
        self.counts = CountsCollector(self.board, clock)
        self.quality = QualityCollector(self.board)
        self._before = (0, clock())  # events and time of the look before
        self._refreshed_at = 0.0
        self._next_point = 0.0
        self._slow_curves_due = False  # whether there was a look since the last point of the curves
        self.weights = WeightsCollector(self.board, clock)
        self.waiting = DelayedLabelsCollector(self.board)
        self.regret = RegretCollector(self.board, settings.regret.cpu_share, clock)
        self._describe(settings)

    def _describe(self, settings: config.Config) -> None:
        """What does not change any more."""
        board, text = self.board, plan.text(settings)
        about = board.about
        about.config, about.started, about.window = text, self.clock(), WINDOW
        about.source = str(type(settings.source).__struct_config__.tag)
        about.regret, about.keeps = settings.regret.enabled, settings.checkpoint is not None
        about.learners = [learner.name for learner in settings.learners]
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        kinds = (about.source, settings.format.kind, settings.features.kind, digest)
        board.set("config_info", 1, *kinds)
        board.set("build_info", 1, installed_version(), platform.python_version())
        board.set("start_timestamp_seconds", about.started)
        self.model_text = {learner.name: model_text(learner) for learner in settings.learners}

    # -- told by the loop -------------------------------------------------------------------------

    def on_state(self, status: Status) -> None:
        """Serve from the first state on: a standby has its metrics too."""
        board = self.board
        self.health.beat()
        board.about.state, board.about.reason = status.state, status.reason
        board.about.exit = status.exit
        board.set("active", float(status.state == "active"))
        board.set("standby", float(status.state == "standby"))
        board.set("epoch", status.epoch)
        board.set("restarts", status.restarts)
        self._flush_counts()
        if status.state == "stopped":
            self.refresh(status)  # how it ended
        if self.serving is None:
            self._serve()

    def _flush_counts(self) -> None:
        if self.learners is not None:
            self.counts.flush(self.learners)

    def _serve(self) -> None:
        server = self.server
        try:
            server.start()
        except (OSError, OverflowError) as error:
            self.serving = False
            self.log.error(  # noqa: TRY400 - our own log
                "no metrics and no live page: their address cannot be had; the learning goes on",
                host=server.host, port=server.port, error=str(error),
                remedy="set telemetry.host and telemetry.port",
            )  # fmt: skip
            return
        self.serving = True
        host = f"[{server.host}]" if ":" in server.host else server.host
        self.log.info("telemetry", page=f"http://{host}:{server.port}/")
        if self.missing_protection is not None:
            self.log.warning(
                "telemetry is open to the network without a token",
                host=server.host,
                remedy=self.missing_protection,
            )

    def on_start(self, learners: Learners, status: Status) -> None:
        """From now on there are learners to look at."""
        self.learners = learners
        self.counts.start(learners)
        self.quality.start(learners)
        for learner in learners:
            loss = repr(learner.model.objective.loss)
            self.board.inform(learner.name, model=self.model_text[learner.name], loss=loss)
        self.regret.start(learners)
        self.waiting.start(learners)
        self.on_state(status)
        self._before = (self.counts.seen, self.clock())
        self.refresh(status)

    def on_poll(self, seconds: float, records: int) -> None:  # noqa: ARG002 - counted by batch
        """The source has answered."""
        self.health.polled = True
        self.health.beat()
        self.counts.poll(seconds)

    def on_batch(self, batch: Batch) -> None:
        """Note it, and take a point of the curves if one is due."""
        self.counts.add(batch)
        self.quality.add(batch)
        for part in batch.parts:
            if part.invalid:
                self._record_invalid(part)
        if self.history.due(self.counts.seen) and self.clock() >= self._next_point:
            self._next_point = self.clock() + CURVE_SECONDS
            fresh, self._slow_curves_due = self._slow_curves_due, False
            self.history.add(self.counts.seen, self.clock(), self._curves(slow=fresh))

    def on_tick(self, status: Status) -> None:
        """Count, and look around once a second."""
        self.health.beat()
        self._flush_counts()
        now = self.clock()
        if not 0.0 <= now - self._refreshed_at < REFRESH_SECONDS:  # a clock may be set back
            self._refreshed_at = now
            self.refresh(status)

    def on_checkpoint(self, result: WrittenCheckpoint | FailedCheckpoint) -> None:
        """How the last one went."""
        if hasattr(result, "error"):
            self.board.add("checkpoint_failures_total", 1)
            return
        self.board.set("checkpoint_timestamp_seconds", self.clock())
        self.board.set("checkpoint_bytes", result.bytes)
        self.board.set("checkpoint_duration_seconds", result.seconds)

    def on_end(self) -> None:
        """Serve no more, once a page that is open knows how it ended."""
        board = self.board
        if self.serving and time.monotonic() - board.looked_at < PAGE_SECONDS:
            board.end_shown.wait(self.patience)
        self.server.stop()

    def state(self) -> Any:
        """The curves, and how many events they span."""
        return {
            "history": self.history.state(),
            "seen": self.counts.seen,
            "quality": self.quality.state(),
        }

    def restore(self, state: Any) -> None:
        """Go on from there."""
        self.history.restore(state["history"])
        self.counts.seen = int(state["seen"])
        self.quality.restore(state.get("quality", {}))

    # -- a batch ----------------------------------------------------------------------------------

    def _record_invalid(self, part: PartitionBatch) -> None:
        """Count and remember records that could not be read."""
        records, now = part.records, self.clock()
        where = records.partition
        for i, field, reason in part.invalid:
            kind = reason_code(field, reason)
            self.board.add("events_bad_total", 1, kind)
            value = records.values[i] if self.shows_events else None
            self.board.bad.append(
                Bad(
                    now,
                    where.topic,
                    where.number,
                    records.offsets[i],
                    kind,
                    None if field is None else str(field)[:MAX_PAYLOAD],
                    reason[:1000] if self.shows_events else None,
                    None if value is None else value[:MAX_PAYLOAD].decode(errors="replace"),
                )
            )

    # -- looking around ---------------------------------------------------------------------------

    def refresh(self, status: Status) -> None:
        """All that is not counted by batch."""
        self._measure_source(status)
        if self.learners is None:
            return
        self.quality.measure(self.learners)
        for learner in self.learners:
            self._measure_model(learner)
        self.weights.measure_if_due(self.learners)
        self.regret.measure()
        self.waiting.measure()
        choice = self.learners.choice
        if choice is not None:
            for name in choice.names:
                self.board.set("best", float(name == choice.name), name)
        lag = [waiting for waiting in status.lag.values() if waiting is not None]
        curves = {"rate": self.board.about.rate, "lag": float(sum(lag)) if lag else None}
        self.recent.add(self.clock(), {**curves, **self._curves(slow=True)})
        self._slow_curves_due = True

    def _measure_source(self, status: Status) -> None:
        """Lag and positions of the partitions that are held, and how fast events come."""
        self.board.about.ended = status.ended
        held = status.lag.keys() or status.positions.keys()
        if held:
            self.counts.drop_unassigned(held)
        lag: dict[tuple[str, ...], float] = {}
        lost: dict[tuple[str, ...], float] = {}
        offsets: dict[tuple[str, ...], float] = {}
        for where in held:
            labels, waiting = self.counts.place(where), status.lag.get(where)
            if waiting is not None:
                lag[labels] = lag.get(labels, 0) + waiting
            lost[labels] = lost.get(labels, 0) + status.lost.get(where, 0)
            if where in status.positions and labels != OTHERS:
                offsets[labels] = status.positions[where]
        board = self.board
        board.replace("events_lost_total", lost)
        board.replace("lag_events", lag)
        board.replace("position_offset", offsets)
        board.unknown = sum(
            waiting is None and where not in status.positions
            for where, waiting in status.lag.items()
        )
        now = self.clock()
        events, before = self._before
        if now > before:
            board.about.rate = (self.counts.seen - events) / (now - before)
        self._before = (self.counts.seen, now)

    def _measure_model(self, learner: Learner) -> None:
        """What costs little to know of a model."""
        board, model, name = self.board, learner.model, learner.name
        board.set("diverged_events", learner.diverged, name)
        board.set("steps", model.steps, name)
        rules = model.rules
        board.set("step_size", rules[0].step_size if len(rules) == 1 else None, name)
        if len(rules) == 1 and isinstance(rules[0], Mixture):
            for member, share in zip(rules[0].members, rules[0].shares, strict=True):
                board.set("mixture_weight_ratio", share, name, repr(member))

    def _curves(self, *, slow: bool) -> dict[str, float | None]:
        """A point of every curve, or of those that are quick to look at."""
        board = self.board
        points: dict[str, float | None] = {}
        for learner in self.learners or ():
            name, loss = learner.name, learner.progress["loss"]
            points[f"loss/{name}"], points[f"recent/{name}"] = loss.mean, loss.recent
            for curve, metric in SLOW_CURVES.items() if slow else ():
                value = board.value(metric, name)
                if value is not None:
                    points[f"{curve}/{name}"] = value
        mixtures = board.values("mixture_weight_ratio") if slow else {}
        for (name, member), share in mixtures.items():
            points[f"mixture/{name}/{member}"] = share
        return points


def model_text(learner: config.LearnerConfig) -> str:
    """A learner's model as the configuration has it."""
    if learner.start is not None:
        return f"saved: {learner.start}"
    if learner.model is not None:
        return learner.model
    parts = [part for part in (learner.rule, learner.loss, learner.penalty) if part is not None]
    return " · ".join(parts) or "a mixture that needs no tuning"


def is_loopback(host: str) -> bool:
    """Whether an address is heard by this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def missing_protection(given: config.TelemetryConfig) -> str | None:
    """What protects numbers that anybody on the network may read; None if nobody else may.

    >>> from streamlearn.config import TelemetryConfig
    >>> missing_protection(TelemetryConfig()), missing_protection(TelemetryConfig(host="0.0.0.0"))
    (None, 'set telemetry.token')
    """
    if is_loopback(given.host) or given.token is not None:
        return None
    return "set telemetry.token" + ("" if given.page else " and telemetry.protect_metrics")


def installed_version() -> str:
    """The installed version, if it is installed."""
    try:
        return version("streamlearn")
    except PackageNotFoundError:
        return "source"
