"""Run the daemon: take ownership, load the checkpoint, poll and learn, shut down cleanly."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing import resume
from streamlearn.daemon.checkpointing.checkpointer import Checkpointer
from streamlearn.daemon.checkpointing.claim import UnconfirmedError
from streamlearn.daemon.checkpointing.writer import remove_partial_files
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.label_monitor import label_hint
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.pipeline import Counts
from streamlearn.daemon.process.error_context import error_message
from streamlearn.daemon.process.exits import Exit, Stop, exit_code
from streamlearn.daemon.status import Status
from streamlearn.daemon.until import Until
from streamlearn.errors import (
    ModelFileError,
    SinkError,
    SinkFullError,
    SourceChangedError,
    SourceError,
    StoreError,
)
from streamlearn.estimators import checkpoints
from streamlearn.stream.sources.backfill import Backfill, refuse_unfinished

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from streamlearn import config
    from streamlearn.daemon.checkpointing.ownership import Ownership
    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.daemon.process.log import Log
    from streamlearn.daemon.process.watchdog import Watchdog
    from streamlearn.estimators.checkpoints import CheckpointId
    from streamlearn.stream import Partition, Source
    from streamlearn.stream.sinks.sink import Sink

    Found = tuple[CheckpointId, dict[str, Any]] | None

POLL_SECONDS = 0.25  # signals are handled between two polls
TICK_SECONDS = 0.25
SIGNALS = (signal.SIGTERM, signal.SIGINT)
# the state is still consistent after these, so a final checkpoint is written
CHECKPOINT_CODES = {Exit.OK, Exit.SOURCE, Exit.DENIED, Exit.NOT_FOUND, Exit.SOURCE_CHANGED}


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When to checkpoint, when to stop, and what to do with an existing checkpoint."""

    checkpoint: config.CheckpointConfig
    shutdown_seconds: float
    begin: bool = False
    until: Until = field(default_factory=Until)
    finite: bool = False  # whether nothing follows once the source has ended
    skip_to: Mapping[Partition, int] = field(default_factory=dict)
    reset: Collection[str] = ()
    input_settings: Mapping[str, str] = field(default_factory=dict)  # see `build.input_settings`


