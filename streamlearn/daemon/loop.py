"""The daemon's loop: claim, load, then poll and process until the end, and a clean end."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing import resume
from streamlearn.daemon.checkpointing.checkpointer import Checkpointer
from streamlearn.daemon.checkpointing.writer import remove_partial_files
from streamlearn.daemon.collectors.observer import Status
from streamlearn.daemon.label_monitor import label_hint
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.pipeline import Counts
from streamlearn.daemon.process.error_context import error_message
from streamlearn.daemon.process.exits import Exit, Stop, exit_code
from streamlearn.daemon.until import Until
from streamlearn.errors import ModelFileError, SinkError, SourceChanged, SourceError
from streamlearn.estimators import checkpoints

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from streamlearn.daemon.checkpointing.ownership import Ownership
    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.daemon.process.log import Log
    from streamlearn.daemon.process.watchdog import Watchdog
    from streamlearn.estimators.checkpoints import Place
    from streamlearn.stream import Partition, Source
    from streamlearn.stream.sinks.sink import Sink

    Found = tuple[Place, dict[str, Any]] | None

POLL_SECONDS = 0.25  # a signal is seen between two polls
TICK_SECONDS = 0.25
SIGNALS = (signal.SIGTERM, signal.SIGINT)
# after these the state is as good as ever, and worth a last checkpoint
CHECKPOINT_CODES = {Exit.OK, Exit.SOURCE, Exit.DENIED, Exit.NOT_FOUND, Exit.SOURCE_CHANGED}


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When to do what."""

    every_events: int = 1_000_000
    every_seconds: float = 10.0
    keep: int = 2
    max_age_seconds: float = 300.0
    standby: bool = True
    required: bool = False
    begin: bool = False
    shutdown_seconds: float = 10.0
    until: Until = field(default_factory=Until)
    skip_to: Mapping[Partition, int] = field(default_factory=dict)
    reset: Collection[str] = ()
    input_settings: Mapping[str, str] = field(default_factory=dict)  # features and format, as text


