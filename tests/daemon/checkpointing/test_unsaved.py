"""Checkpoints that fail, owners that are replaced, and directories that go."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.checkpointing import checkpointer
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.process import faults
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.daemon.process.log import Log
from streamlearn.errors import (
    SinkDeniedError,
    SinkError,
    SinkFullError,
    SinkNotFoundError,
    SinkRefusedError,
    SourceError,
)
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.checkpoints import Epoch
from streamlearn.rules.copy_buffer import CopyBuffer
from streamlearn.stream import (
    Records,
)
from tests.support.streams import TOPIC, ShuffledSource, make_loop, replay_models

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamlearn.stream.sinks.sink import Record
from tests.support.loops import MemoryLog, MemorySink, learned, newest

# -- checkpoints that fail, and who owns them -----------------------------------------------------


def test_full_disk_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_counts", Counter[str]())
    monkeypatch.setenv(faults.VARIABLE, "write:2-3:error")
    log = MemoryLog()
    assert make_loop(tmp_path, ShuffledSource(3, 400), log=log).run() == Exit.OK
    assert log.lines("checkpoint failed")
    assert newest(tmp_path)["counts"]["records"] == 1200


def test_full_disk_for_too_long_stops_with_the_old_checkpoint_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert make_loop(tmp_path, until="300").run() == Exit.OK
    before = (tmp_path / checkpoints.valid(tmp_path)[0].name).read_bytes()
    monkeypatch.setattr(faults, "_counts", Counter[str]())
    monkeypatch.setenv(faults.VARIABLE, "write:1-1000000:error")
    log = MemoryLog()
    assert (
        make_loop(tmp_path, ShuffledSource(3, 10**9), log=log, max_age_seconds=0.7).run()
        == Exit.CHECKPOINT
    )
    monkeypatch.delenv(faults.VARIABLE)
    assert "step write" in log.lines("stopped")[0]["reason"]  # the last error
    place = checkpoints.valid(tmp_path)[0]
    assert (tmp_path / place.name).read_bytes() == before
    assert make_loop(tmp_path, until="300").run() == Exit.OK
    assert newest(tmp_path)["counts"]["records"] == 600


def test_unreachable_output_prevents_the_final_checkpoint(tmp_path: Path) -> None:
    sink, log = MemorySink(), MemoryLog()
    sink.error = SinkError("3 records are not delivered")
    loop = make_loop(
        tmp_path,
        ShuffledSource(3, 10**9),
        sinks={"predictions": sink},
        log=log,
        shutdown_seconds=1.0,
    )
    threading.Timer(0.2, loop.stop_requested.set).start()
    assert loop.run() == Exit.UNSAVED
    assert checkpoints.newest(tmp_path) is None


def test_full_output_is_waited_for(tmp_path: Path) -> None:
    class Full(MemorySink):
        tries = 0

        def send(self, *args: Any, **options: Any) -> None:
            self.tries += 1
            if self.tries % 3:
                raise SinkFullError("the buffer stays full")
            super().send(*args, **options)

    sink = Full()
    loop = make_loop(tmp_path, ShuffledSource(1, 300), sinks={"predictions": BlockingSink(sink)})
    assert loop.run() == Exit.OK
    assert len(sink.sent) == 300
    assert sink.tries == 900


def test_output_full_for_too_long_stops_the_run(tmp_path: Path) -> None:
    class Full(MemorySink):
        def send_all(self, records: Sequence[Record]) -> None:
            raise SinkFullError(f"no room for {len(records)}")

    sinks = {"predictions": BlockingSink(Full())}
    loop = make_loop(tmp_path, ShuffledSource(1, 300), sinks=sinks, max_age_seconds=0.3)
    assert loop.run() == Exit.CHECKPOINT


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SinkRefusedError("too large"), Exit.SOURCE),
        (SinkDeniedError("no right"), Exit.DENIED),
        (SinkNotFoundError("deleted"), Exit.NOT_FOUND),
    ],
)
def test_permanent_output_error_stops_the_run(tmp_path: Path, error: SinkError, code: Exit) -> None:
    sink = MemorySink()
    sink.error = error
    make_loop(tmp_path, until="300").run()
    loop = make_loop(
        tmp_path, ShuffledSource(3, 10**9), sinks={"predictions": sink}, max_age_seconds=3600.0
    )
    assert loop.run() == code
    assert newest(tmp_path)["counts"]["records"] == 300


@pytest.mark.parametrize("asked", [True, False])
def test_a_run_that_is_stopped_and_cannot_publish_is_unsaved(tmp_path: Path, asked: bool) -> None:
    """Whatever else has ended it: what was asked for is a checkpoint."""
    sink = MemorySink()

    class Gone(ShuffledSource):
        def poll(self, seconds: float) -> Any:
            if loop.pipeline.counts.records >= 200:  # the first checkpoint is written earlier
                sink.error = SinkRefusedError("too large")
                if asked:
                    loop.stop_requested.set()
                raise SourceError("gone")
            return super().poll(seconds)

    options: dict[str, Any] = {"every_events": 10**9, "every_seconds": 1e9}
    loop = make_loop(tmp_path, Gone(1, 300), sinks={"predictions": sink}, **options)
    assert loop.run() == (Exit.UNSAVED if asked else Exit.SOURCE)


@pytest.mark.parametrize("asked", [True, False])
def test_batch_learned_but_not_published_is_not_saved(tmp_path: Path, asked: bool) -> None:
    class Stuck(MemorySink):
        def send(self, *args: Any, **options: Any) -> None:
            if len(self.sent) == 150:
                if asked:
                    loop.stop_requested.set()
                raise SinkFullError("the buffer stays full") if asked else SinkError("refused")
            super().send(*args, **options)

    sinks = {"predictions": BlockingSink(Stuck())}
    options: dict[str, Any] = {"every_events": 10**9, "every_seconds": 1e9}
    loop = make_loop(tmp_path, ShuffledSource(1, 300), sinks=sinks, **options)
    assert loop.run() == (Exit.UNSAVED if asked else Exit.SOURCE)
    assert make_loop(tmp_path, ShuffledSource(1, 300)).run() == Exit.OK
    ranges = newest(tmp_path)["observers"]["audit"]
    assert sum(end - start for *_, start, end in ranges) == 300
    for name, model in replay_models(ranges).items():
        state = checkpoints.model(tmp_path, name)["state"]
        assert model_file.pack(state) == model_file.pack(model.state())


def test_start_positions_are_saved_before_the_first_record(tmp_path: Path) -> None:
    class Idle(ShuffledSource):
        polled = False

        def poll(self, seconds: float) -> list[Records]:  # noqa: ARG002 - nothing to wait for
            if self.polled:
                loop.stop_requested.set()
            new = [] if self.polled else [Records(where, (), (), 7) for where in self.positions]
            self.polled = True
            return new

    loop = make_loop(tmp_path, Idle(2, 100), every_seconds=3600.0)
    assert loop.run() == Exit.OK
    assert newest(tmp_path)["positions"] == [[TOPIC, 0, 7], [TOPIC, 1, 7]]


def test_memory_for_the_first_copy_is_preallocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking: list[int] = []
    take = CopyBuffer.allocate

    def noted(self: CopyBuffer, n: int) -> Any:
        if loop.status.state == "active":
            lacking.append(self._needed + n - len(self._block))
        return take(self, n)

    monkeypatch.setattr(CopyBuffer, "allocate", noted)
    text = f"""