class Loop:
    """One run of the daemon; without `ownership` nothing is checkpointed."""

    def __init__(
        self,
        source: Source,
        pipeline: Pipeline,
        ownership: Ownership | None,
        policy: Policy,
        log: Log,
        watchdog: Watchdog,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self.source = source
        self.pipeline = pipeline
        self.ownership = ownership
        self.policy = policy
        self.log = log
        self.watchdog = watchdog
        self.sinks = sinks
        self.status = Status()
        self.started = False  # whether the learners are loaded
        self.stop_requested = threading.Event()
        self.checkpointer: Checkpointer | None = None
        self._last_tick = 0.0
        self._logged_end = False
        self._counts_at_start = Counts()
        for sink in sinks:
            if isinstance(sink, BlockingSink):
                sink.on_wait, sink.should_stop = self._wait_for_output, self.stop_requested.is_set

    def run(self) -> Exit:
        """Run until stopped, and return the exit code."""
        before = self._handle_signals()
        self.watchdog.start()
        try:
            stop = self._run_until_stopped()
            return self._end(stop)
        finally:
            self._close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run_until_stopped(self) -> Stop | None:
        """Start and learn; return the reason for stopping, or None for a normal end."""
        try:
            self._start()
            self._learn()
        except Stop as stop:
            return stop
        except (SourceError, SinkError) as error:
            return Stop(exit_code(error), error_message(error, str(error)))
        except StoreError as error:
            return Stop(exit_code(error), str(error))
        except ModelFileError as error:
            return Stop(Exit.CHECKPOINT, str(error))
        except Exception as error:  # noqa: BLE001 - logged with its stack, and nothing is saved
            self.log.error("crashed", stack=traceback.format_exc())  # noqa: TRY400 - our own log
            return Stop(Exit.CRASH, error_message(error, f"unexpected error: {error!r}"))
        return None

    def _handle_signals(self) -> dict[int, Any]:
        """Stop on the first signal, and let a second one kill the process."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}

        def request_stop(number: int, _: Any) -> None:
            self.stop_requested.set()
            signal.signal(number, signal.SIG_DFL)

        for number in SIGNALS:
            signal.signal(number, request_stop)
        return before

    def _set_state(self, state: str, reason: str = "") -> None:
        self.status.state, self.status.reason = state, reason
        self.pipeline.notify(Observer.on_state, self.status)

    # -- start ------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Take ownership, load the checkpoint, and seek to its positions."""
        found: Found = None
        if self.ownership is not None:
            found = self.ownership.acquire(
                self._load,
                wait=self._wait_as_standby,
                advice=", or set checkpoint.standby = true to wait for it",
            )
            self.status.epoch = self.ownership.epoch
            remove_partial_files(self.ownership.store, self.ownership.epoch)
            for sink in self.sinks:
                sink.take_over(self.ownership.models_id)
        self._set_state("loading")
        self.pipeline.set_epoch(self.status.epoch)
        self._restore(found)
        self._open(None if found is None else found[1]["source"])
        resume.check_skip_to(self.source, self.policy.skip_to)
        self.pipeline.notify(Observer.on_start, self.pipeline.learners, self.status)
        self._set_state("active")
        self.started = True
        self.log.info(
            "learning",
            epoch=self.status.epoch,
            restarts=self.status.restarts,
            checkpoint=found[0].name if found else "none",
            records=self.pipeline.counts.records,
        )

    def _open(self, identity: Mapping[str, str] | None) -> None:
        """Open the source, and meanwhile allocate memory for checkpoint copies."""
        thread: threading.Thread | None = None
        if self.checkpointer is not None:
            allocate = self.checkpointer.allocate
            thread = threading.Thread(target=allocate, name="checkpoint", daemon=True)
            thread.start()
        try:
            if not isinstance(self.source, Backfill):
                refuse_unfinished(identity or {})
            self.source.open(self.pipeline.positions, identity)
        except SourceChangedError as error:
            if not (skipped := self.policy.skip_to):
                raise
            asked = ", ".join(f"{where.topic}:{where.number}:{at}" for where, at in skipped.items())
            raise Stop(Exit.USAGE, f"--skip-to {asked}: {error}") from error
        finally:
            if thread is not None:
                thread.join()
        positions, partitions = self.pipeline.positions, self.source.lag()
        if positions and not positions.keys() & partitions.keys():
            self.log.warning("source changed", start="beginning", partitions=len(partitions))
        resume.restore_header(self.source, self.pipeline.event_reader.decoder)

    def _load(self) -> Found:
        """Load the newest valid checkpoint, and log each damaged one."""

        def damaged(checkpoint_id: CheckpointId, error: Exception) -> None:
            self.log.error("checkpoint damaged", checkpoint=checkpoint_id.name, error=str(error))

        if self.ownership is None:
            return None
        store, policy = self.ownership.store, self.policy
        found = checkpoints.newest(store, damaged)
        if found is None and policy.checkpoint.required and not policy.begin:
            raise Stop(
                Exit.NO_CHECKPOINT,
                f"{store} has no checkpoint, but checkpoint.required = true; mount its volume, "
                "or run once with --begin to start a new model",
            )
        if found is not None and policy.begin:
            raise Stop(
                Exit.USAGE,
                f"--begin: {store} already has the checkpoint {found[0].name}; omit --begin to "
                "resume from it",
            )
        return found

    def _wait_as_standby(self) -> bool:
        """Wait briefly as a standby; return False if standby is disabled."""
        self.watchdog.beat()
        if not self.policy.checkpoint.standby:
            return False
        if self.status.state != "standby":
            self._set_state("standby")
            self.log.info("standby")
        self.pipeline.notify(Observer.on_tick, self.status)
        if self.stop_requested.wait(TICK_SECONDS / 2.0):
            raise Stop(Exit.OK, "stop requested during standby")
        return True

    def _restore(self, found: Found) -> None:
        """Restore the pipeline from the checkpoint."""
        pipeline, policy, ownership = self.pipeline, self.policy, self.ownership
        changes = resume.resume(pipeline, found, policy.input_settings, policy.reset)
        store = None if ownership is None else ownership.store
        if found is not None and store is not None:
            resume.archive_learners(store, found, changes)
            self.status.restarts = int(found[1]["restarts"]) + 1
        if policy.skip_to:
            resume.apply_skip_to(self.log, pipeline, policy.skip_to)
        resume.log_changes(self.log, changes, pipeline, store)
        if ownership is not None:
            self.checkpointer = Checkpointer(
                ownership,
                pipeline,
                self.source,
                self.sinks,
                self.status,
                self.log,
                settings=policy.checkpoint,
                input_settings=policy.input_settings,
                fresh=found is None,
            )

    # -- learning ---------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Poll and learn until the end of the run or a stop request."""
        until, source = self.policy.until, self.source
        self._counts_at_start = replace(self.pipeline.counts)
        while not self.stop_requested.is_set():
            self.watchdog.beat()
            start = time.perf_counter()
            polled = source.poll(POLL_SECONDS)
            seconds = time.perf_counter() - start
            self.pipeline.notify(Observer.on_poll, seconds, sum(len(one.offsets) for one in polled))
            self._check_ownership()
            if records := until.truncate(polled):
                self.pipeline.process(records)
                self.watchdog.beat()
            if self.checkpointer is not None:
                self.checkpointer.update()
            self._tick()
            if until.reached(source):
                self._update_status()
                return
            if not polled and source.ended():  # its poll returns immediately
                self._log_end()
                self.stop_requested.wait(max(POLL_SECONDS - seconds, 0.0))

    def _log_end(self) -> None:
        """Log, once, that nothing is left to read, if the daemon does not end by itself."""
        if self.policy.finite and not self._logged_end:
            self._logged_end = True
            self.log.info(
                "all records read",
                records=self.pipeline.counts.records,
                waiting="until stopped (SIGTERM, Ctrl-C); --until end stops here",
            )

    def _wait_for_output(self, full: SinkFullError) -> None:
        """Keep the watchdog quiet while an output is full, up to the maximum checkpoint age."""
        self.watchdog.beat()
        self.log.rate_limited("output full", "warning", "output full", error=str(full))
        if self.checkpointer is not None:
            self.checkpointer.check_age()

    def _check_ownership(self) -> None:
        """Stop if another instance has taken over; wait while that is unknown."""
        start = time.monotonic()
        while not self._is_owner(start):
            self.watchdog.beat()
            if self.checkpointer is not None:
                self.checkpointer.update()
            self._tick()
            if self.stop_requested.wait(TICK_SECONDS):
                raise Stop(Exit.OK, "stop requested")

    def _is_owner(self, start: float) -> bool:
        """Tell whether this is the owner for sure; stop if that is unknown for too long."""
        try:
            if self.ownership is not None:
                self.ownership.check()
        except UnconfirmedError as error:
            self.log.rate_limited("lease", "warning", "lease not renewed", error=str(error))
            if time.monotonic() - start > self.policy.checkpoint.max_age_seconds:
                raise Stop(Exit.CHECKPOINT, str(error)) from error
            return False
        return True

    def _tick(self) -> None:
        """Notify the observers of the status, a few times a second."""
        now = time.monotonic()
        if now - self._last_tick >= TICK_SECONDS:
            self._last_tick = now
            self._update_status()
            self.pipeline.notify(Observer.on_tick, self.status)

    def _update_status(self) -> None:
        """Read positions and lag from the source."""
        status, source = self.status, self.source
        status.positions = dict(self.pipeline.positions)
        status.lag, status.lost, status.ended = source.lag(), source.lost(), source.ended()

    # -- shutdown ----------------------------------------------------------------------------------

    def _end(self, stop: Stop | None) -> Exit:
        """Write the final checkpoint if the state allows it, and log how the run ended."""
        normal = "stop requested" if self.stop_requested.is_set() else "end reached"
        reason = normal if stop is None else stop.reason
        code = Exit.OK if stop is None else stop.code
        self._set_state("stopping", reason)
        time_limited = self.stop_requested.is_set() or stop is not None
        sound = code in CHECKPOINT_CODES
        if time_limited:
            self.watchdog.deadline(self.policy.shutdown_seconds, code or Exit.UNSAVED)
        if sound and self.checkpointer is not None:
            code, reason = self._save(self.checkpointer, code, reason, time_limited=time_limited)
        self.watchdog.deadline(0.3 * self.policy.shutdown_seconds, code)
        if sound and self.started:
            self._log_learners()
            self.pipeline.label_monitor.check_positive(
                self.pipeline.event_reader.labels, min_events=1
            )
            if self.pipeline.counts.learned == 0:
                self.pipeline.label_monitor.check_joined(self.pipeline.event_reader.unjoined, 1)
            if self._nothing_learned():
                code = Exit.NOTHING_LEARNED
                reason = f"no record was learned: {self._why_nothing_learned()}"
        log = self.log.info if code == Exit.OK else self.log.error
        log("stopped", reason=reason, exit=int(code), records=self.pipeline.counts.records)
        self.status.exit = int(code)
        self._set_state("stopped", reason)
        return code

    def _nothing_learned(self) -> bool:
        """Tell whether a run to the end of its input read records but learned none of them.

        With delayed labels this is normal.
        """
        if self.stop_requested.is_set():
            return False
        before, now = self._counts_at_start, self.pipeline.counts
        read = now.events + now.invalid - before.events - before.invalid
        return read > 0 and now.learned == before.learned and not self.pipeline.event_reader.delayed

    def _why_nothing_learned(self) -> str:
        """Explain why no record was learned, as far as can be determined."""
        if self.pipeline.counts.events == self._counts_at_start.events:
            return "all records were invalid"
        decoder = self.pipeline.event_reader.decoder
        found = label_hint(decoder)
        similar = f" (similar fields: {', '.join(found['similar'])})" if "similar" in found else ""
        weight = " and a weight above 0" if decoder.fields.weight else ""
        return f"none had a label in the field {found['field']!r}{weight}{similar}"

    def _log_learners(self) -> None:
        """Log the results of each learner, for readers who see only the log."""
        for one in self.pipeline.learners:
            means = {name: progress.mean for name, progress in one.progress.items()}
            self.log.info(
                "learned", name=one.name, events=one.learned, **means, nonzero=one.model.nonzero
            )

    def _save(
        self, checkpointer: Checkpointer, code: Exit, reason: str, *, time_limited: bool
    ) -> tuple[Exit, str]:
        """Write the final checkpoint; return the exit code and the reason."""
        seconds = (
            0.7 * self.policy.shutdown_seconds
            if time_limited
            else self.policy.checkpoint.max_age_seconds
        )
        try:
            # an unfinished batch leaves models and positions inconsistent
            saved = self.pipeline.consistent and checkpointer.finish(seconds, self.watchdog)
        except Stop as fenced:
            return fenced.code, fenced.reason
        except SinkError as error:  # no retry would help
            if code == Exit.OK:
                return exit_code(error), str(error)
            saved = False
        if saved or not (code == Exit.OK or self.stop_requested.is_set()):
            return code, reason
        return Exit.UNSAVED, (
            "stopped without a final checkpoint; the previous one is intact, and the records after "
            "it are learned again at the next start"
        )

    def _close(self) -> None:
        """Close everything; log what fails, which no longer affects the result."""
        self.pipeline.notify(Observer.on_end)
        closers = [sink.close for sink in self.sinks]
        if self.ownership is not None:  # all is written; a cluster of workers may take long to end
            closers.append(self.ownership.release)
        closers += [self.source.close, self.pipeline.learners.close]
        for close in closers:
            try:
                close()
            except Exception as error:  # noqa: BLE001 - shutting down
                what = getattr(close, "__qualname__", repr(close))
                self.log.warning("close failed", resource=what, error=str(error))
        self.watchdog.stop()
