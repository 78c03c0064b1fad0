"""The pool of workers: what it hands out is learned once, whatever workers and Ray do."""

from __future__ import annotations

import io
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.daemon.process.log import Log
from streamlearn.errors import FleetError, SinkError, SourceError, SourceUnreachableError
from streamlearn.fleet import actor_pool
from streamlearn.fleet.remote_worker import Base, Failed
from streamlearn.fleet.rounds import Delta, Task
from streamlearn.fleet.worker_pool import WorkerPool
from streamlearn.stream import Partition
from tests.fleet.fake_ray import FakeRay, RayError, logged, logged_replacements
from tests.fleet.simulated_fleet import CELLS, CellMoves, applied, difference, learn

LENGTH = 400
TOLD: Any = SimpleNamespace()


class LocalReader:
    """A reader of nothing."""

    def __init__(self) -> None:
        self.positions: dict[Partition, int] = {}

    def assign(self, positions: dict[Partition, int]) -> None:
        self.positions.update(positions)

    def drop(self, partitions: list[Partition]) -> None:
        for where in partitions:
            del self.positions[where]

    def highwater(self, partition: Partition) -> int:
        del partition
        return LENGTH

    def poll(self, seconds: float, most: int) -> list[Any]:
        del seconds, most
        return []

    def close(self) -> None:
        pass


class FakeWorker:
    """A `RemoteWorker` of made-up logs."""

    def __init__(self, draw: random.Random, answer: Any = None) -> None:
        self.draw = draw
        self.answer = answer
        self.base: Base | None = None
        self.whole = 0
        self.asked: list[float] = []

    def start(self, told: Any) -> Failed | None:
        return told if isinstance(told, Failed) else None

    def learn(self, task: Task, base: Base | None, goals: Any, seconds: float) -> Any:
        del goals
        self.asked.append(seconds)
        if base is not None and base.since is None:
            self.base, self.whole = base, self.whole + 1
        elif base is not None:
            assert self.base is not None
            assert self.base.id == base.since
            cells = applied(self.base.state["cells"], base.state["cells"])
            self.base = Base(base.id, None, {"cells": cells})
        if self.answer is not None:
            return self.answer
        assert self.base is not None
        assert self.base.id == task.base
        cells, ends = self.base.state["cells"].copy(), {}
        for where, start in task.starts.items():
            ends[where] = min(start + self.draw.randint(0, 20), LENGTH)
            learn(cells, where, start, ends[where])
        moves = {"cells": difference(self.base.state["cells"], cells)}
        read = sum(ends[where] - start for where, start in task.starts.items())
        counts = SimpleNamespace(events=1, records=read, learned=read)
        marks = dict.fromkeys(ends, LENGTH)
        learned = SimpleNamespace(
            moves=moves, counts=counts, seconds=1.0, marks=marks, busy=read / 20.0
        )
        return Delta(task.base, task.rank, task.starts, ends, learned)


def make_pool(
    monkeypatch: pytest.MonkeyPatch,
    ray: FakeRay,
    count: int = 3,
    told: Any = TOLD,
    least: int | None = None,
    round_seconds: float = 1.0,
) -> WorkerPool:
    ray.install(monkeypatch)
    log = Log("json", "debug", stream=io.StringIO())
    local: Any = LocalReader()
    return WorkerPool(
        local,
        told,
        count,
        round_seconds=round_seconds,
        deadline_seconds=5.0,
        least=least or count,
        log=log,
    )


def begin(pool: WorkerPool, partitions: int) -> dict[str, Any]:
    """Let the pool begin; the state that is returned has to be kept up to date."""
    while not pool.ready:
        pool.poll(0.1, 10)
    state = {"cells": np.zeros(CELLS)}
    pool.begin(1, {Partition("t", k): 0 for k in range(partitions)}, state.copy)
    return state


def merge(pool: WorkerPool, state: dict[str, Any], moves: list[Any]) -> None:
    """Add up what was learned, and hand it out."""
    before = state["cells"]
    state["cells"] = before + sum(applied(before, one) - before for one in moves)
    pool.hand_out({"cells": difference(before, state["cells"])}, int(state["cells"].sum()))


