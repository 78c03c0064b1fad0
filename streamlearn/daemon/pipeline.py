"""Process records: decode, predict and learn, publish, count.

Between two batches the pipeline has one consistent state: models, scores, positions, and the state
of its observers. `state` copies all of it, and `restore` resumes from the copy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from streamlearn.daemon.batch import Batch, PartitionBatch
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.label_monitor import LabelMonitor
from streamlearn.daemon.outputs.dead_letters import ORPHANED
from streamlearn.daemon.process.error_context import attach_records
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.features import Names
from streamlearn.stream import Partition
from streamlearn.stream.polled import Polled
from streamlearn.stream.sources.lines import size_and_nulls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.core.invalid_record import InvalidRecord
    from streamlearn.daemon.event_reader import EventReader
    from streamlearn.daemon.learners import LearnerResult, Learners
    from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher, InvalidRecordLimit
    from streamlearn.daemon.outputs.predictions import PredictionPublisher
    from streamlearn.daemon.process.log import Log
    from streamlearn.stream import Records


P = ParamSpec("P")


@dataclass(slots=True)
class Counts:
    """Counts over the lifetime of the models."""

    records: int = 0
    events: int = 0
    learned: int = 0  # events with a label and a weight above 0
    unlabeled: int = 0
    tombstones: int = 0
    invalid: int = 0
    outside: int = 0  # events of history after the cut, and of the stream before it
    skipped: int = 0  # positions passed over by --skip-to
    since_label: int = 0  # events since the last labeled one


@dataclass
class Pipeline:
    """The stages that records pass through, and their state."""

    event_reader: EventReader
    learners: Learners
    invalid_limit: InvalidRecordLimit
    dead_letters: DeadLetterPublisher
    log: Log
    predictions: PredictionPublisher | None = None
    predictor: str = "best"
    observers: list[Observer] = field(default_factory=list)
    positions: dict[Partition, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    revision: int = 0  # batches processed in this run: the version of the state
    logged_full: bool = False  # whether a full feature table was logged
    logged_schemas: set[int | str] = field(default_factory=set)  # in this run, by id
    consistent: bool = True  # False during a batch, and for good if the batch failed

    def __post_init__(self) -> None:
        self.event_reader.attach(list(self.learners))
        self.label_monitor = LabelMonitor(self.log)

    def set_epoch(self, epoch: int, round: int | None = None) -> None:  # noqa: A002 - the header's
        """Set the epoch, and the round of a worker, that published records carry."""
        for publisher in (self.dead_letters, self.predictions):
            if publisher is not None:
                publisher.epoch, publisher.round = epoch, round

    def process(self, records: Sequence[Records]) -> None:
        """Decode, learn and publish a batch of records."""
        self.consistent = False
        batch = [one for one in records if len(one.offsets)]
        if batch:
            try:
                self._process(Polled(batch))
            except Exception as error:
                attach_records(error, batch)
                raise
        for one in records:
            self.positions[one.partition] = one.end
        self.revision += 1
        self.consistent = True

    def _process(self, polled: Polled) -> None:
        event_reader, clock = self.event_reader, time.perf_counter
        closed = event_reader.labels.closed
        start = clock()
        invalid = sorted(event_reader.read(polled), key=lambda one: one[0])
        events, predicted, weights = event_reader.rows, event_reader.predicted, event_reader.weights
        parts = self._parts(polled, invalid)
        decoded = clock()
        results = self.learners.learn(events, weights)
        learned = clock()
        self._publish(polled, parts, results, predicted)
        published = clock()
        unlabeled = self._count(parts, predicted, weights > 0.0)
        since = None if event_reader.delayed else self.counts.since_label
        schemas = event_reader.take_schema_counts()
        batch = Batch(parts, polled, events, results, predicted, unlabeled, since, schemas)
        batch.seconds.update(
            decode=decoded - start, learn=learned - decoded, publish=published - learned
        )
        self.notify(Observer.on_batch, batch)
        if event_reader.labels.closed and not closed:
            self.log_labels()
        self._log_schemas(schemas)
        self._report(polled, invalid)

    def _log_schemas(self, schemas: Mapping[int | str, int]) -> None:
        """Log each schema once, when its first record arrives."""
        for schema_id in schemas.keys() - self.logged_schemas:
            self.logged_schemas.add(schema_id)
            self.log.info("schema in use", schema=schema_id)

    def log_labels(self) -> None:
        """Log the label set, once it is closed."""
        labels = self.event_reader.labels
        self.log.info(
            "labels closed",
            labels=labels.labels,
            positive=labels.positive,
            after_events=labels.closed_at,
        )
        for learner in self.learners:
            if isinstance(learner.model, LinearClassifier):
                weighted = learner.model.class_weight or {}
                self.label_monitor.check_weights(learner.name, weighted, labels.labels)

    def _parts(self, polled: Polled, invalid: Sequence[InvalidRecord]) -> list[PartitionBatch]:
        """Split a batch by partition, with the invalid records of each."""
        parts, positions = [], dict(self.positions)
        for one in polled.records:
            size, tombstones = size_and_nulls(one.values)
            start = positions.get(one.partition, one.offsets[0])
            parts.append(PartitionBatch(one, start, [], tombstones, size))
            positions[one.partition] = one.end
        if invalid:
            which, places = polled.find(np.array([bad.number for bad in invalid]))
            for k, i, bad in zip(which.tolist(), places.tolist(), invalid, strict=True):
                parts[k].invalid.append(bad.at(i))
        return parts

    def _publish(
        self,
        polled: Polled,
        parts: Sequence[PartitionBatch],
        results: Mapping[str, LearnerResult],
        predicted: Array,
    ) -> None:
        """Publish predictions, invalid records, and labels without an event."""
        events = self.event_reader.rows
        if self.predictions is not None and self.event_reader.publishes:
            segments = self.learners.segments(self.predictor, results, len(events))
            self.predictions.publish(polled, events, segments, predicted, self.event_reader)
        for part in parts:
            if part.invalid:
                self.dead_letters.publish(part.records, part.invalid)
        for orphan in self.event_reader.orphans():
            self.dead_letters.publish(orphan, [ORPHANED])

    def _count(self, parts: Sequence[PartitionBatch], predicted: Array, learned: Array) -> int:
        """Update the counts; return how many events will never be learned."""
        counts = self.counts
        unlabeled = 0 if self.event_reader.delayed else int(np.count_nonzero(~learned))
        counts.events += int(np.count_nonzero(predicted))
        counts.learned += int(np.count_nonzero(learned))
        counts.outside += self.event_reader.rows.outside
        counts.unlabeled += unlabeled
        if not self.event_reader.delayed and len(learned):
            last = np.flatnonzero(learned)[-1:]
            counts.since_label += len(learned)
            if len(last):
                counts.since_label = len(learned) - 1 - int(last[0])
        for part in parts:
            counts.records += len(part.records.offsets)
            counts.tombstones += part.tombstones
            counts.invalid += len(part.invalid)
        return unlabeled

    def _report(self, polled: Polled, invalid: Sequence[InvalidRecord]) -> None:
        """Log anything unusual."""
        self.label_monitor.check_run(self.counts.since_label, self.event_reader.decoder)
        self.label_monitor.check_joined(self.event_reader.unjoined)
        self.label_monitor.check_spelling(self.event_reader.labels)
        self.label_monitor.check_positive(self.event_reader.labels)
        for absent in self.event_reader.absent:
            self.label_monitor.check_absent(absent)
        for _, name in self.learners.best_changes():
            self.log.info("best learner changed", name=name, by=self.learners.best_by)
        reader = self.learners.reader
        if isinstance(reader, Names) and reader.full and not self.logged_full:
            self.logged_full = True
            self.log.warning(
                "feature table full", names=reader.size, bytes=reader.bytes_used,
                on_full=reader.on_full,
            )  # fmt: skip
        self.report_diverged()
        self._report_invalid(polled, invalid)

    def report_diverged(self) -> None:
        """Log learners that have skipped events."""
        for learner in self.learners:
            if learner.diverged:
                self.log.rate_limited(
                    f"diverged {learner.name}", "error", "learner diverged", learner=learner.name,
                    events=learner.diverged, remedy="use a smaller step size or scale the features",
                )  # fmt: skip

    def _report_invalid(self, polled: Polled, invalid: Sequence[InvalidRecord]) -> None:
        """Log the first invalid record of a batch, and stop at too many of them."""
        if invalid:
            bad = invalid[0]
            where, offset, _ = self._place(polled, bad.number)
            self.log.rate_limited(
                "invalid", "warning", "invalid record", topic=where.topic, partition=where.number,
                offset=offset, code=bad.code, field=bad.field, reason=bad.reason,
                in_batch=len(invalid),
            )  # fmt: skip
        too_many = self.invalid_limit.add([bad.number for bad in invalid], len(polled))
        if too_many is not None:
            limit = self.invalid_limit
            where, offset, end = self._place(polled, too_many)
            last = next(bad.reason for bad in reversed(invalid) if bad.number <= too_many)
            raise Stop(
                Exit.INVALID_RECORDS,
                f"too many invalid records up to {where.topic}:{where.number}:{offset}: more than "
                f"{limit.ratio:.1%} of the last {limit.window} (most recent: "
                f"{last}). --skip-to {where.topic}:{where.number}:{end} resumes after them, and "
                "also skips the valid records since the last checkpoint",
            )

    @staticmethod
    def _place(polled: Polled, number: int) -> tuple[Partition, int, int]:
        """Return a record's partition and offset, and the end position of its poll."""
        [k], [i] = polled.find(np.array([number]))
        records = polled.records[k]
        return records.partition, records.offsets[i], records.end

    def notify(
        self, method: Callable[Concatenate[Observer, P], None], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Call a method of every observer; log and drop an observer that fails."""
        for observer in list(self.observers):
            try:
                getattr(observer, method.__name__)(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - an observer must not stop the learning
                self.drop_observer(observer, method.__name__, error)

    # -- the checkpoint ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Copy the whole state for a checkpoint, between two batches."""
        learners = self.learners
        return {
            "positions": [[*where, position] for where, position in self.positions.items()],
            "counts": {name: getattr(self.counts, name) for name in Counts.__slots__},
            **self.event_reader.state(),
            "invalid_limit": self.invalid_limit.state(),
            "features": {"state": learners.reader.state()},
            "learners": {learner.name: learner.state() for learner in learners},
            "choice": None if learners.choice is None else learners.choice.state(),
            "observers": self.observer_states(),
        }

    def restore(self, state: Mapping[str, Any], *, resumed: Sequence[str], features: bool) -> None:
        """Restore the `resumed` learners, and the features if `features`; the rest starts fresh."""
        self.positions = {Partition(topic, n): at for topic, n, at in state["positions"]}
        self.counts = Counts(**state["counts"])
        self.invalid_limit.restore(state["invalid_limit"])
        if features:
            reader = self.learners.reader
            # fields may be added and dropped, see `checkpointing.field_changes`
            saved = {**state["features"]["state"], "fields": reader.fields.texts}
            if isinstance(reader, Names):  # a full table stays full, but its limit may change
                saved = {**saved, "max_bytes": reader.max_bytes}
            reader.restore(saved)
            self.event_reader.restore(state)
        for name in resumed:
            self.learners[name].restore(state["learners"][name], self.learners.reader)
        if self.learners.choice is not None and state["choice"] is not None:
            self.learners.choice.restore(state["choice"])
        for observer in self.observers:
            if observer.name in state["observers"]:
                self.restore_observer(observer, state["observers"][observer.name])

    def observer_states(self) -> dict[str, Any]:
        """Collect the states of the observers."""
        found = {}
        for observer in list(self.observers):
            try:
                if observer.name:
                    found[observer.name] = observer.state()
            except Exception as error:  # noqa: BLE001 - an observer must not stop the learning
                self.drop_observer(observer, "state", error)
        return found

    def drop_observer(self, observer: Observer, method: str, error: Exception) -> None:
        """Log an observer that failed, and stop calling it."""
        self.observers.remove(observer)
        name = type(observer).__name__
        self.log.error("observer failed", name=name, method=method, error=repr(error))

    def restore_observer(self, observer: Observer, state: Any) -> None:
        """Restore the state of an observer, which starts fresh if that fails."""
        try:
            observer.restore(state)
        except Exception as error:  # noqa: BLE001 - possibly another version
            self.log.warning(
                "observer state discarded", name=type(observer).__name__, error=repr(error)
            )
