"""Workers without Ray and Kafka: what they learn, and what the owner's pipeline makes of it."""

from __future__ import annotations

import io
import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.collectors.audit import Audit
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.status import Status
from streamlearn.estimators import model_file
from streamlearn.fleet import remote_worker
from streamlearn.fleet.instructions import Instructions, prepare
from streamlearn.fleet.remote_reader import RemoteReader
from streamlearn.fleet.remote_worker import Base, Failed, RemoteWorker, WorkerInstructions
from streamlearn.fleet.round_pipeline import Round, RoundPipeline, base_state
from streamlearn.fleet.rounds import Delta, Rounds, Task
from streamlearn.kafka.reader import OutOfRangeError
from streamlearn.rules import BaseRate
from streamlearn.serving import Snapshot
from streamlearn.serving.publisher import Publisher
from streamlearn.stream import Fields, Partition, Records
from tests.support.streams import event

if TYPE_CHECKING:
    from pathlib import Path

LENGTH = 300
WHERE = [Partition("clicks", k) for k in range(4)]
CONFIG = """
[source]
kind = "kafka"
bootstrap = "localhost:9092"
topics = ["clicks"]
batch = 50

[format]
label = "click"
weight = "w"
labels = [false, true]

[features]
kind = "hashing"
bits = 8

[[learner]]
name = "default"

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"
penalty = "L1(1e-3)"

[checkpoint]
path = "models"

[dead_letters]
max_invalid_ratio = {ratio}

[telemetry]
port = 0

[regret]
enabled = false

[fleet]
workers = 3
"""


def settings(ratio: float = 0.5) -> config.Config:
    return config.parse(CONFIG.format(ratio=ratio), "test", {}, environ={})


class MadeUpReader:
    """A reader of made-up logs; asserts that positions are handed over without gaps."""

    def __init__(self, garbage: float = 0.0) -> None:
        self.at: dict[Partition, int] = {}
        self.garbage = garbage
        self.gap: Partition | None = None

    def assign(self, positions: dict[Partition, int]) -> None:
        assert not positions.keys() & self.at.keys()
        self.at.update(positions)

    def drop(self, partitions: list[Partition]) -> None:
        for where in partitions:
            del self.at[where]

    def poll(self, seconds: float, most: int) -> list[Records]:
        assert seconds > 0.0
        if self.gap in self.at:
            raise OutOfRangeError(self.gap, "gone")
        found = []
        for where, start in self.at.items():
            end = min(start + most, LENGTH)
            values = [event(where.number, i, garbage=self.garbage) for i in range(start, end)]
            epochs = [7] * (end - start)
            found.append(Records(where, range(start, end), values, end, epochs=epochs))
            self.at[where] = end
        return [one for one in found if one.values]

    def highwater(self, partition: Partition) -> int:
        del partition
        return LENGTH


def make_pipeline(observers: list[Any] | None = None) -> Any:
    given = settings()
    learners, events = prepare(WorkerInstructions(given, 1 << 16))
    log = Log("json", stream=io.StringIO())
    made = build.pipeline(
        given, events, learners, (None, None), log, observers or [], RoundPipeline
    )
    for learner in learners:
        learner.model.know_labels(events.labels.labels)
    return made


def make_worker(
    monkeypatch: pytest.MonkeyPatch, garbage: float = 0.0, ratio: float = 0.5
) -> tuple[RemoteWorker, MadeUpReader]:
    reader = MadeUpReader(garbage)
    monkeypatch.setattr(remote_worker, "connect", lambda _: reader)
    worker = RemoteWorker()
    assert worker.start(WorkerInstructions(settings(ratio), 1 << 16)) is None
    return worker, reader


def models_of(pipeline: Any) -> bytes:
    states = {one.name: one.model.state(features=False) for one in pipeline.learners}
    return b"".join(map(bytes, model_file.pieces(states)))


def learn_round(
    pipeline: Any, workers: list[RemoteWorker], rounds: Rounds, base: Base, goals: dict[Any, int]
) -> Base:
    """One round, and the base of the next."""
    for worker, task in zip(workers, rounds.tasks(len(workers)), strict=True):
        delta = worker.learn(task, base, goals, 60.0)
        assert isinstance(delta, Delta), delta
        assert rounds.offer(delta) is None
    merged = Round(rounds.finish())
    pipeline.process(merged)
    return Base(rounds.base, base.id, merged.moved)


def test_one_worker_learns_what_the_daemon_would_to_the_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone, owner = make_pipeline(), make_pipeline()
    reader = MadeUpReader()
    reader.assign(dict.fromkeys(WHERE, 0))
    for number in itertools.count():
        records = reader.poll(1.0, 50)
        if not records:
            break
        alone.process(records)
        if number < 2:
            owner.process(records)
    worker, _ = make_worker(monkeypatch)
    rounds = Rounds(1, owner.positions)
    base = Base(rounds.base, None, base_state(owner))
    learn_round(owner, [worker], rounds, base, dict.fromkeys(WHERE, LENGTH))
    assert models_of(owner) == models_of(alone)
    assert owner.positions == alone.positions == dict.fromkeys(WHERE, LENGTH)
    assert owner.counts == alone.counts
    for learner in alone.learners:
        other = owner.learners[learner.name]
        assert (other.learned, other.diverged) == (learner.learned, learner.diverged)
        assert other.progress["loss"].count == learner.progress["loss"].count
        assert other.progress["loss"].mean == pytest.approx(learner.progress["loss"].mean)
        assert other.progress["error"].recent == pytest.approx(learner.progress["error"].recent)