@pytest.mark.parametrize("seed", range(20))
def test_each_record_once(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = random.Random(seed)
    ray = FakeRay(draw, lambda: FakeWorker(draw))
    pool = make_pool(monkeypatch, ray, count=3, least=draw.choice([None, 1]))
    partitions = draw.randint(1, 5)
    assert pool.topics_read() == set()
    state = begin(pool, partitions)
    assert pool.topics_read() == {"t"}
    rounds = pool.rounds
    assert rounds is not None
    while min(rounds.positions.values()) < LENGTH:
        pool.poll(0.1, 10)
        if pool.finished():
            deltas = pool.take()
            if deltas:
                merge(pool, state, [one.learned.moves["cells"] for one in deltas])
        ray.disturb()
        assert ray.now < 10_000.0
    expected = np.zeros(CELLS)
    for k in range(partitions):
        learn(expected, Partition("t", k), 0, LENGTH)
    assert (state["cells"] == expected).all()
    assert ray.deaths + ray.freezes > 0
    assert logged_replacements(pool) == pool.replaced
    refused = [line for line in logged(pool) if line["event"].endswith("round refused")]
    assert {line["event"] for line in refused} <= {"round refused", "late round refused"}
    assert Counter(line["reason"] for line in refused) == rounds.refused
    pool.close()


def test_workers_are_added_while_there_is_lag_and_ended_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeWorker(draw), faults=False)
    pool = make_pool(monkeypatch, ray, count=4, least=2)
    state, counts = begin(pool, 3), [2]
    assert pool.rounds is not None
    while counts[-1] > 2 or len(counts) < 3:
        pool.poll(0.1, 10)
        if pool.finished():
            deltas = pool.take()
            if deltas:
                merge(pool, state, [one.learned.moves["cells"] for one in deltas])
        if len(pool.workers) != counts[-1]:
            counts.append(len(pool.workers))
        assert ray.now < 10_000.0
    assert counts == [2, 3, 2]  # no more than partitions
    changes = [line for line in logged(pool) if line["event"] == "workers changed"]
    assert [line["workers"] for line in changes] == counts[1:]
    assert changes[0]["lag"] > 0 == changes[1]["lag"]
    assert set(pool.rounds.positions.values()) == {LENGTH}
    pool.close()


@pytest.mark.parametrize("most", [0.5, 5.0])
def test_rounds_are_short_at_first(monkeypatch: pytest.MonkeyPatch, most: float) -> None:
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeWorker(draw), faults=False)
    pool = make_pool(monkeypatch, ray, round_seconds=most)
    state = begin(pool, 3)
    assert pool.rounds is not None
    while min(pool.rounds.positions.values()) < LENGTH:
        pool.poll(0.1, 10)
        if pool.finished():
            merge(pool, state, [one.learned.moves["cells"] for one in pool.take()])
    asked = pool.workers[0].actor.kept.asked
    assert asked[0] == min(most, 1.0)
    assert max(asked) == asked[-1] == most
    pool.close()


def test_a_full_object_store_ends_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeWorker(draw), faults=False)
    pool = make_pool(monkeypatch, ray)
    begin(pool, 3)

    def full(value: Any) -> Any:
        raise RayError(f"no space for {type(value).__name__}")

    monkeypatch.setattr(ray, "put", full)
    with pytest.raises(FleetError, match="object store"):
        poll_often(pool)


def test_changes_of_the_base_are_sent_to_those_who_have_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(1)
    made: list[FakeWorker] = []

    def make() -> FakeWorker:
        made.append(FakeWorker(draw))
        return made[-1]

    pool = make_pool(monkeypatch, FakeRay(draw, make, faults=False), count=2)
    state = begin(pool, 2)
    for _ in range(5):
        while not pool.finished():
            pool.poll(0.1, 10)
        merge(pool, state, [one.learned.moves["cells"] for one in pool.take()])
    assert [worker.whole for worker in made] == [1, 1]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Failed(code=int(Exit.INVALID_RECORDS), reason="too many"), Stop),
        (Failed(SourceError("denied")), SourceError),
    ],
)
def test_errors_of_workers_are_the_daemons(
    monkeypatch: pytest.MonkeyPatch, answer: Failed, expected: type[Exception]
) -> None:
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeWorker(draw, answer), faults=False)
    pool = make_pool(monkeypatch, ray)
    begin(pool, 3)
    with pytest.raises(expected):
        poll_often(pool)


def test_a_weight_that_is_not_a_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    broken = CellMoves({0: np.nan})
    broken.has_nan = True
    learned = SimpleNamespace(moves={"cells": broken})
    where = Partition("t", 0)
    draws: list[Any] = []

    def make() -> FakeWorker:
        delta = Delta(draws[0].base, 0, {where: 0}, {where: 5}, learned) if draws else None
        return FakeWorker(draw, delta)

    pool = make_pool(monkeypatch, FakeRay(draw, make, faults=False), count=1)
    begin(pool, 1)
    assert pool.rounds is not None
    draws.append(pool.rounds)
    monkeypatch.setattr(actor_pool, "REPLACED", 3)
    pool.workers[0].actor.kept.answer = make().answer
    with pytest.raises(FleetError, match="not a number"):
        poll_often(pool)
    assert pool.rounds.positions == {where: 0}


