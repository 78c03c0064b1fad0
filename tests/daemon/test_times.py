"""Durations and times that a daemon reports are those of its clocks."""

from __future__ import annotations

import itertools
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from streamlearn.core.invalid_record import InvalidRecord
from streamlearn.daemon import loop as loop_module
from streamlearn.daemon import pipeline as pipeline_module
from streamlearn.daemon.checkpointing import writer
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.outputs import dead_letters
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher
from streamlearn.daemon.process.exits import Exit
from streamlearn.errors import SinkError
from streamlearn.estimators import checkpoints
from streamlearn.stream import Partition, Records
from streamlearn.telemetry import routes
from tests.support.loops import MemoryLog
from tests.support.running import http_get, running
from tests.support.streams import ShuffledSource, make_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

NOW = 1_700_000_000.4567


def doubling() -> Callable[[], float]:
    """A clock that is later by 1, 2, 4, ... seconds: the time between any two looks is unique."""
    looks = itertools.accumulate(2.0**k for k in range(40))
    return lambda: next(looks)


class Noted(Observer):
    """What observers are told."""

    def __init__(self) -> None:
        self.stages: list[dict[str, float]] = []
        self.polls: list[tuple[float, int]] = []
        self.results: list[Any] = []

    def on_batch(self, batch: Any) -> None:
        self.stages.append(dict(batch.seconds))

    def on_poll(self, seconds: float, records: int) -> None:
        self.polls.append((seconds, records))

    def on_checkpoint(self, result: Any) -> None:
        self.results.append(result)


def test_stages_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "time", SimpleNamespace(perf_counter=doubling()))
    loop, noted = make_loop(None, ShuffledSource(1, 20)), Noted()
    loop.pipeline.observers.append(noted)
    loop.pipeline.process(loop.source.poll(1.0))
    assert noted.stages == [{"decode": 2.0, "learn": 4.0, "publish": 8.0}]


def test_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = (5.0 * k for k in itertools.count())
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=looks.__next__, monotonic=lambda: 0.01 * next(ticks))
    monkeypatch.setattr(loop_module, "time", clock)
    loop, noted = make_loop(None, ShuffledSource(2, 20)), Noted()
    loop.pipeline.observers.append(noted)
    assert loop.run() == Exit.OK
    assert {seconds for seconds, _ in noted.polls} == {5.0}
    assert sum(records for _, records in noted.polls) == 40


def test_checkpoints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=doubling()))
    monkeypatch.setattr(time, "time", lambda: NOW)
    log, noted = MemoryLog(), Noted()
    loop = make_loop(tmp_path, ShuffledSource(1, 20), log=log)
    loop.pipeline.observers.append(noted)
    assert loop.run() == Exit.OK
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found[1]["written"] == loop.status.checkpoint_time == NOW
    assert [one.seconds for one in noted.results] == [2.0, 8.0][: len(noted.results)]
    lines = [
        line for line in log.lines("checkpoint written") if line["event"] == "checkpoint written"
    ]
    assert [line["seconds"] for line in lines] == [one.seconds for one in noted.results]
    assert [line["bytes"] for line in lines] == [one.bytes for one in noted.results]
    assert lines[-1]["name"] == found[0].name
    assert lines[-1]["records"] == 20
    assert lines[-1]["bytes"] == (tmp_path / found[0].name).stat().st_size


def test_failed_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are retried after 1, 2, 4, ... seconds, up to the longest."""

    def broken(seconds: float) -> None:
        raise SinkError(f"not within {seconds:g} s")

    now = 0.0
    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=doubling()))
    owner: Any = SimpleNamespace(check=lambda: None, epoch=1, store=None)
    own = writer.CheckpointWriter(owner, flush=broken, clock=lambda: now)
    first, longest = writer.BACKOFF_SECONDS
    waits = [first]
    while waits[-1] < longest:
        waits.append(min(2.0 * waits[-1], longest))
    for number, wait in enumerate([*waits, longest]):
        assert own.ready
        own.start({}, {}, 3.0)
        result: Any = own.collect(20.0)
        assert isinstance(result.error, SinkError)
        assert (result.seconds, result.retry_in) == (2.0 * 4.0**number, wait)
        assert own.failures == number + 1
        assert not own.ready
        now += wait - 0.01
        assert not own.ready
        now += 0.01


def test_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "time", SimpleNamespace(time=lambda: NOW))
    records = Records(Partition("t"), [3], [b"{"], 4, times=[17])
    publisher = DeadLetterPublisher(None)
    found = dict(publisher.metadata(records, InvalidRecord(0, None, "syntax", "no JSON")))
    assert found["streamlearn.time"] == b"1700000000457"
    assert found["streamlearn.record_time"] == b"17"


def test_what_the_page_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as (_, watching, address):
        clock = SimpleNamespace(monotonic=lambda: 7.5, time=lambda: NOW)
        monkeypatch.setattr(routes, "time", clock)
        status, body = http_get(f"{address}/api/status")
        assert (status, json.loads(body)["time"]) == (200, NOW)
        assert watching.board.looked_at == 7.5
        http_get(f"{address}/api/weights?learner=default")
        assert watching.board.weights_wanted == NOW
