"""The way of records through the daemon: decode, predict and learn, publish, account.

What it has become after a batch is one state: models, scores, positions and whatever observers
remember. `state` copies all of it, `restore` goes on from the copy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.daemon.exits import Exit, Stop
from streamlearn.daemon.observer import Batch
from streamlearn.engine.events import Events
from streamlearn.stream import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.daemon.dead_letters import DeadLetters, Tolerance
    from streamlearn.daemon.learners import Learners
    from streamlearn.daemon.log import Log
    from streamlearn.daemon.observer import Observer
    from streamlearn.daemon.predictions import Predictions
    from streamlearn.stream import Decoder, Records


@dataclass(slots=True)
class Counts:
    """How many of what, over the model's life."""

    records: int = 0
    events: int = 0
    learnt: int = 0  # with a label and a weight
    unlabelled: int = 0
    tombstones: int = 0
    bad: int = 0
    skipped: int = 0  # positions that were jumped over, as asked


@dataclass
class Pipeline:
    """What records go through."""

    decoder: Decoder
    learners: Learners
    tolerance: Tolerance
    dead_letters: DeadLetters
    log: Log
    predictions: Predictions | None = None
    predictor: str = "best"
    observers: list[Observer] = field(default_factory=list)
    positions: dict[Partition, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    events: Events = field(default_factory=Events)
    moves: int = 0  # how often the state has changed in this run
    whole: bool = True  # False in the middle of a batch, and for ever if it was not finished

    def in_epoch(self, epoch: int) -> None:
        """What is published says in which epoch."""
        self.dead_letters.epoch = epoch
        if self.predictions is not None:
            self.predictions.epoch = epoch

    def process(self, records: Records) -> None:
        """Learn consecutive records of one partition, and publish what comes of them."""
        self.whole = False
        if len(records.offsets):
            self._process(records)
        self.positions[records.partition] = records.end
        self.moves += 1
        self.whole = True

    def _process(self, records: Records) -> None:
        events, clock = self.events, time.perf_counter
        begun = clock()
        events.clear()
        self.decoder.decode(records.values, events)
        decoded = clock()
        outcomes = self.learners.learn(events)
        learnt = clock()
        if self.predictions is not None:
            stretches = self.learners.stretches(self.predictor, outcomes, len(events))
            self.predictions.publish(records, events, stretches)
        if events.bad:
            self.dead_letters.send(records, events.bad)
        published = clock()
        start = self.positions.get(records.partition, records.offsets[0])
        batch = Batch(records, events, outcomes, start, self._count(records, events))
        batch.seconds.update(
            decode=decoded - begun, learn=learnt - decoded, publish=published - learnt
        )
        self.tell("on_batch", batch)
        self._report(records, events)

    def _count(self, records: Records, events: Events) -> int:
        """Count it; how many events have no label."""
        counts = self.counts
        counts.records += len(records.offsets)
        counts.events += len(events)
        learnt = int(np.count_nonzero(events.learnt_weights()))
        counts.learnt += learnt
        counts.unlabelled += len(events) - learnt
        counts.tombstones += events.tombstones
        counts.bad += len(events.bad)
        return len(events) - learnt

    def _report(self, records: Records, events: Events) -> None:
        """Say what is out of the ordinary; stop at too many bad records."""
        where = records.partition
        for _, name in self.learners.changes():
            self.log.info("best learner", name=name, by=self.learners.by)
        for i, at_fault, reason in events.bad[:1]:
            self.log.limited(
                "bad", "warning", "bad event", topic=where.topic, partition=where.number,
                offset=records.offsets[i], field=at_fault, reason=reason, in_batch=len(events.bad),
            )  # fmt: skip
        for learner in self.learners:
            if learner.diverged:
                self.log.limited(
                    f"diverged {learner.name}", "error", "a score was not finite, and its event "
                    "not learnt: the steps are too long for features of this size",
                    learner=learner.name, events=learner.diverged,
                )  # fmt: skip
        too_many = self.tolerance.add([i for i, _, _ in events.bad], len(records.offsets))
        if too_many is not None:
            raise Stop(
                Exit.BAD_EVENTS,
                f"too many bad events, up to {where.topic}:{where.number}:"
                f"{records.offsets[too_many]}: more than {self.tolerance.ratio:.1%} of the last "
                f"{self.tolerance.window} (the last: {events.bad[-1][2]}); to go on behind them: "
                f"--skip-to {where.topic}:{where.number}:{records.end}",
            )

    def tell(self, what: str, *facts: Any) -> None:
        """Tell the observers; one that fails is said and left out from then on."""
        for observer in list(self.observers):
            try:
                getattr(observer, what)(*facts)
            except Exception as error:  # noqa: BLE001 - looking on must not stop the learning
                self.leave_out(observer, what, error)

    # -- the checkpoint ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: a copy of everything, taken between two batches."""
        learners = self.learners
        return {
            "positions": [[*where, position] for where, position in self.positions.items()],
            "counts": {name: getattr(self.counts, name) for name in Counts.__slots__},
            "decoder": self.decoder.state(),
            "tolerance": self.tolerance.state(),
            "features": {"state": learners.reader.state()},
            "learners": {learner.name: learner.state() for learner in learners},
            "choice": None if learners.choice is None else learners.choice.state(),
            "observers": self.memories(),
        }

    def restore(self, state: Mapping[str, Any], *, resumed: Sequence[str], features: bool) -> None:
        """Go on from there, with these learners; the others, and maybe the features, are fresh."""
        self.positions = {Partition(topic, n): at for topic, n, at in state["positions"]}
        self.counts = Counts(**state["counts"])
        self.tolerance.restore(state["tolerance"])
        if features:
            self.learners.reader.restore(state["features"]["state"])
            self.decoder.restore(state["decoder"])
        for name in resumed:
            self.learners[name].restore(state["learners"][name], self.learners.reader)
        if self.learners.choice is not None and state["choice"] is not None:
            self.learners.choice.restore(state["choice"])
        for observer in self.observers:
            if observer.name in state["observers"]:
                self.tell_one(observer, state["observers"][observer.name])

    def memories(self) -> dict[str, Any]:
        """What observers want to be kept."""
        found = {}
        for observer in list(self.observers):
            try:
                if observer.name:
                    found[observer.name] = observer.state()
            except Exception as error:  # noqa: BLE001 - looking on must not stop the learning
                self.leave_out(observer, "state", error)
        return found

    def leave_out(self, observer: Observer, at: str, error: Exception) -> None:
        """An observer failed: it is told nothing more."""
        self.observers.remove(observer)
        name = type(observer).__name__
        self.log.error("an observer failed and is left out", name=name, at=at, error=repr(error))

    def tell_one(self, observer: Observer, state: Any) -> None:
        """Give an observer its memory back."""
        try:
            observer.restore(state)
        except Exception as error:  # noqa: BLE001 - of another version, perhaps
            self.log.warning(
                "an observer begins afresh", name=type(observer).__name__, error=repr(error)
            )