@pytest.mark.parametrize("count", [1, 3])
def test_only_so_many_replacements_are_made_in_a_minute(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    ray = FakeRay(random.Random(1), lambda: FakeWorker(random.Random(1)), faults=False)
    pool = make_pool(monkeypatch, ray, count=count)
    monkeypatch.undo()
    now = 1000.0
    monkeypatch.setattr(actor_pool, "time", SimpleNamespace(monotonic=lambda: now))
    for _ in range(actor_pool.REPLACED * count):
        pool.count_replacement(0, "no answer")
    with pytest.raises(FleetError, match="no answer"):
        pool.count_replacement(0, "no answer")
    now += actor_pool.REPLACED_SECONDS
    with pytest.raises(FleetError):
        pool.count_replacement(0, "no answer")
    now += 0.1
    for _ in range(actor_pool.REPLACED * count - 1):  # one is not older than a minute
        pool.count_replacement(0, "no answer")
    with pytest.raises(FleetError):
        pool.count_replacement(0, "no answer")


def test_workers_that_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeWorker(draw), faults=False)
    failed: Any = Failed(SourceError("no broker"))
    pool = make_pool(monkeypatch, ray)
    pool.workers[0].actor.kept.start = lambda _: failed
    with pytest.raises(SourceError, match="no broker"):
        poll_often(pool)
    ray.capacity = len(ray.actors)  # no CPU for those that follow
    pool = make_pool(monkeypatch, ray)
    with pytest.raises(FleetError, match="CPUs"):
        poll_often(pool, 200, 1.0)


def test_a_worker_that_starts_in_an_outage_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeWorker(draw), faults=False)
    pool = make_pool(monkeypatch, ray, count=2)
    state = begin(pool, 3)
    answers: list[Any] = [Failed(SourceUnreachableError("no broker")) for _ in range(3)]

    def start(told: Any) -> Any:
        del told
        return answers.pop() if answers else None

    fresh = FakeWorker(draw)
    ray.make = lambda: SimpleNamespace(start=start, learn=fresh.learn)
    pool.workers[0].actor.dead = True
    while not all(worker.started for worker in pool.workers) or answers:
        pool.poll(0.1, 10)
        if pool.finished() and (deltas := pool.take()):
            merge(pool, state, [one.learned.moves["cells"] for one in deltas])
        assert ray.now < 1000.0
    assert pool.replaced == 1
    waits = [line for line in logged(pool) if line["event"] == "worker waits for brokers"]
    assert [line["error"] for line in waits][:1] == ["no broker"]


def test_a_worker_without_a_cpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others learn meanwhile."""
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeWorker(draw), faults=False)
    ray.capacity = 2
    pool = make_pool(monkeypatch, ray, count=3)
    state, partitions = begin(pool, 3), 3
    while min(pool.rounds.positions.values()) < LENGTH:  # type: ignore[union-attr]
        pool.poll(1.0, 10)
        ray.sleep(1.0)
        if pool.finished() and (deltas := pool.take()):
            merge(pool, state, [one.learned.moves["cells"] for one in deltas])
        assert ray.now < 1000.0
    assert sum(worker.partitions for worker in pool.workers) == partitions
    while not (lines := [one for one in logged(pool) if one["event"] == "worker waits for a CPU"]):
        pool.poll(1.0, 10)
        ray.sleep(actor_pool.START_SECONDS)
    assert [line["worker"] for line in lines] == [2]
    assert [worker.started for worker in pool.workers] == [True, True, False]


def test_a_round_whose_output_is_away_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, answers = random.Random(1), [Failed(SinkError("away"))]

    class Repeating(FakeWorker):
        def learn(self, *given: Any) -> Any:
            own = super().learn(*given)
            return answers.pop() if answers else own

    pool = make_pool(monkeypatch, FakeRay(draw, lambda: Repeating(draw), faults=False), count=1)
    state = begin(pool, 2)
    assert pool.rounds is not None
    while min(pool.rounds.positions.values()) < LENGTH:
        pool.poll(0.1, 10)
        if pool.finished() and (deltas := pool.take()):
            merge(pool, state, [one.learned.moves["cells"] for one in deltas])
    [line] = [line for line in logged(pool) if line["event"] == "round repeated"]
    assert line["error"] == "away"
    assert pool.replaced == 0
    expected = np.zeros(CELLS)
    for k in range(2):
        learn(expected, Partition("t", k), 0, LENGTH)
    assert (state["cells"] == expected).all()


def test_a_cluster_without_its_head_ends_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    pool = make_pool(monkeypatch, FakeRay(draw, lambda: FakeWorker(draw), faults=False))
    poll_often(pool)
    monkeypatch.setattr(actor_pool, "answers", lambda _: False)
    with pytest.raises(FleetError, match="head"):
        poll_often(pool, 200, 1.0)


def poll_often(pool: WorkerPool, times: int = 100, seconds: float = 0.1) -> None:
    for _ in range(times):
        pool.poll(seconds, 10)
        pool.ray.sleep(seconds)
        if pool.finished():
            pool.take()
