"""The loop: what it learns, publishes and saves, and how it stops on errors."""

from __future__ import annotations

import base64
import io
import itertools
import json
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.collectors.regret_trackers import RegretTrackers
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.process import faults
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.errors import (
    SinkDeniedError,
    SinkError,
    SinkFullError,
    SinkNotFoundError,
    SinkRefusedError,
    SourceChangedError,
    SourceDeniedError,
    SourceError,
    SourceNotFoundError,
    SourceUnreachableError,
)
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.checkpoints import Epoch
from streamlearn.rules.copy_buffer import CopyBuffer
from streamlearn.stream import (
    Clicks,
    Files,
    Partition,
    Records,
    StandardInput,
    Synthetic,
)
from streamlearn.stream.sinks.sink import Sink
from tests.support.streams import TOPIC, ShuffledSource, event, make_loop, replay_models, skip_to

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamlearn.daemon.loop import Loop
    from streamlearn.stream.records import Header
    from streamlearn.stream.sinks.sink import Record


class MemoryLog(Log):
    """A log in memory."""

    def __init__(self) -> None:
        super().__init__("json", "debug", stream=io.StringIO())

    def lines(self, text: str = "") -> list[dict[str, Any]]:
        assert isinstance(self.stream, io.StringIO)
        found = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in found if text in line["event"]]


