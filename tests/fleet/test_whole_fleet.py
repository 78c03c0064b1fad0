"""Whole daemons with readers and workers in this process, over a cluster in memory.

Only Ray and the brokers are stand-ins: tests/broker runs the same over real ones.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.collectors.audit import VARIABLE as AUDIT
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.status import Status
from streamlearn.estimators import checkpoints, model_file
from streamlearn.fleet import actor_pool, reader_pool, remote_worker, worker_pool
from streamlearn.fleet import build as fleet
from streamlearn.fleet.collector import WorkerCollector
from streamlearn.fleet.instructions import Instructions
from streamlearn.fleet.packed_batch import Wanted
from streamlearn.fleet.remote_reader import RemoteReader
from streamlearn.fleet.remote_worker import RemoteWorker, WorkerInstructions
from streamlearn.kafka import verification
from streamlearn.stream import Partition
from tests.fleet.fake_ray import FakeRay
from tests.support.delayed_streams import CLICKS, HOLD, SHOWN, topics
from tests.support.memory_kafka import CONTROL, MemoryCluster
from tests.support.streams import event, learnable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlearn.daemon.batch import Batch

PARTITIONS, LENGTH = 3, 600
CONFIG = """
[source]
kind = "kafka"
bootstrap = "localhost:9092"
topics = ["{topic}"]
order = "time"
batch = 40

[format]
label = "click"
weight = "w"
id = "id"
labels = [false, true]
{format}

[features]
kind = "hashing"
bits = 10

[[learner]]
name = "default"

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"
penalty = "L1(1e-3)"

[predictions]
topic = "predictions"

[dead_letters]
topic = "letters"
max_invalid_ratio = 0.5

[checkpoint]
path = "{path}"
every_events = 500
transactions = false

[telemetry]
port = 0
show_invalid_records = true

[log]
format = "json"

[run]
until = "end"

{more}
"""


class CopyingRay(FakeRay):
    """Values are copied on their way, as between processes; time passes with every poll."""

    def put(self, value: Any) -> Any:
        if isinstance(value, Instructions):
            self.told = value
        return self.sent(value)

    def sent(self, value: Any) -> Any:
        return pickle.loads(pickle.dumps(value, protocol=5))

    def attach(self, monkeypatch: pytest.MonkeyPatch, cluster: MemoryCluster) -> None:
        """Let the processes of a fleet be started here."""
        clock = SimpleNamespace(monotonic=self.clock, sleep=self.sleep, time=time.time)
        for module in (actor_pool, reader_pool, remote_worker, worker_pool):
            monkeypatch.setattr(module, "time", clock, raising=False)
        monkeypatch.setattr(actor_pool, "connected", self.connected)
        monkeypatch.setattr(actor_pool, "answers", lambda _: True)
        cluster.on_poll = lambda: self.sleep(0.05)


class Ran:
    """A daemon that has run to the end."""

    def __init__(
        self, directory: Path, cluster: MemoryCluster, text: str, topic: str, *observers: Any
    ) -> None:
        given = text.format(topic=topic, path=directory / "models")
        self.settings = config.parse(given, "test", {}, environ={})
        self.stream, self.models = io.StringIO(), directory / "models"
        log = Log("json", "debug", stream=self.stream)
        self.team = fleet.team(self.settings, log)
        self.loop = build.loop(
            self.settings, log, connect=fleet.connect(self.settings, log), team=self.team
        )
        for one in observers:
            one.pipeline = self.loop.pipeline
        self.loop.pipeline.observers += observers
        self.code = self.loop.run()
        found = checkpoints.newest(self.models)
        assert found is not None
        self.data: dict[str, Any] = found[1]
        self.predictions = cluster.read("predictions")
        letters = map(without_time, cluster.read("letters"))
        self.letters = sorted(letters, key=lambda one: one[2])  # by topic, partition and offset

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of an event."""
        lines = map(json.loads, self.stream.getvalue().splitlines())
        return [line for line in lines if line["event"] == event]

    def telemetry(self) -> TelemetryCollector:
        """Return what collects for the page and for Prometheus."""
        [found] = [o for o in self.loop.pipeline.observers if isinstance(o, TelemetryCollector)]
        return found


def without_time(letter: Any) -> Any:
    """A dead letter, but for the time at which it was written."""
    headers = [one for one in letter.headers if one[0] != "streamlearn.time"]
    assert len(headers) == len(letter.headers) - 1
    return letter.value, letter.key, headers