class Loop:
    """One run of the daemon; `ownership` is None where nothing is kept."""

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
        self.started = False  # whether there are learners with something to show
        self.stop_requested = threading.Event()
        self.checkpointer: Checkpointer | None = None
        self._last_tick = 0.0
        self._counts_at_start = Counts()  # of this run
        for sink in sinks:
            if isinstance(sink, BlockingSink):
                sink.on_wait, sink.should_stop = self._wait_for_output, self.stop_requested.is_set

    def run(self) -> Exit:
        """Run until the end; the exit code."""
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
        """Start and learn; why it ended, None: as it should."""
        try:
            self._start()
            self._learn()
        except Stop as stop:
            return stop
        except (SourceError, SinkError) as error:
            return Stop(exit_code(error), error_message(error, str(error)))
        except ModelFileError as error:
            return Stop(Exit.CHECKPOINT, str(error))
        except Exception as error:  # noqa: BLE001 - said with its stack, and nothing is saved
            self.log.error("crashed", stack=traceback.format_exc())  # noqa: TRY400 - our own log
            return Stop(Exit.CRASH, error_message(error, f"an error nobody foresaw: {error!r}"))
        return None

    def _handle_signals(self) -> dict[int, Any]:
        """A signal asks for the end; a second one ends at once."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}

        def ask(number: int, _: Any) -> None:
            self.stop_requested.set()
            signal.signal(number, signal.SIG_DFL)

        for number in SIGNALS:
            signal.signal(number, ask)
        return before

    def _set_state(self, state: str, reason: str = "") -> None:
        self.status.state, self.status.reason = state, reason
        self.pipeline.notify("on_state", self.status)

    # -- the start --------------------------------------------------------------------------------

    def _start(self) -> None:
        """Become the owner, load, and go to the positions."""
        found: Found = None
        if self.ownership is not None:
            found = self.ownership.acquire(self._load, wait=self._wait_as_standby)
            self.status.epoch = self.ownership.epoch
            remove_partial_files(self.ownership.directory, self.ownership.epoch)
            for sink in self.sinks:
                sink.take_over(self.ownership.models_id)
        self._set_state("loading")
        self.pipeline.set_epoch(self.status.epoch)
        self._restore(found)
        self._open(None if found is None else found[1]["source"])
        resume.check_skip_to(self.source, self.policy.skip_to)
        self.pipeline.notify("on_start", self.pipeline.learners, self.status)
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
        """Open the source; while it waits for its server, make room for checkpoints."""
        beside: list[threading.Thread] = []
        if self.checkpointer is not None:
            room = self.checkpointer.make_room
            beside.append(threading.Thread(target=room, name="checkpoint", daemon=True))
        for thread in beside:
            thread.start()
        try:
            self.source.open(self.pipeline.positions, identity)
        except SourceChanged as error:
            if not (skipped := self.policy.skip_to):
                raise
            asked = ", ".join(f"{where.topic}:{where.number}:{at}" for where, at in skipped.items())
            raise Stop(Exit.USAGE, f"--skip-to {asked}: {error}") from error
        finally:
            for thread in beside:
                thread.join()
        positions, there = self.pipeline.positions, self.source.lag()
        if positions and not positions.keys() & there.keys():
            self.log.warning("source changed: it begins at its start", there=len(there))
        resume.restore_header(self.source, self.pipeline.event_reader.decoder)

    def _load(self) -> Found:
        """The newest sound checkpoint, if there may be one; those that are damaged are logged."""

        def damaged(place: Place, error: Exception) -> None:
            self.log.error(
                "a checkpoint is damaged: the one before it counts, and what followed that one is "
                "learned again",
                checkpoint=place.name,
                error=str(error),
            )

        if self.ownership is None:
            return None
        directory, policy = self.ownership.directory, self.policy
        found = checkpoints.newest(directory, damaged)
        if found is None and policy.required and not policy.begin:
            raise Stop(
                Exit.NO_CHECKPOINT,
                f"{directory} has no checkpoint, and checkpoint.required = true: if its volume is "
                "not mounted, mount it; to start a new model there, run with --begin first",
            )
        if found is not None and policy.begin:
            raise Stop(
                Exit.USAGE,
                f"--begin: {directory} has the checkpoint {found[0].name} already; leave the "
                "option out to resume from it",
            )
        return found

    def _wait_as_standby(self) -> bool:
        """Wait a little as a standby; False if that is not wanted."""
        self.watchdog.beat()
        if not self.policy.standby:
            return False
        if self.status.state != "standby":
            self._set_state("standby")
            self.log.info("another instance is the owner: waiting as a standby")
        self.pipeline.notify("on_tick", self.status)
        if self.stop_requested.wait(TICK_SECONDS / 2.0):
            raise Stop(Exit.OK, "asked to stop as a standby")
        return True

    def _restore(self, found: Found) -> None:
        """The pipeline as the checkpoint has it."""
        pipeline, policy, ownership = self.pipeline, self.policy, self.ownership
        changes = resume.resume(pipeline, found, policy.input_settings, policy.reset)
        directory = None if ownership is None else ownership.directory
        if found is not None and directory is not None:
            resume.archive_learners(directory, found, changes)
            self.status.restarts = int(found[1]["restarts"]) + 1
        if policy.skip_to:
            resume.apply_skip_to(self.log, pipeline, policy.skip_to)
        resume.log_changes(self.log, changes, pipeline, directory)
        if ownership is not None:
            self.checkpointer = Checkpointer(
                ownership,
                pipeline,
                self.source,
                self.sinks,
                self.status,
                self.log,
                every_events=policy.every_events,
                every_seconds=policy.every_seconds,
                max_age_seconds=policy.max_age_seconds,
                keep=policy.keep,
                input_settings=policy.input_settings,
                fresh=found is None,
            )

    # -- learning ---------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Learn until the end comes or is asked for."""
        until, source = self.policy.until, self.source
        self._counts_at_start = replace(self.pipeline.counts)
        while not self.stop_requested.is_set():
            self.watchdog.beat()
            begun = time.perf_counter()
            polled = source.poll(POLL_SECONDS)
            seconds = time.perf_counter() - begun
            self.pipeline.notify("on_poll", seconds, sum(len(one.offsets) for one in polled))
            self._check_ownership()
            if wanted := until.part(polled):
                self.pipeline.process(wanted)
                self.watchdog.beat()
            if self.checkpointer is not None:
                self.checkpointer.keep()
            self._tick()
            if until.reached(source):
                self._update_status()
                return
            if not polled and source.ended():  # which does not wait: there is nothing to wait for
                self.stop_requested.wait(max(POLL_SECONDS - seconds, 0.0))

    def _wait_for_output(self) -> None:
        """An output is full: that is no silence, but must not last for ever."""
        self.watchdog.beat()
        if self.checkpointer is not None:
            self.checkpointer.check_age()

    def _check_ownership(self) -> None:
        if self.ownership is not None:
            self.ownership.check()

    def _tick(self) -> None:
        """Tell the observers how things are, a few times a second."""
        now = time.monotonic()
        if now - self._last_tick >= TICK_SECONDS:
            self._last_tick = now
            self._update_status()
            self.pipeline.notify("on_tick", self.status)

    def _update_status(self) -> None:
        """Where the source is."""
        status, source = self.status, self.source
        status.positions = dict(self.pipeline.positions)
        status.lag, status.lost, status.ended = source.lag(), source.lost(), source.ended()

    # -- the end ----------------------------------------------------------------------------------

    def _end(self, stop: Stop | None) -> Exit:
        """Save what may be saved, and say how it ended."""
        asked = "asked to stop" if self.stop_requested.is_set() else "the end was reached"
        reason = asked if stop is None else stop.reason
        code = Exit.OK if stop is None else stop.code
        self._set_state("stopping", reason)
        rate_limited = self.stop_requested.is_set() or stop is not None
        sound = code in CHECKPOINT_CODES
        if rate_limited:
            self.watchdog.deadline(self.policy.shutdown_seconds, code or Exit.UNSAVED)
        if sound and self.checkpointer is not None:
            code, reason = self._save(self.checkpointer, code, reason, rate_limited=rate_limited)
        self.watchdog.deadline(0.3 * self.policy.shutdown_seconds, code)
        if sound and self.started:
            self._log_learners()
            self.pipeline.label_monitor.check_positive(self.pipeline.event_reader.labels, least=1)
            if self._nothing_learned():
                code = Exit.NOTHING_LEARNED
                reason = f"no record was learned: {self._why_unlearned()}"
        say = self.log.info if code == Exit.OK else self.log.error
        say("stopped", reason=reason, exit=int(code), records=self.pipeline.counts.records)
        self.status.exit = int(code)
        self._set_state("stopped", reason)
        return code

    def _nothing_learned(self) -> bool:
        """Whether a run to its end had records, and learned none; not where labels are delayed."""
        if self.stop_requested.is_set():
            return False
        before, now = self._counts_at_start, self.pipeline.counts
        read = now.events + now.invalid - before.events - before.invalid
        return read > 0 and now.learned == before.learned and not self.pipeline.event_reader.delayed

    def _why_unlearned(self) -> str:
        """What is wrong, as far as one can see."""
        if self.pipeline.counts.events == self._counts_at_start.events:
            return "all were invalid"
        decoder = self.pipeline.event_reader.decoder
        found = label_hint(decoder)
        near = f" (nearest: {', '.join(found['nearest'])})" if "nearest" in found else ""
        weighed = " and a weight above 0" if decoder.fields.weight else ""
        return f"none had a label in the field {found['field']!r}{weighed}{near}"

    def _log_learners(self) -> None:
        """What came of the run, however it ended, for who reads only the log: a line a learner."""
        for one in self.pipeline.learners:
            means = {name: progress.mean for name, progress in one.progress.items()}
            self.log.info(
                "learned", name=one.name, events=one.learned, **means, nonzero=one.model.nonzero
            )

    def _save(
        self, checkpointer: Checkpointer, code: Exit, reason: str, *, rate_limited: bool
    ) -> tuple[Exit, str]:
        """A last checkpoint; how it ended then."""
        seconds = (
            0.7 * self.policy.shutdown_seconds if rate_limited else self.policy.max_age_seconds
        )
        try:
            # in the middle of a batch models and positions do not fit each other
            saved = self.pipeline.consistent and checkpointer.finish(seconds, self.watchdog)
        except Stop as fenced:
            return fenced.code, fenced.reason
        except SinkError as error:  # one that no later try would change
            if code == Exit.OK:
                return exit_code(error), str(error)
            saved = False
        if saved or not (code == Exit.OK or self.stop_requested.is_set()):
            return code, reason
        return Exit.UNSAVED, (
            "stopped without a last checkpoint: the one before is intact, and what followed it is "
            "learned again at the next start"
        )

    def _close(self) -> None:
        """Give everything back; what fails there is said, and changes nothing any more."""
        self.pipeline.notify("on_end")
        closers = [*(sink.close for sink in self.sinks), self.source.close]
        closers.append(self.pipeline.learners.close)
        if self.ownership is not None:
            closers.append(self.ownership.release)
        for close in closers:
            try:
                close()
            except Exception as error:  # noqa: BLE001 - we are leaving
                self.log.warning("not closed", what=repr(close), error=repr(error))
        self.watchdog.end()
