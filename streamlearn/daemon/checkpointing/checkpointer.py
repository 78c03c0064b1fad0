"""When checkpoints are taken, and what follows from them.

The order of things is the promise:

1. A checkpoint is copied between two batches, and holds models, scores and positions as one.
2. What was published before the copy is delivered before the file is renamed.
3. The source's own tools are told (commit) when the file is durable, never before.
4. Before each of these the epoch must still be ours.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.writer import (
    CheckpointWriter,
    FailedCheckpoint,
    WrittenCheckpoint,
)
from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.daemon.process.faults import fault_point
from streamlearn.engine.events import Events
from streamlearn.errors import SinkDenied, SinkFenced, SinkNotFound, SinkRefused, SourceError
from streamlearn.rules.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.daemon.checkpointing.ownership import Ownership
    from streamlearn.daemon.collectors.observer import Status
    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.daemon.process.log import Log
    from streamlearn.daemon.process.watchdog import Watchdog
    from streamlearn.stream import Source
    from streamlearn.stream.sinks.sink import Sink

PERMANENT_ERRORS = (SinkRefused, SinkDenied, SinkNotFound)  # errors of an output that will not pass
IN_PROGRESS = "one is being written, or waits for an output to deliver"


class Checkpointer:
    """Keeps what the pipeline becomes.

    Parameters
    ----------
    ownership, pipeline, source, sinks
        Whose it is, what is kept, who is told, and what is delivered first.
    every_events, every_seconds
        A checkpoint is due after so many events, or so much time with any records.
    max_age_seconds
        The longest time for which records may be learned and not be durable.
    keep
        How many checkpoints are kept.
    input_settings
        Features and format as text, kept to be compared at the next start.
    fresh
        There is no checkpoint yet: the first is due immediately, so that where it began is known.
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
        every_events: int,
        every_seconds: float,
        max_age_seconds: float,
        keep: int,
        input_settings: Mapping[str, str],
        fresh: bool,
    ) -> None:
        self.ownership = ownership
        self.pipeline = pipeline
        self.source = source
        self.sinks = sinks
        self.status = status
        self.log = log
        self.every_events = every_events
        self.every_seconds = every_seconds
        self.max_age_seconds = max_age_seconds
        self.input_settings = input_settings
        self.copies = Copies()
        self.checkpoints = CheckpointWriter(
            ownership, keep=keep, flush=self._flush, on_done=self.copies.make_room
        )
        # moves of the pipeline that the latest copy has, and the newest durable checkpoint;
        # of a fresh one nothing is durable, not even that nothing has moved yet
        self._copied_revision = self._durable_revision = pipeline.revision - fresh
        self._copied_records = pipeline.counts.records
        self._copied_events = pipeline.counts.events
        self._copied_at = -math.inf if fresh else time.monotonic()
        self._unsaved_since: float | None = None
        self._problem = IN_PROGRESS  # there is no new checkpoint

    def make_room(self) -> None:
        """Get ready for the first copy, before learning begins: others follow it more quickly."""
        learners = self.pipeline.learners
        nothing = Events()
        nothing.add([], known=learners.reader.size)
        with self.copies:
            for learner in learners:
                # An event to score: where slots are hashed, the first one gives a fresh model all.
                learner.model.progressive_events(nothing)
                learner.model.state(features=False)
        self.copies.make_room()

    def keep(self) -> None:
        """Between two batches: collect the one under way, and begin the next if it is due."""
        self._collect(0.0)
        self.check_age()
        now, pipeline = time.monotonic(), self.pipeline
        due = (
            pipeline.counts.events - self._copied_events >= self.every_events
            or now - self._copied_at >= self.every_seconds
        )
        if due and pipeline.revision > self._copied_revision and self.checkpoints.ready:
            self._begin()

    def check_age(self) -> None:
        """Stop if too old a record is not durable; in the middle of a batch, too."""
        now, pipeline = time.monotonic(), self.pipeline
        unsaved = pipeline.revision > self._durable_revision or not pipeline.consistent
        if unsaved and self._unsaved_since is None:
            self._unsaved_since = now
        age = 0.0 if self._unsaved_since is None else now - self._unsaved_since
        if age > self.max_age_seconds:
            raise Stop(
                Exit.CHECKPOINT,
                f"no checkpoint could be written for {age:.0f} s ({self._problem}); the last good "
                "one is intact, and the records after it are learned again at the next start",
            )

    def finish(self, seconds: float, watchdog: Watchdog) -> bool:
        """A last checkpoint, within this time; whether all that was learned is durable."""
        end = time.monotonic() + seconds
        while True:
            self._collect(0.05)
            watchdog.beat()
            if not self.checkpoints.busy and self._durable_revision == self.pipeline.revision:
                return True
            left = end - time.monotonic()
            if left <= 0.0:
                return False
            if self.checkpoints.ready:
                self._begin(max(0.9 * left, 0.1))
            elif not self.checkpoints.busy:
                time.sleep(0.05)

    def _begin(self, flush_seconds: float | None = None) -> None:
        """Copy the state, and let it be written."""
        self._copied_at = time.monotonic()
        self._copied_revision = self.pipeline.revision
        self._copied_records = self.pipeline.counts.records
        self._copied_events = self.pipeline.counts.events
        with self.copies:
            state = self.pipeline.state()
        whole: dict[str, Any] = {
            **state,
            "source": dict(self.source.identity()),
            "restarts": self.status.restarts,
            "written": time.time(),
        }
        whole["features"]["input_settings"] = dict(self.input_settings)
        self.checkpoints.begin(whole, self.pipeline.positions, flush_seconds)

    def _collect(self, seconds: float) -> None:
        """See what has become of the one under way; commit it if it is durable."""
        result = self.checkpoints.collect(seconds)
        if isinstance(result, WrittenCheckpoint):
            self._written(result)
        elif isinstance(result, FailedCheckpoint):
            if isinstance(result.error, PERMANENT_ERRORS):
                raise result.error
            self._copied_revision = self._durable_revision
            self._problem = str(result.error)
            self.status.checkpoint_failures = self.checkpoints.failures
            self.log.rate_limited(
                "checkpoint",
                "error",
                "a checkpoint could not be written",
                error=str(result.error),
                retry_in=result.retry_in,
                failures=self.checkpoints.failures,
            )
        if result is not None:
            self.pipeline.notify("on_checkpoint", result)

    def _written(self, result: WrittenCheckpoint) -> None:
        self._durable_revision = self._copied_revision
        self._problem = IN_PROGRESS
        newer = self.pipeline.revision > self._durable_revision
        self._unsaved_since = self._copied_at if newer else None
        self.status.checkpoint_time = time.time()
        self.log.info(
            "checkpoint",
            name=result.place.name,
            bytes=result.bytes,
            seconds=round(result.seconds, 3),
            records=self._copied_records,
        )
        self.ownership.check()
        fault_point("commit")
        try:
            self.source.commit(result.positions)
        except SourceError as error:  # it is for lag tools alone
            self.log.rate_limited("commit", "warning", "not committed", error=str(error))

    def _flush(self, seconds: float) -> None:
        """Deliver what was published, all outputs within this time."""
        end = time.monotonic() + seconds
        for sink in self.sinks:
            try:
                sink.flush(max(end - time.monotonic(), 0.1))
            except SinkFenced as error:
                raise Fenced(str(error)) from error
