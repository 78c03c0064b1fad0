"""The pool of readers returns each record once, in order, whatever readers and Ray do."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamlearn.daemon.process.log import Log
from streamlearn.errors import FleetError, SourceError, SourceUnreachableError
from streamlearn.fleet.packed_batch import PackedBatch
from streamlearn.fleet.reader_pool import ReaderPool
from streamlearn.fleet.remote_reader import Fetched, RemoteReader
from streamlearn.kafka.reader import OutOfRangeError
from streamlearn.stream import Events, Partition
from streamlearn.stream.packed_rows import PackedRows
from tests.fleet.fake_ray import FakeRay, logged, logged_replacements

LENGTH = 1000


class LocalReader:
    """Answers no questions."""

    def assign(self, positions: Any) -> None:
        pass

    def close(self) -> None:
        pass


class FakeReader:
    """A `RemoteReader` of made-up logs."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.ends: dict[Partition, tuple[int, int]] = {}
        self.error: Exception | None = None

    def start(self, told: Any) -> Fetched:
        return Fetched(error=told)

    def assign(self, positions: dict[Partition, tuple[int, int]]) -> None:
        self.ends.update(positions)

    def drop(self, partitions: list[Partition]) -> None:
        for partition in partitions:
            del self.ends[partition]

    def fetch(self, seconds: float, most: int) -> Fetched:  # noqa: ARG002
        batches = []
        for where in self.draw.sample(sorted(self.ends), self.draw.randint(0, len(self.ends))):
            at, generation = self.ends[where]
            end = min(at + self.draw.randint(1, 20), LENGTH)
            offsets = np.arange(at, end)
            sizes = np.zeros(end - at, dtype=np.int32)
            rows = PackedRows(Events().packed(), [], sizes, stop=end - at)
            batches.append(PackedBatch(where, generation, end, offsets, rows=rows))
            self.ends[where] = end, generation
        return Fetched(batches, dict.fromkeys(self.ends, LENGTH), self.error)


def make_pool(
    monkeypatch: pytest.MonkeyPatch, ray: FakeRay, count: int = 3, told: Any = None
) -> ReaderPool:
    ray.install(monkeypatch)
    return ReaderPool(
        LocalReader(),  # type: ignore[arg-type]
        told,
        count,
        deadline_seconds=10.0,
        log=Log("json", "debug", stream=io.StringIO()),
    )


@pytest.mark.parametrize("seed", range(30))
def test_each_record_once_and_in_order(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = random.Random(seed)
    ray = FakeRay(draw, lambda: FakeReader(draw))
    pool = make_pool(monkeypatch, ray)
    ends = {Partition("t", n): 0 for n in range(5)}
    pool.assign(ends)
    while min(ends.values()) < LENGTH:
        for records in pool.poll(0.1, 100):
            where = records.partition
            assert list(records.offsets) == list(range(ends[where], records.end))
            ends[where] = records.end
        ray.disturb()
        if draw.random() < 0.02:  # a source that steps back, as after a gap
            where = draw.choice(sorted(ends))
            pool.drop([where])
            pool.assign({where: ends[where]})
        assert ray.now < 10_000.0
    assert ray.deaths + ray.freezes > 0
    assert logged_replacements(pool) == pool.replaced
    pool.close()


def test_errors_come_after_the_records_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    fakes: list[FakeReader] = []

    def make() -> FakeReader:
        fakes.append(FakeReader(draw))
        return fakes[-1]

    ray = FakeRay(draw, make, faults=False)
    pool = make_pool(monkeypatch, ray, count=1)
    pool.assign({Partition("t"): 0})
    fakes[0].error = SourceError("damaged")
    with pytest.raises(SourceError, match="damaged"):
        poll_often(pool)
    fakes[0].error = OutOfRangeError(Partition("t"), "gone")  # of an earlier assignment
    poll_often(pool)


def test_a_poll_without_records_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(FakeReader):
        def fetch(self, seconds: float, most: int) -> Fetched:
            del most
            ray.sleep(seconds)
            return Fetched()

    ray = FakeRay(random.Random(1), lambda: Idle(random.Random(1)), faults=False)
    pool = make_pool(monkeypatch, ray)
    pool.assign({Partition("t", n): 0 for n in range(3)})
    for _ in range(5):
        began = ray.now
        assert pool.poll(0.1, 10) == []
        assert ray.now <= began + 5.0
    pool.close()


def poll_often(pool: ReaderPool) -> None:
    for _ in range(20):
        pool.poll(0.1, 10)


def test_a_reader_that_does_not_start_ends_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    ray = FakeRay(draw, lambda: FakeReader(draw), faults=False)
    with pytest.raises(SourceError, match="no broker"):
        make_pool(monkeypatch, ray, told=SourceError("no broker"))
    ray.capacity = 2
    with pytest.raises(FleetError, match="2 CPUs"):
        make_pool(monkeypatch, ray)


def test_a_reader_that_starts_in_an_outage_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    answers: list[Exception] = []
    ray = FakeRay(draw, lambda: FakeReader(draw), faults=False)
    pool = make_pool(monkeypatch, ray, count=2)
    ends = {Partition("t", n): 0 for n in range(3)}
    pool.assign(ends)

    def start(_: FakeReader, told: Any) -> Fetched:
        del told
        return Fetched(error=answers.pop() if answers else None)

    monkeypatch.setattr(FakeReader, "start", start)
    answers += [SourceUnreachableError("no broker") for _ in range(3)]
    ray.actors[0].dead = True
    while min(ends.values()) < LENGTH:
        for records in pool.poll(0.1, 100):
            assert list(records.offsets) == list(range(ends[records.partition], records.end))
            ends[records.partition] = records.end
        assert ray.now < 10_000.0
    assert not answers
    assert pool.replaced == 1
    assert "reader waits for brokers" in {line["event"] for line in logged(pool)}
    pool.close()


def test_without_readers_ray_is_not_imported() -> None:
    text = '[source]\nkind = "stdin"\n[format]\nlabel = "y"\n[[learner]]\nname = "a"'
    code = (
        "import sys\nfrom streamlearn.cli.actions import run\n"
        "from streamlearn import config\nfrom streamlearn.fleet import build\n"
        f"settings = config.parse({text!r}, 'x', {{}}, environ={{}})\n"
        "assert build.connect(settings, None) is None\n"
        "print('ray' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "False", run.stderr


def test_a_gap_is_that_of_an_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    where, gap = Partition("t"), OutOfRangeError(Partition("t"), "gone")

    def poll(*_: Any) -> Any:
        raise gap

    reader = RemoteReader()
    live: Any = SimpleNamespace(poll=poll, assign=lambda _: None)
    monkeypatch.setattr(reader, "_reader", live)
    for generation in (3, 4):
        reader.assign({where: (17, generation)})
        found = reader.fetch(0.1, 10)
        assert (found.error, found.generation, found.batches) == (gap, generation, [])
