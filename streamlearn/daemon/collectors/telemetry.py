"""Connect the daemon with its telemetry: metrics, curves, health and the live page.

Counts are updated once a batch. Measurements that read all weights run between two batches, so that
they are consistent, at most once a second, and less often if they are slow.
"""

from __future__ import annotations

import hashlib
import ipaddress
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.config import effective
from streamlearn.daemon.collectors.counts import OTHERS, CountsCollector
from streamlearn.daemon.collectors.delayed_labels import DelayedLabelsCollector
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.collectors.quality import QualityCollector
from streamlearn.daemon.collectors.regret import RegretCollector
from streamlearn.daemon.collectors.served import ServedCollector
from streamlearn.daemon.collectors.weights import WeightsCollector
from streamlearn.daemon.scores import WINDOW
from streamlearn.rules import Mixture
from streamlearn.rules.sparse_mixture import SparseMixture
from streamlearn.telemetry import (
    Access,
    Board,
    Health,
    History,
    LastMinutes,
    Routes,
    ShownInvalidRecord,
    TelemetryServer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn import config
    from streamlearn.daemon.batch import Batch, PartitionBatch
    from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.daemon.process.log import Log
    from streamlearn.daemon.status import Status

REFRESH_SECONDS = 1.0
CURVE_SECONDS = 0.1  # the least time between two points of the curves
PAGE_SECONDS = 3.0  # an open page polls within this time
PAGE_SHARE = 0.15  # of the shutdown time: for an open page to show the end
MAX_PAYLOAD = 200  # bytes shown of an invalid record, if allowed
# curves of metrics that are measured once a second
SLOW_CURVES = {
    "nonzero": "nonzero_weights",
    "regret": "regret",
    "low": "regret_low",
    "high": "regret_high",
    "bound": "regret_bound",
}


def observers(settings: config.Config, log: Log) -> list[Observer]:
    """Return the telemetry observer, if the configuration enables it."""
    return [TelemetryCollector(settings, log)] if settings.telemetry.enabled else []


class TelemetryCollector(Observer):
    """Update the board, the curves and the health, and serve them."""

    name = "telemetry"

    def __init__(
        self,
        settings: config.Config,
        log: Log,
        clock: Callable[[], float] = time.time,
        *,
        serve: bool = True,
    ) -> None:
        """Build the collectors; without `serve` there is no server, only the board."""
        given = settings.telemetry
        self.log = log
        self.clock = clock
        self.show_payloads = given.show_invalid_records
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
        self.server = TelemetryServer(given.host, given.port, routes.answer)
        self.serving: bool | None = None if serve else False  # None: not yet tried
        self.learners: Learners | None = None
        self.counts = CountsCollector(self.board, clock)
        self.quality = QualityCollector(self.board)
        self._before = (0, clock())  # events and time of the previous refresh
        self._refreshed_at = 0.0
        self._next_point = 0.0
        self._slow_curves_due = False  # whether there was a refresh since the last point
        self.weights = WeightsCollector(self.board, clock)
        self.delayed_labels = DelayedLabelsCollector(self.board)
        self.regret = RegretCollector(self.board, clock)
        self.served = ServedCollector(self.board)
        self._describe(settings)

    def _describe(self, settings: config.Config) -> None:
        """Set what never changes."""
        board, text = self.board, effective.text(settings)
        about = board.about
        about.config, about.started, about.window = text, self.clock(), WINDOW
        source = settings.source
        about.source = str(type(source).__struct_config__.tag or getattr(source, "kind", ""))
        about.regret, about.keeps = settings.regret.enabled, settings.checkpoint is not None
        about.learners = [learner.name for learner in settings.learners]
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        kinds = (about.source, settings.format.kind, settings.features.kind, digest)
        board.set("config_info", 1, *kinds)
        board.set("build_info", 1, installed_version(), platform.python_version())
        board.set("start_timestamp_seconds", about.started)
        self.model_text = {learner.name: model_text(learner) for learner in settings.learners}

    # -- called by the loop ------------------------------------------------------------------------

    def on_state(self, status: Status) -> None:
        """Serve from the first state on, so that a standby has metrics too."""
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
            self.refresh(status)  # the final values
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
                "telemetry unavailable",
                host=server.host, port=server.port, error=str(error),
                remedy="set telemetry.host and telemetry.port",
            )  # fmt: skip
            return
        self.serving = True
        host = f"[{server.host}]" if ":" in server.host else server.host
        self.log.info("telemetry started", page=f"http://{host}:{server.port}/")
        if self.missing_protection is not None:
            self.log.warning(
                "telemetry exposed to the network without a token",
                host=server.host,
                remedy=self.missing_protection,
            )

    def on_start(self, learners: Learners, status: Status) -> None:
        """Start the collectors with the loaded learners."""
        self.learners = learners
        self.counts.start(learners)
        self.quality.start(learners)
        for learner in learners:
            loss = repr(learner.model.objective.loss)
            self.board.inform(learner.name, model=self.model_text[learner.name], loss=loss)
        self.regret.start(learners)
        self.delayed_labels.start(learners)
        self.on_state(status)
        self._before = (self.counts.seen, self.clock())
        self.refresh(status)

    def on_poll(self, seconds: float, records: int) -> None:  # noqa: ARG002 - counted by batch
        """Count a poll."""
        self.health.polled = True
        self.health.beat()
        self.counts.poll(seconds)

    def on_batch(self, batch: Batch) -> None:
        """Count a batch, and add a point to the curves if due."""
        self.counts.add(batch)
        self.quality.add(batch)
        for part in batch.parts:
            if part.invalid:
                self._record_invalid(part)
        self._add_point()

    def on_tick(self, status: Status) -> None:
        """Update the counts, and refresh everything once a second."""
        self.health.beat()
        self._flush_counts()
        now = self.clock()
        if not 0.0 <= now - self._refreshed_at < REFRESH_SECONDS:  # the clock may be set back
            self._refreshed_at = now
            self.refresh(status)

    def on_checkpoint(self, result: WrittenCheckpoint | FailedCheckpoint) -> None:
        """Record the result of a checkpoint."""
        if hasattr(result, "error"):
            self.board.add("checkpoint_failures_total", 1)
            return
        self.board.set("checkpoint_timestamp_seconds", self.clock())
        self.board.set("checkpoint_bytes", result.bytes)
        self.board.set("checkpoint_duration_seconds", result.seconds)

    def on_end(self) -> None:
        """Stop the server, after an open page has shown the end."""
        board = self.board
        if self.serving and time.monotonic() - board.looked_at < PAGE_SECONDS:
            board.end_shown.wait(self.patience)
        self.server.stop()

    def state(self) -> Any:
        """Return the curves, and the number of events that they span."""
        return {
            "history": self.history.state(),
            "seen": self.counts.seen,
            "quality": self.quality.state(),
        }

    def restore(self, state: Any) -> None:
        """Restore the state."""
        self.history.restore(state["history"])
        self.counts.seen = int(state["seen"])
        self.quality.restore(state.get("quality", {}))

    # -- a batch ----------------------------------------------------------------------------------

    def _record_invalid(self, part: PartitionBatch) -> None:
        """Count invalid records, and show the recent ones."""
        records, now = part.records, self.clock()
        where = records.partition
        for bad in part.invalid:
            self.board.add("invalid_records_total", 1, bad.code)
            value = records.values[bad.number] if self.show_payloads else None
            self.board.invalid_records.append(
                ShownInvalidRecord(
                    now,
                    where.topic,
                    where.number,
                    records.offsets[bad.number],
                    bad.code,
                    None if bad.field is None else bad.field[:MAX_PAYLOAD],
                    bad.reason if self.show_payloads else None,
                    None if value is None else value[:MAX_PAYLOAD].decode(errors="replace"),
                )
            )

    # -- measurements -----------------------------------------------------------------------------

    def refresh(self, status: Status) -> None:
        """Measure everything that is not counted by batch."""
        self._measure_source(status)
        if self.learners is None:
            return
        self.quality.measure(self.learners)
        for learner in self.learners:
            self._measure_model(learner)
        self.weights.measure_if_due(self.learners)
        self.regret.measure()
        self.delayed_labels.measure()
        self.served.measure(self.learners)
        choice = self.learners.choice
        if choice is not None:
            for name in choice.names:
                self.board.set("currently_best", float(name == choice.name), name)
        lag = [records for records in status.lag.values() if records is not None]
        curves = {"rate": self.board.about.rate, "lag": float(sum(lag)) if lag else None}
        self.recent.add(self.clock(), {**curves, **self._curves(slow=True)})
        self._slow_curves_due = True
        if self.counts.seen > 0:
            self._add_point()  # the last events of a pause belong to the curves, too

    def _add_point(self) -> None:
        """Add a point to the curves if it is due."""
        if self.history.due(self.counts.seen) and self.clock() >= self._next_point:
            self._next_point = self.clock() + CURVE_SECONDS
            fresh, self._slow_curves_due = self._slow_curves_due, False
            self.history.add(self.counts.seen, self.clock(), self._curves(slow=fresh))

    def _measure_source(self, status: Status) -> None:
        """Measure lag and positions of the assigned partitions, and the event rate."""
        self.board.about.ended = status.ended
        assigned = status.lag.keys() or status.positions.keys()
        if assigned:
            self.counts.drop_unassigned(assigned)
        lag: dict[tuple[str, ...], float] = {}
        lost: dict[tuple[str, ...], float] = {}
        offsets: dict[tuple[str, ...], float] = {}
        for where in assigned:
            labels, records = self.counts.labels_of(where), status.lag.get(where)
            if records is not None:
                lag[labels] = lag.get(labels, 0) + records
            lost[labels] = lost.get(labels, 0) + status.lost.get(where, 0)
            if where in status.positions and labels != OTHERS:
                offsets[labels] = status.positions[where]
        board = self.board
        board.replace("events_lost_total", lost)
        board.replace("lag_events", lag)
        board.replace("position_offset", offsets)
        board.unknown = sum(
            records is None and where not in status.positions
            for where, records in status.lag.items()
        )
        now = self.clock()
        events, before = self._before
        if now > before:
            board.about.rate = (self.counts.seen - events) / (now - before)
        self._before = (self.counts.seen, now)

    def _measure_model(self, learner: Learner) -> None:
        """Measure what is cheap to know of a model."""
        board, model, name = self.board, learner.model, learner.name
        board.set("lifetime_events_diverged", learner.diverged, name)
        board.set("steps", model.steps, name)
        rules = model.rules
        board.set("step_size", rules[0].step_size if len(rules) == 1 else None, name)
        mixtures = [rule for rule in rules if isinstance(rule, Mixture | SparseMixture)]
        if mixtures:
            shares = np.mean([rule.shares for rule in mixtures], axis=0).tolist()
            for member, share in zip(mixtures[0].members, shares, strict=True):
                board.set("mixture_weight_ratio", share, name, str(member))

    def _curves(self, *, slow: bool) -> dict[str, float | None]:
        """Return a point of every curve; without `slow`, only of those that are cheap."""
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
    """Describe a learner's model as in the configuration."""
    if learner.start is not None:
        return f"saved: {learner.start}"
    if learner.model is not None:
        return learner.model
    parts = [part for part in (learner.rule, learner.loss, learner.penalty) if part is not None]
    return " · ".join(parts) or "a mixture without tuning"


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can connect to an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def missing_protection(given: config.TelemetryConfig) -> str | None:
    """Return how to protect telemetry that the network can read; None if it is protected.

    >>> from streamlearn.config import TelemetryConfig
    >>> missing_protection(TelemetryConfig()), missing_protection(TelemetryConfig(host="0.0.0.0"))
    (None, 'set telemetry.token')
    """
    if is_loopback(given.host) or given.token is not None:
        return None
    return "set telemetry.token" + ("" if given.page else " and telemetry.protect_metrics")


def installed_version() -> str:
    """Return the installed version."""
    try:
        return version("streamlearn")
    except PackageNotFoundError:
        return "source"
