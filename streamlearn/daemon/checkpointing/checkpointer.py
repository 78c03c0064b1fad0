"""Decide when to write checkpoints, and commit the source after each one.

The order of the steps makes the guarantee:

1. A checkpoint is copied between two batches: models, scores and positions are one unit.
2. Records published before the copy are delivered before the file is renamed.
3. Positions are committed to the source after the file is durable, never before.
4. Each of these steps requires that the epoch is still ours.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.claim import UnconfirmedError
from streamlearn.daemon.checkpointing.writer import (
    FLUSH_SECONDS,
    CheckpointWriter,
    FailedCheckpoint,
    WrittenCheckpoint,
)
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.daemon.process.faults import fault_point
from streamlearn.engine.events import Events
from streamlearn.errors import (
    SinkDeniedError,
    SinkFencedError,
    SinkNotFoundError,
    SinkRefusedError,
    SourceError,
)
from streamlearn.rules.copy_buffer import CopyBuffer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn import config
    from streamlearn.daemon.checkpointing.ownership import Ownership
    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.daemon.process.log import Log
    from streamlearn.daemon.process.watchdog import Watchdog
    from streamlearn.daemon.status import Status
    from streamlearn.stream import Source
    from streamlearn.stream.sinks.sink import Sink

PERMANENT_ERRORS = (
    SinkRefusedError,
    SinkDeniedError,
    SinkNotFoundError,
)  # errors of an output that no retry helps
IN_PROGRESS = "one is being written, or waits for an output"


class Checkpointer:
    """Write checkpoints of the pipeline.

    Parameters
    ----------
    ownership, pipeline, source, sinks
        The owner, the state, where to commit, and what to flush first.
    settings
        When a checkpoint is due, how long learned records may not be durable, how many are kept.
    input_settings
        The settings of features and format, compared at the next start.
    fresh
        There is no checkpoint yet: the first is due immediately, to record the start positions.
    """

    def __init__(
        self,
        ownership: Ownership,
        pipeline: Pipeline,
        source: Source,
        sinks: Sequence[Sink],
        status: Status,
        log: Log,
        *,
        settings: config.CheckpointConfig,
        input_settings: Mapping[str, str],
        fresh: bool,
    ) -> None:
        self.ownership = ownership
        self.pipeline = pipeline
        self.source = source
        self.sinks = sinks
        self.status = status
        self.log = log
        self.settings = settings
        self.input_settings = input_settings
        self.copies = CopyBuffer()
        self.writer = CheckpointWriter(
            ownership, keep=settings.keep, flush=self._flush, on_done=self.copies.reserve
        )
        # revisions of the latest copy and of the newest durable checkpoint; of a fresh pipeline
        # not even the empty state is durable
        self._copied_revision = self._durable_revision = pipeline.revision - fresh
        self._copied_records = pipeline.counts.records
        self._copied_events = pipeline.counts.events
        self._copied_at = -math.inf if fresh else time.monotonic()
        self._unsaved_since: float | None = None
        self._problem = IN_PROGRESS  # why there is no new checkpoint

    def allocate(self) -> None:
        """Allocate memory for the copies before learning starts, so that the first one is fast."""
        learners = self.pipeline.learners
        empty = Events()
        empty.add([], known=learners.reader.size)
        with self.copies:
            for learner in learners:
                # the first scored event allocates all slots of a fresh model with hashed features
                learner.model.progressive_events(empty)
                learner.model.state(features=False)
        self.copies.reserve()

    def update(self) -> None:
        """Collect a finished checkpoint and start the next one if due; call between two batches."""
        self._collect(0.0)
        self.check_age()
        now, pipeline = time.monotonic(), self.pipeline
        due = (
            pipeline.counts.events - self._copied_events >= self.settings.every_events
            or now - self._copied_at >= self.settings.every_seconds
        )
        if due and pipeline.revision > self._copied_revision and self.writer.ready:
            self._start()

    def check_age(self) -> None:
        """Stop if learned records have not been durable for too long; also during a batch."""
        now, pipeline = time.monotonic(), self.pipeline
        unsaved = pipeline.revision > self._durable_revision or not pipeline.consistent
        if unsaved and self._unsaved_since is None:
            self._unsaved_since = now
        age = 0.0 if self._unsaved_since is None else now - self._unsaved_since
        if age > self.settings.max_age_seconds:
            raise Stop(
                Exit.CHECKPOINT,
                f"no checkpoint could be written for {age:.0f} s ({self._problem}); the previous "
                "one is intact, and the records after it are learned again at the next start",
            )

    def finish(self, seconds: float, watchdog: Watchdog) -> bool:
        """Write a final checkpoint; return whether everything is durable within `seconds`."""
        end = time.monotonic() + seconds
        while True:
            self._collect(0.05)
            watchdog.beat()
            if not self.writer.busy and self._durable_revision == self.pipeline.revision:
                return True
            left = end - time.monotonic()
            if left <= 0.0:
                return False
            if self.writer.ready:
                self._start(max(0.9 * left, 0.1))
            elif not self.writer.busy:
                time.sleep(0.05)

    def _start(self, flush_seconds: float = FLUSH_SECONDS) -> None:
        """Copy the state, and start writing it."""
        self._copied_at = time.monotonic()
        self._copied_revision = self.pipeline.revision
        self._copied_records = self.pipeline.counts.records
        self._copied_events = self.pipeline.counts.events
        with self.copies:
            state = self.pipeline.state()
        data: dict[str, Any] = {
            **state,
            "source": dict(self.source.identity()),
            "restarts": self.status.restarts,
            "written": time.time(),
        }
        data["features"]["input_settings"] = dict(self.input_settings)
        self.writer.start(data, self.pipeline.positions, flush_seconds)

    def _collect(self, seconds: float) -> None:
        """Collect the result of a checkpoint, and commit the source if it is durable."""
        result = self.writer.collect(seconds)
        if isinstance(result, WrittenCheckpoint):
            self._written(result)
        elif isinstance(result, FailedCheckpoint):
            if isinstance(result.error, PERMANENT_ERRORS):
                raise result.error
            self._copied_revision = self._durable_revision
            self._problem = str(result.error)
            self.status.checkpoint_failures = self.writer.failures
            self.log.rate_limited(
                "checkpoint",
                "error",
                "checkpoint failed",
                error=str(result.error),
                retry_in=result.retry_in,
                failures=self.writer.failures,
            )
        if result is not None:
            self.pipeline.notify(Observer.on_checkpoint, result)

    def _written(self, result: WrittenCheckpoint) -> None:
        self._durable_revision = self._copied_revision
        self._problem = IN_PROGRESS
        newer = self.pipeline.revision > self._durable_revision
        self._unsaved_since = self._copied_at if newer else None
        self.status.checkpoint_time = time.time()
        self.log.info(
            "checkpoint written",
            name=result.checkpoint_id.name,
            bytes=result.bytes,
            seconds=round(result.seconds, 3),
            records=self._copied_records,
        )
        try:
            self.ownership.check()
            fault_point("commit")
            self.source.commit(result.positions)
        # only lag tools read committed positions
        except (SourceError, UnconfirmedError) as error:
            self.log.rate_limited("commit", "warning", "commit failed", error=str(error))

    def _flush(self, seconds: float) -> None:
        """Flush all outputs within `seconds`."""
        end = time.monotonic() + seconds
        for sink in self.sinks:
            try:
                sink.flush(max(end - time.monotonic(), 0.1))
            except SinkFencedError as error:
                raise Fenced(str(error)) from error