def test_several_workers_count_every_event_once_and_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = TelemetryCollector(settings(), Log("json", stream=io.StringIO()), serve=False)
    audit = Audit()
    owner = make_pipeline([audit, telemetry])
    telemetry.counts.start(owner.learners)
    telemetry.quality.start(owner.learners)
    workers = [make_worker(monkeypatch, garbage=0.05)[0] for _ in range(3)]
    rounds = Rounds(1, dict.fromkeys(WHERE, 0))
    base = Base(rounds.base, None, base_state(owner))
    for goal in (100, LENGTH):
        base = learn_round(owner, workers, rounds, base, dict.fromkeys(WHERE, goal))
    assert owner.positions == dict.fromkeys(WHERE, LENGTH)
    alone, reader = make_pipeline(), MadeUpReader(garbage=0.05)
    reader.assign(dict.fromkeys(WHERE, 0))
    while records := reader.poll(1.0, 50):
        alone.process(records)
    assert owner.counts.records == alone.counts.records == 4 * LENGTH
    for name in ("events", "learned", "unlabeled", "tombstones", "invalid"):
        assert getattr(owner.counts, name) == getattr(alone.counts, name)
    progress = owner.learners["default"].progress["loss"]
    assert progress.count == alone.counts.learned
    assert progress.mean < 1.05 * alone.learners["default"].progress["loss"].mean
    rates = [mass_of(one.learners["default"].model) for one in (owner, alone)]
    assert rates[0] == rates[1]  # sums of labels and of weights, counted by the model itself
    board = telemetry.board
    telemetry.counts.flush(owner.learners)
    polled = board.values("events_polled_total")
    assert sum(polled.values()) == 4 * LENGTH
    assert sum(board.values("invalid_records_total").values()) == owner.counts.invalid
    shown = board.invalid_records[-1]
    assert event(shown.partition, shown.offset, garbage=0.05) != event(
        shown.partition, shown.offset
    )
    scores, positive, weights = telemetry.quality.recent["default"].window()
    assert len(scores) == len(weights) > 100
    assert 0 < np.count_nonzero(positive) < len(scores)
    assert {(one.partition, one.end) for one in audit.ranges} >= {(k, LENGTH) for k in range(4)}


def test_the_merged_model_is_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = Log("json", stream=io.StringIO())
    publisher = Publisher(tmp_path, config.ServeConfig(every_seconds=1e9), Fields(), log)
    owner = make_pipeline([publisher])
    publisher.on_start(owner.learners, Status(epoch=1))
    workers = [make_worker(monkeypatch)[0] for _ in range(2)]
    rounds = Rounds(1, dict.fromkeys(WHERE, 0))
    base = Base(rounds.base, None, base_state(owner))
    learn_round(owner, workers, rounds, base, dict.fromkeys(WHERE, LENGTH))
    publisher.on_end()
    learner = owner.learners["default"]
    assert learner.learned > 0
    assert Snapshot(tmp_path, "default").version.events == learner.learned


def mass_of(model: Any) -> tuple[float, float]:
    """The sums of labels and of weights in the base rate of a mixture."""
    [member] = [one for one in model.rules[0].members if isinstance(one, BaseRate)]
    return member.labels, member.mass


def test_changes_of_the_base_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = make_pipeline()
    (worker, _), (other, _) = make_worker(monkeypatch), make_worker(monkeypatch)
    rounds = Rounds(1, dict.fromkeys(WHERE, 0))
    base = Base(rounds.base, None, base_state(owner))
    change = learn_round(owner, [worker, other], rounds, base, dict.fromkeys(WHERE, 100))
    first, second = rounds.tasks(2)
    goals = dict.fromkeys(WHERE, 200)
    by_change = worker.learn(first, change, goals, 60.0)
    whole, _ = make_worker(monkeypatch)
    by_whole = whole.learn(first, Base(change.id, None, base_state(owner)), goals, 60.0)
    assert bits_of(by_change) == bits_of(by_whole)
    failed = other.learn(second, None, goals, 60.0)  # it has the base before
    assert isinstance(failed, Failed)
    assert "base" in str(failed.error)


def bits_of(delta: Any) -> bytes:
    """What a worker has learned in its round."""
    return b"".join(
        model_file.pack([move.size, move.places(), *move.rows, move.scalars])
        for learned in delta.learned.moves.values()
        for move in learned.rules
    )


