"""A worker: learn some partitions for a while from a base, and return what changed.

It runs in a process of its own and keeps nothing that matters. It does not know Ray.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.pipeline import Counts
from streamlearn.daemon.process.exits import Stop
from streamlearn.daemon.process.log import Log
from streamlearn.estimators.merging import ModelSnapshot
from streamlearn.fleet import round_regret
from streamlearn.fleet.instructions import Instructions, connect, prepare, require_same_version
from streamlearn.fleet.learned import RoundSummary
from streamlearn.fleet.rounds import BaseId, Delta, Task
from streamlearn.rules.copy_buffer import CopyBuffer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.estimators.merging import ModelMove
    from streamlearn.fleet.round_regret import LedgerStart
    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream import Partition

WAIT_SECONDS = 0.2  # for which a worker waits for records


@dataclass(frozen=True)
class WorkerInstructions(Instructions):
    """What every worker is told at its start."""

    flush_seconds: float = 10.0  # for which its outputs may take


@dataclass(frozen=True)
class Base:
    """The state that workers start from; `state` is whole, or says how it moved from another."""

    id: BaseId
    since: BaseId | None
    state: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    """A round, or a start, that failed."""

    error: Exception | None = None
    code: int = 0  # of a `Stop`, whose reason is `reason`
    reason: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failed:
        """Describe an error."""
        if isinstance(error, Stop):
            return cls(code=int(error.code), reason=error.reason)
        return cls(error)


class RemoteWorker:
    """A pipeline in another process."""

    def __init__(self) -> None:
        self._base: BaseId | None = None
        self._models: dict[str, ModelSnapshot] = {}  # of the base
        self._learned: dict[str, int] = {}  # events, by the models of the base
        self._ledgers: dict[str, LedgerStart] = {}  # where they begin
        self._clean = False  # whether the learners have the base's state
        self._copies = CopyBuffer()  # of what was learned, which the next round overwrites
        self._at: dict[Partition, int] = {}  # where the reader continues
        self._reader: KafkaReader | None = None

    def start(self, told: WorkerInstructions) -> Failed | None:
        """Connect, and build the pipeline."""
        try:
            require_same_version(told)
            self._start(told)
        except Exception as error:  # noqa: BLE001 - the daemon raises it
            return Failed.of(error)
        return None

    def _start(self, told: WorkerInstructions) -> None:
        settings = told.settings
        self._told = told
        source = settings.source
        assert isinstance(source, config.KafkaSourceConfig)  # noqa: S101 - checked before
        self._most = source.batch
        self._summary = RoundSummary()
        learners, events = prepare(told)
        outputs = (settings.predictions, False), (settings.dead_letters, True)
        sinks = [build.sink(one, settings.source, binary=binary) for one, binary in outputs]
        self._sinks = [one for one in sinks if one is not None]
        log = Log(settings.log.format, settings.log.level)
        self._pipeline = build.pipeline(
            settings, events, learners, (sinks[0], sinks[1]), log, [self._summary]
        )
        self._reader = connect(told)

    def learn(
        self, task: Task, base: Base | None, goals: Mapping[Partition, int], seconds: float
    ) -> Delta | Failed:
        """Learn for so many seconds; `base` is None if the last one is still that of the task.

        The round ends early once all `goals` are reached, if there are any.
        """
        try:
            return self._learn(task, base, goals, seconds)
        except Exception as error:  # noqa: BLE001 - the daemon raises it
            self._forget_reader()
            return Failed.of(error)

    def _learn(
        self, task: Task, base: Base | None, goals: Mapping[Partition, int], seconds: float
    ) -> Delta:
        began = time.monotonic()
        self._take(base, task.workers)
        if self._base != task.base:
            raise RuntimeError(f"this worker does not have the base {task.base}")
        pipeline, learners = self._pipeline, self._pipeline.learners
        self._restore()
        round_regret.begin(learners, self._ledgers, task)
        self._seek(task.starts)
        pipeline.set_epoch(*task.base)
        pipeline.positions, pipeline.counts = dict(task.starts), Counts()
        self._summary.clear()
        self._copies.reserve()
        before = {one.name: (one.learned, one.diverged) for one in learners}
        reader = self._live()
        goals = {where: goals[where] for where in task.starts if where in goals}
        busy = 0.0
        while (left := began + seconds - time.monotonic()) > 0.0:
            if goals and all(pipeline.positions[where] >= at for where, at in goals.items()):
                break
            records = reader.poll(min(left, WAIT_SECONDS), self._most)
            if records:
                self._clean = False
                since = time.monotonic()
                pipeline.process(records)
                busy += time.monotonic() - since
        self._at = dict(pipeline.positions)
        for sink in self._sinks:
            sink.flush(self._told.flush_seconds)
        marks = {where: reader.highwater(where) for where in task.starts}
        labels = pipeline.event_reader.labels
        learned = self._summary.learned(
            learners,
            pipeline.counts,
            before,
            round_regret.parts(learners),  # before the models forget what they have learned
            moves=self._moves(),
            marks={where: mark for where, mark in marks.items() if mark is not None},
            seconds=(took := time.monotonic() - began),
            busy=busy / max(took, 1e-9),
            positive_seen=labels.positive_seen,
            negative_values=labels.negative_values,
        )
        return Delta(task.base, task.rank, task.starts, self._at, learned)

    def _take(self, base: Base | None, workers: int) -> None:
        """Take the state of a new base."""
        if base is None or (base.since is not None and base.since != self._base):
            return
        learners = self._pipeline.learners
        if base.since is None:
            learners.reader.restore(base.state["features"])
            decoders = self._pipeline.event_reader.decoders
            for decoder, state in zip(decoders, base.state["decoders"], strict=True):
                decoder.restore(state)
            for one in learners:
                one.restore_model(base.state["models"][one.name], learners.reader)
            round_regret.attach(learners, base.state["regret"], workers)
            self._models = {one.name: ModelSnapshot(one.model) for one in learners}
        else:
            self._forget_learned()
            for name, move in base.state["models"].items():
                self._models[name].advance(move)
        self._base, self._learned, self._clean = base.id, base.state["learned"], True
        self._ledgers = base.state["regret"]

    def _restore(self) -> None:
        """Give the learners the state of the base, and no scores."""
        self._forget_learned()
        for learner in self._pipeline.learners:
            learner.learned = self._learned[learner.name]
            learner.diverged = 0
            learner.clear_scores()

    def _forget_learned(self) -> None:
        """Give the models the state of the base, after an error in the middle of a round."""
        if not self._clean:
            for model in self._models.values():
                model.restore()
        self._clean = True

    def _moves(self) -> dict[str, ModelMove]:
        """Return what the models have learned, and let them forget it."""
        if self._clean:
            return {}
        found = {}
        with self._copies:
            for name, model in self._models.items():
                found[name] = model.moved()
        for name, model in self._models.items():
            model.restore(found[name])
        self._clean = True
        return found

    # -- positions --------------------------------------------------------------------------------

    def _seek(self, starts: Mapping[Partition, int]) -> None:
        """Read these partitions from here, and no others."""
        reader = self._live()
        stale = [where for where, at in self._at.items() if starts.get(where) != at]
        fresh = {where: at for where, at in starts.items() if self._at.get(where) != at}
        if stale:
            reader.drop(stale)
        if fresh:
            reader.assign(fresh)
        self._at = dict(starts)

    def _forget_reader(self) -> None:
        """Read no partition, after an error in the middle of a round."""
        self._clean = False
        if self._reader is not None and self._at:
            self._reader.drop(list(self._at))
        self._at = {}

    def _live(self) -> KafkaReader:
        if self._reader is None:
            raise RuntimeError("this worker was not started")
        return self._reader