def events(garbage: float) -> MemoryCluster:
    """The made-up events of some partitions."""
    cluster = with_outputs()
    cluster.create("clicks", PARTITIONS)
    for k in range(PARTITIONS):
        values = [event(k, i, garbage=garbage) for i in range(LENGTH)]
        cluster.write("clicks", values, k)
    return cluster


def delayed() -> MemoryCluster:
    """Impressions, and labels that come later."""
    cluster = with_outputs()
    for name, log in topics(1500).items():
        cluster.create(name)
        times = [1_000_000 + round(1000.0 * time) for time, _ in log]
        cluster.write(name, [value for _, value in log], times=times)
    return cluster


def with_outputs() -> MemoryCluster:
    cluster = MemoryCluster()
    cluster.create("predictions", 2)
    cluster.create("letters")
    return cluster


FORMAT: dict[str, str] = {"topic": "{topic}", "path": "{path}"}
PLAIN = CONFIG.format(format="", more="{more}", **FORMAT)
LATE = CONFIG.format(
    format='time = "time"',
    more=f"""
[labels]
topic = "{CLICKS}"
hold_events = {HOLD["hold_events"]}
hold_for = {HOLD["hold_for"]}
on_timeout = false
orphans = true
{{more}}
""",
    **FORMAT,
)
WORKERS = PLAIN.replace('order = "time"', "").replace(
    "{more}",
    """
[fleet]
workers = 2
round_seconds = 0.3
warm_events = 200
deadline_seconds = 7.0

[regret]
enabled = true
""",
)
STREAMS: dict[str, tuple[Callable[[], MemoryCluster], str, str]] = {
    "events": (lambda: events(0.02), PLAIN, "clicks"),
    "delayed labels": (delayed, LATE, SHOWN),
}


@pytest.mark.parametrize("name", STREAMS)
def test_with_readers_all_is_as_in_one_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    make, text, topic = STREAMS[name]
    found = []
    for readers in (0, 2):
        cluster = make()
        cluster.install(monkeypatch)
        ray = CopyingRay(random.Random(1), RemoteReader, faults=False)
        ray.attach(monkeypatch, cluster)
        more = f"[fleet]\nreaders = {readers}\n" if readers else ""
        ran = Ran(tmp_path / str(readers), cluster, text.replace("{more}", more), topic)
        assert ran.code == Exit.OK, ran.stream.getvalue()
        assert len(ran.logged("readers started")) == (readers > 0)
        if readers:
            assert ray.told.fetch_bytes == (64 << 20) // readers
            assert ray.told.wanted == Wanted(keys=True, everything=name != "events")
        learners = {
            name: {kept: one[kept] for kept in ("model", "progress", "learned")}
            for name, one in ran.data["learners"].items()
        }
        names = ("counts", "labels", "decoder", "positions")
        kept = {key: ran.data[key] for key in names if key in ran.data}
        state = model_file.pack(kept | {"learners": learners})
        found.append((ran.predictions, ran.letters, ran.data["counts"], state))
        assert cluster.committed == {Partition(*at[:2]): at[2] for at in ran.data["positions"]}
    for plain, fleets in zip(*found, strict=True):
        assert plain == fleets
    assert len(found[0][0]) > 1000
    assert len(found[0][1]) > 3


class Recording(RemoteWorker):
    """A worker whose answers are kept, with the seconds of their rounds."""

    def __init__(self, answers: dict[str, list[tuple[float, Any]]]) -> None:
        super().__init__()
        self.answers = answers.setdefault(str(len(answers)), [])

    def learn(self, task: Any, base: Any, goals: Any, seconds: float) -> Any:
        answer = super().learn(task, base, goals, seconds)
        self.answers.append((seconds, answer))
        return answer