class MemorySink(Sink):
    """A sink in memory."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]] = []
        self.flushed = 0
        self.error: Exception | None = None

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        self.sent.append((value, key, dict(headers)))

    def flush(self, seconds: float) -> None:
        assert seconds > 0.0
        if self.error is not None:
            raise self.error
        self.flushed = len(self.sent)

    def close(self) -> None:
        pass


def newest(directory: Path) -> dict[str, Any]:
    found = checkpoints.newest(directory)
    assert found is not None
    return found[1]


def learned(data: dict[str, Any]) -> bytes:
    """The state that must not depend on batches and restarts, as bytes."""
    return model_file.pack({name: data[name] for name in ("learners", "features", "choice")})


BEST = ("error", 200, 0.0)


# -- what is learned ------------------------------------------------------------------------------


def test_replaying_the_audit_is_bit_identical(tmp_path: Path) -> None:
    source = ShuffledSource(3, 400)
    loop = make_loop(tmp_path, source, names="default,sparse,ftrl")
    assert loop.run() == Exit.OK
    assert source.closed
    assert source.committed == dict.fromkeys(source.positions, 400)
    data = newest(tmp_path)
    for name, model in replay_models(data["observers"]["audit"], "default,sparse,ftrl").items():
        state = checkpoints.model(tmp_path, name)["state"]
        assert model_file.pack(state) == model_file.pack(model.state())
        loaded = sl.LinearClassifier.load(tmp_path, learner=name)
        assert loaded.score_one({"user": "u1", "hour": 3}) == model.score_one(
            {"user": "u1", "hour": 3}
        )


def test_state_does_not_depend_on_batches_and_restarts(tmp_path: Path) -> None:
    results = set()
    for batch, restarts in [(1, 0), (7, 0), (1000, 0), (50, 3)]:
        directory = tmp_path / f"{batch}-{restarts}"
        for part in range(restarts):
            source = ShuffledSource(1, 1000, batch=batch)
            until = str(100 + 37 * part)
            assert make_loop(directory, source, best=BEST, until=until).run() == Exit.OK
        source = ShuffledSource(1, 1000, batch=batch, seed=batch)
        assert make_loop(directory, source, best=BEST).run() == Exit.OK
        data = newest(directory)
        assert data["restarts"] == restarts
        assert data["counts"]["records"] == 1000
        results.add(learned(data))
    assert len(results) == 1


def test_progressive_loss_equals_that_of_single_events(tmp_path: Path) -> None:
    make_loop(tmp_path, ShuffledSource(1, 500), names="sparse").run()
    model = replay_models([], "sparse")["sparse"]
    losses = []
    for i in range(500):
        fields = json.loads(event(0, i) or b"")
        label, weight = fields.pop("click", None), fields.pop("w")
        fields.pop("id")
        if label is not None:
            losses.append(
                (weight, model.objective.loss.value(model.score_one(fields), 2.0 * label - 1.0))
            )
            model.learn_one(fields, label, float(weight))
    progress = newest(tmp_path)["learners"]["sparse"]["progress"]["loss"]
    total, weight = progress["total"], progress["weight"]
    assert weight == sum(weight for weight, _ in losses)
    assert total == float(np.add.accumulate([weight * loss for weight, loss in losses])[-1])


def test_run_without_a_checkpoint() -> None:
    loop = make_loop(None, ShuffledSource(2, 100))
    assert loop.run() == Exit.OK
    assert loop.pipeline.counts.records == 200


def test_signal_handlers_are_restored(tmp_path: Path) -> None:
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    assert make_loop(tmp_path, ShuffledSource(2, 10)).run() == Exit.OK
    assert [signal.getsignal(number) for number in numbers] == before


def test_until_stops_after_exactly_n_records(tmp_path: Path) -> None:
    for total in (130, 260):
        assert make_loop(tmp_path, until="130").run() == Exit.OK
        data = newest(tmp_path)
        assert data["counts"]["records"] == total
        assert sum(at for *_, at in data["positions"]) == total


class Timed(ShuffledSource):
    """Records with times, each a millisecond after the previous one."""

    def next(self, where: Partition) -> Records:
        records = super().next(where)
        records.times = [1000 + i for i in records.offsets]
        return records


def test_loop_does_not_spin_at_the_end_of_its_source(tmp_path: Path) -> None:
    loop = make_loop(tmp_path, ShuffledSource(1, 300), until=None)
    waits: list[float | None] = []

    class Noted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            self.set()
            return True

    class Impatient(ShuffledSource):
        empty = 0

        def poll(self, seconds: float) -> list[Records]:
            found = super().poll(seconds)
            self.empty += not found
            assert self.empty < 100
            return found

    loop.source, loop.stop_requested = Impatient(1, 300), Noted()
    assert loop.run() == Exit.OK
    assert len(waits) == 1


def test_until_stops_at_a_record_time(tmp_path: Path) -> None:
    loop = make_loop(tmp_path, Timed(2, 500), until="1970-01-01T00:00:01.123Z")
    assert loop.run() == Exit.OK
    assert {tuple(one) for one in newest(tmp_path)["positions"]} == {
        (TOPIC, 0, 123),
        (TOPIC, 1, 123),
    }
    assert make_loop(tmp_path, until="1970-01-01T00:00:01Z").run() == Exit.USAGE  # no times there


def test_results_of_each_learner_are_logged_at_the_end(tmp_path: Path) -> None:
    log = MemoryLog()
    code, loop = run(tmp_path, "default,sparse", log)
    assert code == Exit.OK
    lines = log.lines()[-3:]
    assert [line["event"] for line in lines] == ["learned", "learned", "stopped"]
    for line, one in zip(lines, loop.pipeline.learners, strict=False):
        assert (line["name"], line["events"]) == (one.name, one.learned)
        assert (line["loss"], line["nonzero"]) == (one.progress["loss"].mean, one.model.nonzero)
        assert 0.0 < line["error"] < 1.0


def test_stop_request_ends_cleanly(tmp_path: Path) -> None:
    class Asked(Observer):
        def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - any
            loop.stop_requested.set()

    log = MemoryLog()
    loop = make_loop(tmp_path, ShuffledSource(3, 10**9), every_seconds=3600.0, log=log)
    loop.pipeline.observers.append(Asked())
    assert loop.run() == Exit.OK
    assert newest(tmp_path)["counts"]["records"] == loop.pipeline.counts.records > 0
    summary = {line["name"]: line["events"] for line in log.lines("learned")}
    assert summary == {one.name: one.learned for one in loop.pipeline.learners}


# -- predictions and dead letters ----------------------------------------------------------------


def test_predictions_are_made_before_learning(tmp_path: Path) -> None:
    sink = MemorySink()
    make_loop(tmp_path, ShuffledSource(1, 300), names="sparse", sinks={"predictions": sink}).run()
    model = replay_models([], "sparse")["sparse"]
    assert len(sink.sent) == sink.flushed == 300
    steps, seen = 0, set[bool]()
    for i, (value, key, headers) in enumerate(sink.sent):
        fields = json.loads(event(0, i) or b"")
        label, weight, name = fields.pop("click", None), fields.pop("w"), fields.pop("id")
        prediction = json.loads(value or b"")
        assert (prediction["id"], prediction["learner"], prediction["step"], key) == (
            name,
            "sparse",
            steps,
            None,
        )
        assert prediction["prediction"] == model.predict_one(fields)
        if len(seen) == 2:
            assert prediction["probability"] == model.predict_proba_one(fields)[True]
        else:
            assert "probability" not in prediction
        assert headers == {
            "topic": b"clicks",
            "partition": b"0",
            "offset": b"%d" % i,
            "epoch": b"1",
            "schema": b"1",
        }
        if label is not None:
            model.learn_one(fields, label, float(weight))
            seen.add(label)
            steps += 1


def test_best_learner_predicts_from_the_event_after_the_change(tmp_path: Path) -> None:
    published = set()
    for batch in (3, 500):
        sink, log = MemorySink(), MemoryLog()
        source = ShuffledSource(1, 1500, batch=batch)
        make_loop(
            tmp_path / str(batch), source, best=BEST, sinks={"predictions": sink}, log=log
        ).run()
        learners = [json.loads(value or b"")["learner"] for value, _, _ in sink.sent]
        changes = sum(a != b for a, b in itertools.pairwise(learners))
        assert changes == len(log.lines("best learner changed")) > 0
        published.add(tuple(value for value, _, _ in sink.sent))
    assert len(published) == 1


def test_invalid_records_become_dead_letters_with_metadata(tmp_path: Path) -> None:
    sink = MemorySink()
    source = ShuffledSource(3, 400, garbage=0.1)
    loop = make_loop(tmp_path, source, sinks={"dead_letters": sink})
    assert loop.run() == Exit.OK
    counts = loop.pipeline.counts
    assert counts.invalid == len(sink.sent) == sink.flushed > 50
    assert counts.tombstones > 0
    assert counts.records == 1200 == counts.events + counts.invalid + counts.tombstones
    for value, _, headers in sink.sent:
        metadata = {name: text.decode() for name, text in headers.items() if text is not None}
        n, offset = int(metadata["streamlearn.partition"]), int(metadata["streamlearn.offset"])
        assert value == event(n, offset, garbage=0.1)
        assert metadata["streamlearn.topic"] == TOPIC
        assert metadata["streamlearn.epoch"] == "1"
        assert len(metadata["streamlearn.reason"]) > 5
    ranges = newest(tmp_path)["observers"]["audit"]
    for name, model in replay_models(ranges, garbage=0.1).items():
        state = checkpoints.model(tmp_path, name)["state"]
        assert model_file.pack(state) == model_file.pack(model.state())


def test_too_many_invalid_records_stop_the_run_and_can_be_skipped(tmp_path: Path) -> None:
    assert make_loop(tmp_path, ShuffledSource(1, 300)).run() == Exit.OK
    before = checkpoints.valid(tmp_path)
    log = MemoryLog()
    poison = ShuffledSource(1, 5000, garbage=0.9, batch=300)
    assert make_loop(tmp_path, poison, log=log, every_events=10**9, every_seconds=1e9).run() == (
        Exit.INVALID_RECORDS
    )
    assert checkpoints.valid(tmp_path) == before  # the last good one
    reason = log.lines("stopped")[0]["reason"]
    topic, number, offset = skip_to(reason).split(":")
    # a restart reads the same records again, but not with the option
    position = {Partition(topic, int(number)): int(offset)}
    again = ShuffledSource(1, int(offset) + 20, garbage=0.9)
    assert make_loop(tmp_path, again, skip_to=position).run() == Exit.OK
    assert newest(tmp_path)["counts"]["skipped"] > 0
    back = {Partition(topic, int(number)): 1}
    assert make_loop(tmp_path, ShuffledSource(1, 10), skip_to=back).run() == Exit.USAGE


def test_skip_to_an_unknown_partition_is_refused() -> None:
    given = {"source.kind": "synthetic", "source.events": 20, "run.until": "end"}
    settings = config.parse("", overrides=given)
    log = MemoryLog()
    asked = {Partition("synthetics"): 5}
    assert build.loop(settings, log, skip_to=asked).run() == Exit.USAGE
    assert "valid: synthetic:0" in log.lines("stopped")[0]["reason"]
    asked = {Partition("synthetic"): 5}
    loop = build.loop(settings, log, skip_to=asked)
    assert loop.run() == Exit.OK
    assert loop.pipeline.counts.events == 15


def test_skip_to_a_position_past_the_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1, "y": 1}\n' * 40)
    given = {
        "source": {"kind": "file", "paths": [str(path)]},
        "format.label": "y",
        "run.until": "end",
    }
    log = MemoryLog()
    asked = {Partition(str(path)): 12345}
    assert build.loop(config.parse("", overrides=given), log, skip_to=asked).run() == Exit.USAGE
    assert f"--skip-to {path}:0:12345: " in log.lines("stopped")[0]["reason"]


def test_skip_to_an_invalid_position_of_a_file_is_refused(tmp_path: Path) -> None:
    """Otherwise all of the file would be learned again."""
    path, log = tmp_path / "a.jsonl", MemoryLog()
    line = '{"a": 1, "y": 1}\n'
    path.write_text(line * 40)
    settings = config.parse(
        "",
        overrides={
            "source": {"kind": "file", "paths": [str(path)]},
            "format.label": "y",
            "checkpoint.path": str(tmp_path / "state"),
            "run.until": "end",
        },
    )
    assert build.loop(settings, log).run() == Exit.OK
    path.write_text(line * 42)
    for where, at in ((Partition(str(path), 5), 0), (Partition(str(path)), 40 * len(line) + 3)):
        assert build.loop(settings, log, skip_to={where: at}).run() == Exit.USAGE
        reason = log.lines("stopped")[-1]["reason"]
        assert skip_to(reason) == f"{path}:{where.number}:{at}:"
    loop = build.loop(settings, log, skip_to={Partition(str(path)): 41 * len(line)})
    assert loop.run() == Exit.OK
    assert loop.pipeline.counts.events == 41


def test_another_synthetic_stream_does_not_match_the_checkpoint(tmp_path: Path) -> None:
    given = {
        "source.kind": "synthetic",
        "source.events": 20,
        "run.until": "end",
        "checkpoint.path": str(tmp_path),
    }
    assert build.loop(config.parse("", overrides=given), MemoryLog()).run() == Exit.OK
    given["source.seed"] = 5
    assert build.loop(config.parse("", overrides=given), MemoryLog()).run() == Exit.SOURCE_CHANGED


def test_resume_from_a_checkpoint_copied_without_its_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    second.mkdir()
    for until in ("300", "300"):
        assert make_loop(first, until=until).run() == Exit.OK
    place = checkpoints.valid(first)[0]
    assert place.epoch == 2
    shutil.copy(first / place.name, second)
    monkeypatch.setattr(faults, "_counts", Counter[str]())
    monkeypatch.setenv(faults.VARIABLE, "write:1-1000000:error")
    assert make_loop(second, ShuffledSource(3, 10**9), max_age_seconds=0.3).run() == Exit.CHECKPOINT
    assert newest(second)["counts"]["records"] == 600, "valid until there is another one"
    monkeypatch.delenv(faults.VARIABLE)
    assert make_loop(second, until="300").run() == Exit.OK
    assert newest(second)["counts"]["records"] == 900
    assert checkpoints.valid(second)[0].epoch == 4


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


# -- other sources ------------------------------------------------------------------------------


def test_another_source_starts_at_its_beginning_with_the_same_models(tmp_path: Path) -> None:
    lines = [(event(0, i) or b"") + b"\n" for i in range(170)]
    path, state = tmp_path / "a.jsonl", tmp_path / "state"
    path.write_bytes(b"".join(lines[:100]))
    assert make_loop(state, Files([path])).run() == Exit.OK
    ours, theirs = os.pipe()
    with open(theirs, "wb") as pipe:  # noqa: PTH123 - by its descriptor
        pipe.writelines(lines[100:150])
    log = MemoryLog()
    with open(ours, "rb"):  # noqa: PTH123 - the same
        assert make_loop(state, StandardInput(descriptor=ours), log=log).run() == Exit.OK
    assert newest(state)["counts"]["records"] == 150
    assert log.lines("source changed")
    # back to the file, which resumes
    path.write_bytes(b"".join([*lines[:100], *lines[150:]]))
    log = MemoryLog()
    assert make_loop(state, Files([path]), log=log).run() == Exit.OK
    assert not log.lines("source changed")
    whole = tmp_path / "whole"
    assert make_loop(whole, ShuffledSource(1, 170)).run() == Exit.OK
    assert newest(state)["counts"] == newest(whole)["counts"]


def test_synthetic_source_after_another_source_starts_at_its_beginning() -> None:
    source = Synthetic(events=10)
    source.open({Partition("a.jsonl"): 50}, {"a.jsonl": "1:2"})
    assert sum(len(one.offsets) for one in source.poll(0.0)) == 10
    other = Synthetic(Clicks("clicks", 7), events=10)
    with pytest.raises(SourceChangedError):
        other.open({}, source.identity())


# -- sources that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SourceError("nobody knows why"), Exit.SOURCE),
        (SourceUnreachableError("no broker"), Exit.SOURCE),
        (SourceDeniedError("wrong password"), Exit.DENIED),
        (SourceNotFoundError("no topic 'clicks'"), Exit.NOT_FOUND),
        (SourceChangedError("another cluster"), Exit.SOURCE_CHANGED),
        (KeyError("a bug"), Exit.CRASH),
    ],
)
def test_source_error_stops_the_run_with_its_exit_code(
    error: Exception, code: Exit, tmp_path: Path
) -> None:
    class Failing(ShuffledSource):
        def poll(self, seconds: float) -> list[Records]:
            if self.positions[Partition(TOPIC, 0)] > 100:
                raise error
            return super().poll(seconds)

    class Closed(ShuffledSource):
        def open(self, *_: object) -> None:
            raise error

    log = MemoryLog()
    assert make_loop(tmp_path, Closed(1, 10), log=log).run() == code
    assert str(error) in log.lines("stopped")[0]["reason"]
    loop = make_loop(tmp_path, Failing(1, 400), every_seconds=1e9, every_events=10**9)
    assert loop.run() == code
    # what was learned is saved, unless the state may be inconsistent
    found = checkpoints.newest(tmp_path)
    kept = found is not None and found[1]["counts"]["records"] == loop.pipeline.counts.records
    assert kept == (code != Exit.CRASH)


def test_failing_observer_is_dropped(tmp_path: Path) -> None:
    class Broken(Observer):
        name = "broken"

        def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - any
            raise ValueError("not today")

    log = MemoryLog()
    loop = make_loop(tmp_path, log=log)
    loop.pipeline.observers.append(Broken())
    assert loop.run() == Exit.OK
    assert "not today" in log.lines("observer failed")[0]["error"]
    assert loop.pipeline.counts.records == 1200


# -- changed configurations ----------------------------------------------------------------------


def run(
    tmp_path: Path, names: str, log: MemoryLog | None = None, **options: Any
) -> tuple[Exit, Loop]:
    loop = make_loop(tmp_path, names=names, until="100", log=log, **options)
    return loop.run(), loop


def test_learners_are_added_resumed_and_archived(tmp_path: Path) -> None:
    assert run(tmp_path, "default,sparse")[0] == Exit.OK
    log = MemoryLog()
    code, loop = run(tmp_path, "sparse,ftrl", log)
    assert code == Exit.OK
    events = {line["event"]: line["name"] for line in log.lines("learner")}
    assert events == {
        "learner resumed": "sparse",
        "learner created": "ftrl",
        "learner archived": "default",
    }
    data = newest(tmp_path)
    assert data["learners"]["ftrl"]["created_at"]["events"] == 100
    assert loop.pipeline.learners["sparse"].learned > loop.pipeline.learners["ftrl"].learned
    (path,) = (tmp_path / "archive").iterdir()
    assert path.name.startswith("default-00000001-")
    audit = newest(tmp_path)["observers"]["audit"]
    archived = sl.LinearClassifier.load(path)
    assert archived.steps > 0
    assert sum(end - start for *_, start, end in audit) == 200


def test_rotated_file_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    lines = [(event(0, i) or b"") + b"\n" for i in range(120)]
    path.write_bytes(b"".join(lines[:50]))

    class Rotating(Observer):
        def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - any
            if not path.with_suffix(".1").exists():
                path.rename(path.with_suffix(".1"))
                path.write_bytes(b"".join(lines[50:100]))

    models = tmp_path / "models"
    loop = make_loop(models, Files([path], follow=True), until="100")
    loop.pipeline.observers.append(Rotating())
    assert loop.run() == Exit.OK
    assert set(newest(models)["source"]) == {str(path), f"{path}#1"}
    with path.open("ab") as file:
        file.write(b"".join(lines[100:]))
    assert make_loop(models, Files([path], follow=True), until="20").run() == Exit.OK
    data = newest(models)
    assert data["counts"]["records"] == 120
    assert [str(path), 1, path.stat().st_size] in data["positions"]


def test_followed_glob_is_resumed(tmp_path: Path) -> None:
    """Files appear, are rotated and removed, while the daemon runs and while it is down."""
    lines = [(event(0, i) or b"") + b"\n" for i in range(200)]

    def write(name: str, start: int, stop: int) -> None:
        with (tmp_path / name).open("ab") as file:
            file.write(b"".join(lines[start:stop]))

    class Changing(Observer):
        """After the first batch, add a file and rotate another one."""

        done = False

        def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - any
            if not self.done:
                self.done = True
                write("b.jsonl", 50, 90)
                (tmp_path / "a.jsonl").rename(tmp_path / "a.1.jsonl")
                write("a.jsonl", 90, 100)

    write("a.jsonl", 0, 50)
    models, pattern = tmp_path / "models", str(tmp_path / "*.jsonl")
    loop = make_loop(models, Files([pattern], follow=True), until="100")
    loop.pipeline.observers.append(Changing())
    assert loop.run() == Exit.OK
    (tmp_path / "a.1.jsonl").unlink()
    (tmp_path / "b.jsonl").rename(tmp_path / "b.1.jsonl")
    write("b.jsonl", 100, 140)
    write("0.jsonl", 140, 200)
    assert make_loop(models, Files([pattern], follow=True), until="100").run() == Exit.OK
    data = newest(models)
    assert data["counts"]["records"] == 200
    whole = tmp_path / "whole"
    whole.write_bytes(b"".join(lines))
    assert make_loop(tmp_path / "other", Files([whole]), until="end").run() == Exit.OK
    assert data["counts"] == newest(tmp_path / "other")["counts"]
    positions = {(topic.rpartition("/")[2], n): at for topic, n, at in data["positions"]}
    sizes = {name: (tmp_path / name).stat().st_size for name in ("0.jsonl", "a.jsonl", "b.jsonl")}
    assert positions["0.jsonl", 0] == sizes["0.jsonl"]
    assert positions["a.jsonl", 1] == sizes["a.jsonl"]
    assert positions["b.jsonl", 1] == sizes["b.jsonl"]
    assert ("a.1.jsonl", 0) not in positions


@pytest.mark.parametrize("until", [None, "end", "1000"])
def test_run_ends_at_the_end_of_a_pipe(
    until: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"".join((event(0, i) or b"") + b"\n" for i in range(30)))
    os.write(theirs, event(0, 30) or b"")  # without an end of line
    os.close(theirs)
    given: dict[str, Any] = {
        "source": {"kind": "stdin"},
        "format": {"label": "click", "weight": "w", "id": "id"},
        "checkpoint.path": str(tmp_path),
    }
    if until is not None:
        given["run.until"] = until
    log = MemoryLog()
    loop = build.loop(config.parse("[telemetry]\nenabled = false", overrides=given), log)
    late = threading.Timer(30.0, loop.stop_requested.set)  # if it hangs
    late.start()
    with os.fdopen(ours) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert loop.run() == Exit.OK
    late.cancel()
    assert newest(tmp_path)["counts"]["records"] == 31


@pytest.mark.parametrize("on_full", ["hash", "ignore"])
def test_full_feature_table_is_logged_and_resumed(on_full: str, tmp_path: Path) -> None:
    """The limit can be raised before the table is full; a full table stays full."""
    parts_of_it = [(30_000, "40"), (20_000, "400"), (50_000, "100"), (20_000, "end")]
    for name, runs in (("parts", parts_of_it), ("whole", [(20_000, "end")])):
        for most, until in runs:
            given: dict[str, Any] = {
                "source": {"kind": "synthetic", "events": 900},
                "features": {"max_bytes": most, "on_full": on_full},
                "checkpoint.path": str(tmp_path / name),
                "run.until": until,
                "telemetry.enabled": False,
                "regret.enabled": False,
            }
            log = MemoryLog()
            loop = build.loop(config.parse("", overrides=given), log)
            assert loop.run() == Exit.OK
            reader: Any = loop.pipeline.learners.reader
            assert len(log.lines("feature table full")) == reader.full
            assert reader.bytes_used <= 20_000
    assert reader.full
    assert learned(newest(tmp_path / "parts")) == learned(newest(tmp_path / "whole"))


def test_regret_is_resumed_and_does_not_change_learning(tmp_path: Path) -> None:
    for part, restarts in (("parts", 2), ("whole", 0), ("without", 0)):
        for i in range(restarts + 1):
            until = str(150 * (i + 1)) if i < restarts else "end"
            log = MemoryLog()
            loop = make_loop(tmp_path / part, ShuffledSource(1, 900, seed=i), until=until, log=log)
            regret = RegretTrackers(log, 20_000, 0, 1.0)
            if part != "without":
                loop.pipeline.observers.append(regret)
            assert loop.run() == Exit.OK
            assert not log.lines("observer") + log.lines("regret not tracked")
        if part != "without":
            report = regret.trackers["sparse"].report(0.0)
            assert report.events == loop.pipeline.counts.learned
    parts, whole, without = (newest(tmp_path / part) for part in ("parts", "whole", "without"))
    assert learned(parts) == learned(whole) == learned(without)
    for name in ("default", "sparse"):
        kept = [data["observers"]["regret"]["learners"][name] for data in (parts, whole)]
        assert model_file.pack(kept[0]) == model_file.pack(kept[1])
    samples = [data["observers"]["regret"]["samples"] for data in (parts, whole)]
    assert model_file.pack(samples[0]) == model_file.pack(samples[1])


def test_learner_started_from_a_file_resumes_from_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = sl.LinearClassifier(sl.rules.DualAveraging(), batch=7, average="uniform")
    for i in range(40):
        begun.learn_one({"user": f"u{i}", "hour": i % 24}, i % 3 == 0)
    begun.save(tmp_path / "file")
    monkeypatch.setattr(
        "tests.support.streams.models", lambda _: {"old": type(begun).load(tmp_path / "file")}
    )
    for part, directory in [(130, "parts"), (300, "parts"), (430, "whole")]:
        source = ShuffledSource(1, 10**6)
        assert (
            make_loop(tmp_path / directory, source, names="old", until=str(part)).run() == Exit.OK
        )
    model = type(begun).load(tmp_path / "file")
    for i in range(430):
        fields = json.loads(event(0, i) or b"")
        label, weight, _ = fields.pop("click", None), fields.pop("w"), fields.pop("id")
        if label is not None:
            model.learn_one(fields, label, float(weight))
    for directory in ("parts", "whole"):
        state = checkpoints.model(tmp_path / directory, "old")["state"]
        assert model_file.pack(state) == model_file.pack(model.state())


def test_changed_learner_is_refused_unless_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, "default,sparse")[0] == Exit.OK
    changed = {
        "default": sl.LinearClassifier(),
        "sparse": sl.LinearClassifier(
            sl.rules.DualAveraging(gamma=2.0), penalty=sl.penalties.L1(1e-3)
        ),
    }
    monkeypatch.setattr(
        "tests.support.streams.models", lambda _: {n: m.clone() for n, m in changed.items()}
    )
    log, before = MemoryLog(), checkpoints.valid(tmp_path)
    assert run(tmp_path, "default,sparse", log)[0] == Exit.USAGE
    reason = log.lines("stopped")[0]["reason"]
    assert "'sparse'" in reason
    assert "--reset" in reason
    assert checkpoints.valid(tmp_path) == before
    assert run(tmp_path, "default,sparse", reset=["spares"])[0] == Exit.USAGE
    assert run(tmp_path, "default,sparse", reset=["sparse"])[0] == Exit.OK
    learners = newest(tmp_path)["learners"]
    assert learners["sparse"]["created_at"]["events"] == 100
    assert learners["default"]["created_at"] == {}
    assert run(tmp_path, "default,sparse")[0] == Exit.OK


def test_changed_features_are_refused_unless_all_are_reset(tmp_path: Path) -> None:
    names = "default,sparse"
    assert run(tmp_path, names, input_settings={"features": "Names()"})[0] == Exit.OK
    log = MemoryLog()
    hashing: dict[str, Any] = {
        "input_settings": {"features": "Hashing(10)"},
        "reader": sl.Hashing(10),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tests.support.streams.models",
            lambda _: {"default": sl.LinearClassifier(features=sl.Hashing(10))},
        )
        assert run(tmp_path, "default", log, **hashing)[0] == Exit.USAGE
        assert "features = Names() -> Hashing(10)" in log.lines("stopped")[0]["reason"]
        assert run(tmp_path, "default", reset=["all"], **hashing)[0] == Exit.OK
        assert run(tmp_path, "default", **hashing)[0] == Exit.OK
    assert newest(tmp_path)["features"]["state"]["kind"] == "Hashing"


def test_added_learner_must_be_able_to_learn_the_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Three(ShuffledSource):
        def next(self, where: Partition) -> Records:
            records = super().next(where)
            records.values = [
                json.dumps({"click": "abc"[i % 3], "x": 1.0}).encode() for i in records.offsets
            ]
            return records

    assert make_loop(tmp_path, Three(1, 100), names="default").run() == Exit.OK
    both = {
        "default": sl.LinearClassifier(),
        "simplex": sl.LinearClassifier(
            sl.rules.ExponentiatedDualAveraging(),
            penalty=sl.penalties.Simplex(),
            fit_intercept=False,
        ),
    }
    monkeypatch.setattr("tests.support.streams.models", lambda _: both)
    log = MemoryLog()
    assert make_loop(tmp_path, Three(1, 200), names="default,simplex", log=log).run() == Exit.USAGE
    assert "'simplex'" in log.lines("stopped")[0]["reason"]


def test_missing_label_column_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    given = f"""
        [source]
        kind = "file"
        paths = ["{path}"]
        [format]
        kind = "csv"
        label = "y"
        [run]
        until = "end"
    """
    log = MemoryLog()
    assert build.loop(config.parse(given), log).run() == Exit.USAGE
    assert "'y'" in log.lines("stopped")[0]["reason"]


@pytest.mark.parametrize("way", ["skip", "reset"])
def test_table_resumed_after_its_header(way: str, tmp_path: Path) -> None:
    """--skip-to and --reset all must not lose the names of the columns."""
    path = tmp_path / "a.csv"
    path.write_text("\na,y\n" + "1,1\n2,0\n" * 40)
    given: dict[str, Any] = {
        "source": {"kind": "file", "paths": [str(path)]},
        "format": {"kind": "csv", "label": "y"},
        "checkpoint.path": str(tmp_path / "state"),
        "run.until": "end",
    }
    asked: dict[str, Any] = {"skip_to": {Partition(str(path)): 13}}
    if way == "reset":
        assert build.loop(config.parse("", overrides=given), MemoryLog()).run() == Exit.OK
        path.write_text(path.read_text() + "3,1\n4,0\n")
        asked, given["features.max_names"] = {"reset": ["all"]}, 1000
    log = MemoryLog()
    loop = build.loop(config.parse("", overrides=given), log, **asked)
    assert loop.run() == Exit.OK, log.lines("stopped")
    assert loop.pipeline.counts.invalid == 0
    assert loop.pipeline.learners["default"].learned == (78 if way == "skip" else 2)
    assert loop.pipeline.learners.reader.names() == ["a"]


def test_dead_letters_of_a_table_hold_the_bytes_of_its_rows(tmp_path: Path) -> None:
    """Including line breaks inside quotes, for any split into blocks."""
    path, dead = tmp_path / "a.csv", tmp_path / "dead.jsonl"
    rows = [b"a,y", b"1,1", b'"x\r\n\r\n""y""",1\r', b"2,0", b'3,"0', b"4,1"]
    path.write_bytes(b"\n".join(rows))
    given: dict[str, Any] = {
        "source": {"kind": "file", "paths": [str(path)]},
        "format": {"kind": "csv", "label": "y", "labels": [0, 1]},
        "features.fields": {"*": "number"},
        "dead_letters": {"path": str(dead), "max_invalid_ratio": 1.0},
        "run.until": "end",
    }
    loop = build.loop(config.parse("", overrides=given), MemoryLog())
    assert loop.run() == Exit.OK
    letters = [json.loads(line) for line in dead.read_bytes().splitlines()]
    assert [base64.b64decode(one["value_base64"]) for one in letters] == [rows[2], rows[4]]
    assert loop.pipeline.learners["default"].learned == 3