[source]
kind = "synthetic"
events = 3000
[features]
kind = "hashing"
bits = 12
[[learner]]
name = "default"
[checkpoint]
path = "{tmp_path}"
[telemetry]
enabled = false
[run]
until = "end"
"""
    loop = build.loop(config.parse(text), Log("json"))
    assert loop.run() == Exit.OK
    assert lacking, "nothing was copied"
    assert max(lacking) <= 0


def test_fenced_daemon_saves_nothing(tmp_path: Path) -> None:
    class Overtaking(Observer):
        def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - any
            (tmp_path / "epoch-00000002").write_bytes(Epoch(2, "another", None).packed())

    loop = make_loop(tmp_path, ShuffledSource(3, 10**9))
    loop.pipeline.observers.append(Overtaking())
    assert loop.run() == Exit.FENCED
    assert checkpoints.newest(tmp_path) is None


def test_standby_waits_and_takes_over(tmp_path: Path) -> None:
    owner = Ownership(tmp_path)
    owner.acquire(lambda: None, wait=lambda: False)
    assert make_loop(tmp_path, standby=False).run() == Exit.OWNED
    states = []

    class WeightsCollector(Observer):
        def on_state(self, status: Any) -> None:
            states.append(status.state)
            if status.state == "standby":
                owner.release()

    loop = make_loop(tmp_path)
    loop.pipeline.observers.append(WeightsCollector())
    assert loop.run() == Exit.OK
    assert states == ["standby", "loading", "active", "stopping", "stopped"]
    assert checkpoints.valid(tmp_path)[0].epoch == 2


def test_standby_can_be_stopped(tmp_path: Path) -> None:
    owner = Ownership(tmp_path)
    owner.acquire(lambda: None, wait=lambda: False)
    loop = make_loop(tmp_path)
    loop.stop_requested.set()
    assert loop.run() == Exit.OK
    owner.release()


def test_damaged_checkpoint_is_logged_and_its_records_learned_again(tmp_path: Path) -> None:
    assert make_loop(tmp_path, ShuffledSource(1, 500), until="400").run() == Exit.OK
    path = tmp_path / checkpoints.valid(tmp_path)[0].name
    path.write_bytes(path.read_bytes()[:-10])
    log = MemoryLog()
    assert make_loop(tmp_path, ShuffledSource(1, 500), log=log).run() == Exit.OK
    assert log.lines("checkpoint damaged")[0]["checkpoint"] == path.name
    whole = tmp_path / "whole"
    assert make_loop(whole, ShuffledSource(1, 500)).run() == Exit.OK
    assert learned(newest(tmp_path)) == learned(newest(whole))
    for place in checkpoints.all_ids(tmp_path):
        (tmp_path / place.name).write_bytes(b"")
    assert make_loop(tmp_path).run() == Exit.CHECKPOINT


def test_failed_checkpoint_is_retried_without_new_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlearn.daemon.checkpointing.writer.BACKOFF_SECONDS", (0.01, 0.01))
    sink, results, failures = MemorySink(), list[bool](), list[int]()

    class Idle(ShuffledSource):
        empty = 0

        def poll(self, seconds: float) -> list[Records]:
            found = super().poll(seconds)
            self.empty += not found
            if self.empty > 500:
                loop.stop_requested.set()
            return found

        def ended(self) -> bool:
            return False

    class WeightsCollector(Observer):
        def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - any
            sink.error = SinkError("3 records were not delivered")

        def on_checkpoint(self, result: Any) -> None:
            if isinstance(result, FailedCheckpoint):
                failures.append(loop.status.checkpoint_failures)
            if source.empty:
                results.append(isinstance(result, WrittenCheckpoint))
                sink.error = None
                if results[-1]:
                    loop.stop_requested.set()

    source = Idle(1, 50)
    loop = make_loop(tmp_path, source, sinks={"predictions": sink}, until=None)
    loop.pipeline.observers.append(WeightsCollector())
    assert loop.run() == Exit.OK
    assert results[:2] == [False, True]
    assert failures == list(range(1, len(failures) + 1))
    assert source.empty <= 500
    assert newest(tmp_path)["counts"]["records"] == 50


def test_age_of_unsaved_records_counts_from_the_copy(tmp_path: Path) -> None:
    ages: list[tuple[float | None, float | None]] = []

    class WeightsCollector(Observer):
        def on_checkpoint(self, result: Any) -> None:  # noqa: ARG002 - all are written
            checkpointer = loop.checkpointer
            assert checkpointer is not None
            newer = loop.pipeline.revision > checkpointer._durable_revision
            ages.append((checkpointer._unsaved_since, checkpointer._copied_at if newer else None))

    loop = make_loop(tmp_path)
    loop.pipeline.observers.append(WeightsCollector())
    assert loop.run() == Exit.OK
    assert len({expected for _, expected in ages}) > 1
    assert all(since == expected for since, expected in ages)


# -- a directory without a checkpoint -------------------------------------------------------------


def test_new_model_needs_begin_if_a_checkpoint_is_required(tmp_path: Path) -> None:
    for directory in (tmp_path / "unmounted" / "models", tmp_path):  # not there, and empty
        loop = make_loop(directory, required=True)
        assert loop.run() == Exit.NO_CHECKPOINT
        assert loop.pipeline.counts.records == 0
        assert list(tmp_path.iterdir()) == []
    directory = tmp_path / "models"
    assert make_loop(directory, required=True, begin=True, until="0").run() == Exit.OK
    assert newest(directory)["counts"]["records"] == 0
    assert make_loop(directory, required=True).run() == Exit.OK
    assert newest(directory)["counts"]["records"] == 1200
    before = checkpoints.all_ids(directory)
    for required in (True, False):
        loop = make_loop(directory, required=required, begin=True)
        assert loop.run() == Exit.USAGE
    assert checkpoints.all_ids(directory) == before


def test_moved_directory_stops_the_run_and_is_resumed_after_its_return(
    tmp_path: Path,
) -> None:
    directory, away = tmp_path / "models", tmp_path / "away"

    class Moving(Observer):
        def on_checkpoint(self, result: Any) -> None:  # noqa: ARG002 - any
            if loop.pipeline.counts.records > 300 and not away.exists():
                directory.rename(away)

    log = MemoryLog()
    loop = make_loop(directory, ShuffledSource(1, 10**6), log=log)
    loop.pipeline.observers.append(Moving())
    assert loop.run() == Exit.NO_CHECKPOINT
    assert log.lines("stopped")[0]["exit"] == Exit.NO_CHECKPOINT
    assert not directory.exists()
    away.rename(directory)
    records = newest(directory)["counts"]["records"]
    assert (
        make_loop(directory, ShuffledSource(1, 1000, seed=1), until=str(1000 - records)).run()
        == Exit.OK
    )
    assert make_loop(tmp_path / "whole", ShuffledSource(1, 1000), until="1000").run() == Exit.OK
    assert learned(newest(directory)) == learned(newest(tmp_path / "whole"))


def test_only_what_is_not_saved_grows_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = make_loop(tmp_path, ShuffledSource(1, 50), max_age_seconds=300.0)
    assert loop.run() == Exit.OK
    saved, now = loop.checkpointer, 1000.0
    assert saved is not None
    monkeypatch.setattr(checkpointer, "time", SimpleNamespace(monotonic=lambda: now))
    for _ in range(2):  # idle, with everything saved
        saved.check_age()
        now += 1e6
    loop.pipeline.revision += 1
    saved.check_age()
    now += 300.0
    saved.check_age()
    now += 1.0
    with pytest.raises(Stop) as stopped:
        saved.check_age()
    assert stopped.value.code == Exit.CHECKPOINT