class WorkersOnBoard(Observer):
    """After each round, the metrics of workers are those of their answers."""

    def __init__(self, answers: dict[str, list[tuple[float, Any]]]) -> None:
        self.answers, self.seen = answers, 0
        self.pipeline: Any = None

    def on_batch(self, batch: Batch) -> None:
        del batch
        [collector] = [o for o in self.pipeline.observers if isinstance(o, WorkerCollector)]
        rounds, board = collector.pool().rounds, collector.board
        if rounds is None:
            return
        before = board.value("rounds_merged_total")
        collector.on_tick(Status("standby", epoch=1))
        assert board.value("rounds_merged_total") == before
        collector.on_tick(Status("active", epoch=1))
        deltas = {number: answers[-1][1] for number, answers in self.answers.items()}
        learned = {number: delta.learned for number, delta in deltas.items()}
        lag = {n: sum(LENGTH - end for end in one.ends.values()) for n, one in deltas.items()}
        for name, values in {
            "worker_partitions": {n: len(one.starts) for n, one in deltas.items()},
            "worker_lag_events": lag,
            "worker_events_per_second": {
                n: one.counts.events / one.seconds for n, one in learned.items()
            },
        }.items():
            assert board.values(name) == {(n,): value for n, value in values.items()}, name
        assert board.value("rounds_merged_total") == rounds.base.number == self.seen + 1
        moves = [move for one in learned.values() for move in one.moves.values()]
        assert board.value("round_bytes") == sum(move.nbytes for move in moves) > 0
        took = board.value("round_merge_seconds")
        assert took is None if self.seen == 0 else 0.0 < (took or 0.0) < 60.0
        self.seen += 1