# -- records in errors ----------------------------------------------------------------------------


class Numbered(ShuffledSource):
    """Ten records per poll, one of them invalid."""

    def next(self, where: Partition) -> Records:
        start = self.positions[where]
        self.positions[where] = end = start + 10
        values = [event(0, i) if i % 10 else b"{" for i in range(start, end)]
        return Records(where, range(start, end), values, end)


class Failing(MemorySink):
    """A sink that fails at its 15th record."""

    fault: Exception = TypeError("a fault")

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        super().send(value, key=key, headers=headers)
        if len(self.sent) == 15:
            raise self.fault


@pytest.mark.parametrize(("kind", "code"), [(TypeError, Exit.CRASH), (SinkError, Exit.SOURCE)])
@pytest.mark.parametrize("where", ["decode", "learn", "predictions", "dead_letters"])
def test_error_names_the_record_that_caused_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, kind: type[Exception], code: Exit
) -> None:
    log, sink, error = MemoryLog(), Failing(), kind("a fault")
    sink.fault = error
    sinks = {where: sink} if where in {"predictions", "dead_letters"} else {}
    loop = make_loop(tmp_path, Numbered(1, 10**9), sinks=sinks, log=log, ratio=1.0)
    calls = itertools.count(1)

    def fail(method: Any) -> Any:
        def failing(*args: Any) -> Any:
            if next(calls) == 3:
                raise error
            return method(*args)

        return failing

    if where == "decode":
        monkeypatch.setattr(
            loop.pipeline.event_reader, "read", fail(loop.pipeline.event_reader.read)
        )
    elif where == "learn":
        monkeypatch.setattr(loop.pipeline.learners, "learn", fail(loop.pipeline.learners.learn))
    assert loop.run() == code
    reason = log.lines("stopped")[0]["reason"]
    place, end = {
        "decode": ("20 to 29", 30),
        "learn": ("20 to 29", 30),
        "predictions": ("10 to 19", 20),  # of ten records nine are predicted
        "dead_letters": ("140", 141),  # and one is a dead letter
    }[where]
    assert reason.startswith(f"{TOPIC}:0:{place} (--skip-to {TOPIC}:0:{end} ")
    assert "a fault" in reason