def test_a_round_tells_how_long_it_was_and_how_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = make_pipeline()
    worker, reader = make_worker(monkeypatch)
    now, batches = 0.0, 0
    poll, process = reader.poll, worker._pipeline.process

    def slow_poll(seconds: float, most: int) -> list[Records]:
        nonlocal now
        now += 0.001
        return poll(seconds, most)

    def slow_process(records: list[Records]) -> None:
        nonlocal now, batches
        now, batches = now + 0.003, batches + 1
        process(records)

    monkeypatch.setattr(remote_worker, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(reader, "poll", slow_poll)
    monkeypatch.setattr(worker._pipeline, "process", slow_process)
    rounds = Rounds(1, dict.fromkeys(WHERE, 0))
    base = Base(rounds.base, None, base_state(owner))
    for seconds, batches_read in ((0.02, 5), (0.03, 1), (0.0, 0)):  # the records end in the second
        batches, began = 0, now
        [task] = rounds.tasks(1)
        delta = worker.learn(task, base, {}, seconds)
        assert isinstance(delta, Delta), delta
        assert batches == batches_read
        assert delta.learned.seconds == pytest.approx(now - began)
        assert now - began == pytest.approx(seconds, abs=0.004)
        assert delta.learned.busy * (now - began) == pytest.approx(0.003 * batches)
        assert rounds.offer(delta) is None
        if deltas := rounds.finish():
            merged = Round(deltas)
            owner.process(merged)
            base = Base(rounds.base, base.id, merged.moved)


def test_a_round_begins_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = make_pipeline()
    worker, reader = make_worker(monkeypatch)
    base = Base(Rounds(1, {}).base, None, base_state(owner))
    goals = dict.fromkeys(WHERE, 100)
    for starts in ({WHERE[0]: 0}, {WHERE[0]: 50, WHERE[1]: 20}, {WHERE[2]: 0}, {}):
        [task] = Rounds(1, starts).tasks(1) or [Task(base.id, 0, 1, {})]
        delta = worker.learn(task, base, goals, 0.01)
        assert isinstance(delta, Delta)
        assert delta.starts == starts
        assert dict(delta.ends).keys() == starts.keys() == reader.at.keys()
        assert delta.learned.counts.records == sum(delta.ends[w] - at for w, at in starts.items())


def test_errors_are_returned_and_the_next_round_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = make_pipeline()
    worker, reader = make_worker(monkeypatch)
    rounds = Rounds(1, {WHERE[0]: 0})
    base = Base(rounds.base, None, base_state(owner))
    [task] = rounds.tasks(1)
    reader.gap = WHERE[0]
    failed = worker.learn(task, base, {}, 60.0)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, OutOfRangeError)
    reader.gap = None
    assert isinstance(worker.learn(task, None, {WHERE[0]: 10}, 60.0), Delta)


def test_too_many_invalid_records_stop_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = make_pipeline()
    worker, _ = make_worker(monkeypatch, garbage=0.9, ratio=0.1)
    rounds = Rounds(1, dict.fromkeys(WHERE, 0))
    [task] = rounds.tasks(1)
    failed = worker.learn(task, Base(rounds.base, None, base_state(owner)), {}, 60.0)
    assert isinstance(failed, Failed)
    assert failed.code == Exit.INVALID_RECORDS


def test_a_label_that_is_not_known_is_an_invalid_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in one process, once the labels are closed: models of all workers keep their labels."""
    owner = make_pipeline()
    worker, reader = make_worker(monkeypatch)
    made = reader.poll

    def poll(seconds: float, most: int) -> list[Records]:
        found = made(seconds, most)
        for one in found:
            values = [*one.values[:-1], b'{"user": "ann", "click": "maybe"}']
            found[found.index(one)] = Records(one.partition, one.offsets, values, one.end)
        return found

    monkeypatch.setattr(reader, "poll", poll)
    rounds = Rounds(1, {WHERE[0]: 0})
    base = Base(rounds.base, None, base_state(owner))
    learn_round(owner, [worker], rounds, base, {WHERE[0]: 100})
    assert owner.counts.invalid == 2  # one in each batch of 50
    assert owner.positions == {WHERE[0]: 100}
    assert owner.learners["default"].model.labels == [False, True]


def test_a_partition_without_records_does_not_move(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = make_pipeline()
    workers = [make_worker(monkeypatch)[0] for _ in range(2)]
    rounds = Rounds(1, {WHERE[0]: LENGTH, WHERE[1]: 0})  # the first one is at its end
    base = Base(rounds.base, None, base_state(owner))
    deltas = [
        worker.learn(task, base, {WHERE[1]: LENGTH}, seconds)
        for worker, task, seconds in zip(workers, rounds.tasks(2), (0.1, 60.0), strict=True)
    ]
    assert [rounds.offer(delta) for delta in deltas if isinstance(delta, Delta)] == [None, None]
    found = rounds.finish()
    assert [delta.rank for delta in found] == [1]
    owner.process(Round(found))
    assert owner.counts.records == LENGTH
    assert rounds.positions == {WHERE[0]: LENGTH, WHERE[1]: LENGTH}


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamlearn, "__version__", "0.0")
    failed = RemoteWorker().start(WorkerInstructions(settings(), 1 << 16))
    assert isinstance(failed, Failed)
    assert "same version" in str(failed.error)
    refused = RemoteReader().start(Instructions(settings(), 1 << 16))
    assert "same version" in str(refused.error)