def test_workers_learn_every_record_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(AUDIT, "1")
    monkeypatch.setattr(verification, "PACE_SECONDS", 0.0)
    cluster = events(0.02)
    cluster.install(monkeypatch)
    answers: dict[str, list[tuple[float, Any]]] = {}
    ray = CopyingRay(random.Random(1), lambda: Recording(answers), faults=False)
    ray.attach(monkeypatch, cluster)
    board = WorkersOnBoard(answers)
    ran = Ran(tmp_path, cluster, WORKERS, "clicks", board)
    assert ran.code == Exit.OK, ran.stream.getvalue()
    assert board.seen > 2
    assert ray.told == WorkerInstructions(ray.told.settings, (64 << 20) // 2, flush_seconds=7.0)
    assert ray.told.settings == msgspec.structs.replace(ran.settings, fleet=config.FleetConfig())
    [line] = ran.logged("workers learn")
    assert (line["workers"], line["partitions"]) == (2, PARTITIONS)
    assert {seconds for own in answers.values() for seconds, _ in own} == {0.3}
    assert_learned_once(ran, LENGTH)
    records = {(k, i): event(k, i, garbage=0.02) for k in range(PARTITIONS) for i in range(LENGTH)}
    counts = ran.data["counts"]
    assert_outputs(ran, records)
    shown = ran.telemetry().board
    assert shown.value("polled_bytes_total", "clicks") == sum(
        len(one or b"") for one in records.values()
    )
    assert sum(shown.values("invalid_records_total").values()) == counts["invalid"]
    for one in shown.invalid_records:
        value = records[one.partition, one.offset]
        assert one.payload == (None if value is None else value.decode(errors="replace"))
    assert ran.data["source"] == {
        "cluster": "memory",
        "topic clicks": cluster.ids["clicks"],
        **{
            f"epoch clicks/{k}": f"{cluster.epoch + LENGTH - 1} {LENGTH - 1} {LENGTH}"
            for k in range(PARTITIONS)
        },
    }


def assert_learned_once(ran: Ran, length: int) -> None:
    """By the ranges that were merged, and by what each part of the daemon has counted itself."""
    data = ran.data
    ends = dict.fromkeys(range(PARTITIONS), 0)  # each range begins where the one before ended
    for _, number, start, end in data["observers"]["audit"]:
        assert ends[number] == start
        ends[number] = end
    assert set(ends.values()) == {length}
    examples = [
        example
        for k in range(PARTITIONS)
        for i in range(length)
        if (example := learnable(k, i, garbage=0.02)) is not None
    ]
    weights = [weight for _, _, weight in examples]
    labels = [weight if label else -weight for _, label, weight in examples]
    assert data["counts"]["records"] == PARTITIONS * length
    assert data["counts"]["learned"] == len(examples)
    model: Any = sl.LinearClassifier.load(ran.models, learner="default").rules[0]
    [rate] = [one for one in model.members if isinstance(one, sl.rules.BaseRate)]
    assert (rate.mass, rate.labels) == (sum(weights), sum(labels))
    for learner in data["learners"].values():
        assert learner["learned"] == len(examples)
        assert learner["progress"]["loss"]["weight"] == sum(weights)
    for ledger in data["observers"]["regret"]["learners"].values():
        sums, pending = ledger["sums"], ledger["sums"]["pending"]
        assert sums["events"] + len(pending) == len(examples)
        assert sums["weight"] + sum(weight for _, _, weight, *_ in pending) == sum(weights)
    [sample] = data["observers"]["regret"]["samples"]
    assert sum(sample["rows"]) == len(examples)


def assert_outputs(ran: Ran, records: dict[tuple[int, int], bytes | None]) -> None:
    """A prediction for each event, a letter for each invalid record; they name where it was."""
    counts = ran.data["counts"]
    headers: list[dict[str, Any]] = [dict(one.headers) for one in ran.predictions]
    predicted = [(int(one["partition"]), int(one["offset"])) for one in headers]
    refused: list[dict[str, Any]] = [dict(one[2]) for one in ran.letters]
    letters = [
        (int(one["streamlearn.partition"]), int(one["streamlearn.offset"])) for one in refused
    ]
    removed = [where for where, value in records.items() if value is None]
    assert sorted([*predicted, *letters, *removed]) == sorted(records)
    assert (len(predicted), len(letters), len(removed)) == (
        counts["events"], counts["invalid"], counts["tombstones"],
    )  # fmt: skip
    assert [one[0] for one in ran.letters] == [records[where] for where in letters]
    rounds = {int(one["round"]) for one in headers if "round" in one}
    assert rounds == set(range(len(rounds)))
    assert len(rounds) > 2
    assert any("round" not in one for one in headers)  # the daemon predicts the first ones
    assert 0 < sum("streamlearn.round" in one for one in refused) < len(refused) + 1


def test_workers_resume_where_the_checkpoint_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(AUDIT, "1")
    monkeypatch.setattr(verification, "PACE_SECONDS", 0.0)
    cluster = events(0.02)
    cluster.install(monkeypatch)
    ray = CopyingRay(random.Random(1), RemoteWorker, faults=False)
    ray.attach(monkeypatch, cluster)
    for length in (LENGTH, LENGTH + 200):
        for k in range(PARTITIONS):
            cluster.write("clicks", [event(k, i, garbage=0.02) for i in range(LENGTH, length)], k)
        ran = Ran(tmp_path, cluster, WORKERS, "clicks")
        assert ran.code == Exit.OK, ran.stream.getvalue()
        assert_learned_once(ran, length)
    cluster.ids["clicks"] = "another"
    assert Ran(tmp_path, cluster, WORKERS, "clicks").code == Exit.SOURCE_CHANGED


def test_a_topic_that_is_created_again_ends_the_rounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(verification, "PACE_SECONDS", 0.0)
    cluster = events(0.02)
    cluster.install(monkeypatch)

    class Late(RemoteWorker):
        def learn(self, task: Any, base: Any, goals: Any, seconds: float) -> Any:
            answer = super().learn(task, base, goals, seconds)
            if task.base.number == 2:
                cluster.ids["clicks"] = "another"
            return answer

    ray = CopyingRay(random.Random(1), Late, faults=False)
    ray.attach(monkeypatch, cluster)
    ran = Ran(tmp_path, cluster, WORKERS, "clicks")
    assert ran.code == Exit.SOURCE_CHANGED
    assert ran.team is not None
    rounds = ran.team.started_pool().rounds
    assert rounds is not None
    assert rounds.base.number == 2  # nothing that may be of the other topic was merged
    assert sum(at[2] for at in ran.data["positions"]) == ran.data["counts"]["records"]


def test_workers_end_behind_markers_of_transactions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = events(0.02)
    cluster.install(monkeypatch)
    monkeypatch.setenv(AUDIT, "1")
    monkeypatch.setattr(verification, "PACE_SECONDS", 0.0)
    ray = CopyingRay(random.Random(1), RemoteWorker, faults=False)
    ray.attach(monkeypatch, cluster)
    for k in range(PARTITIONS):
        cluster.write("clicks", [CONTROL] * (k + 1), k)
    ran = Ran(tmp_path, cluster, WORKERS, "clicks")
    assert ran.code == Exit.OK, ran.stream.getvalue()
    assert {at[1]: at[2] - LENGTH for at in ran.data["positions"]} == {0: 1, 1: 2, 2: 3}
    assert ran.data["counts"]["records"] == PARTITIONS * LENGTH
    assert set(ran.loop.status.lag.values()) == {0}
