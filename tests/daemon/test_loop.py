"""The daemon's loop: what it learns, publishes and reports, and how it ends."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.process import faults
from streamlearn.daemon.process.exits import Exit
from streamlearn.errors import (
    SinkRefusedError,
    SourceChangedError,
    SourceDeniedError,
    SourceError,
    SourceNotFoundError,
    SourceUnreachableError,
)
from streamlearn.estimators import checkpoints, model_file
from streamlearn.stream import (
    Partition,
    Records,
)
from tests.support.streams import TOPIC, ShuffledSource, event, make_loop, replay_models, skip_to

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamlearn.stream.records import Header
from tests.support.loops import MemoryLog, MemorySink, learned, newest, run

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


@pytest.mark.parametrize("follow", [False, True])
def test_end_of_files_is_logged_once(tmp_path: Path, follow: bool) -> None:
    path, log = tmp_path / "a.jsonl", MemoryLog()
    path.write_bytes(b'{"x":1,"y":0}\n{"x":2,"y":1}\n')
    given = {
        "source": {"kind": "file", "paths": [str(path)], "follow": follow},
        "format.label": "y",
        "learner": [{"name": "it"}],
        "telemetry.port": 0,
        "regret.enabled": False,
    }
    loop = build.loop(config.parse("", overrides=given), log)
    polls = itertools.count()
    poll = loop.source.poll

    def impatient(seconds: float) -> list[Records]:
        if next(polls) == 4:
            loop.stop_requested.set()
        return poll(min(seconds, 0.01))

    loop.source.poll = impatient  # type: ignore[method-assign]
    assert loop.run() == Exit.OK
    lines = log.lines("all records read")
    assert [line["records"] for line in lines] == ([] if follow else [2])
    assert follow or "--until end" in lines[0]["waiting"]


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


@pytest.mark.parametrize(
    ("kind", "code"), [(TypeError, Exit.CRASH), (SinkRefusedError, Exit.SOURCE)]
)
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


class Deadlines:
    """A watchdog that keeps the deadlines it is given."""

    def __init__(self) -> None:
        self.given: list[tuple[float, int]] = []

    def deadline(self, seconds: float, code: int) -> None:
        self.given.append((seconds, int(code)))

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize(
    ("error", "during"),
    [
        (None, Exit.UNSAVED),
        (SourceDeniedError("denied"), Exit.DENIED),
        (SourceUnreachableError("away"), Exit.SOURCE),
    ],
)
def test_an_end_has_deadlines_with_the_code_of_a_hang(
    tmp_path: Path, error: Exception | None, during: Exit
) -> None:
    class Ending(ShuffledSource):
        def poll(self, seconds: float) -> list[Records]:
            if error is not None:
                raise error
            loop.stop_requested.set()
            return super().poll(seconds)

    loop = make_loop(tmp_path, Ending(1, 50), until=None, shutdown_seconds=10.0)
    watchdog: Any = Deadlines()
    loop.watchdog = watchdog
    code = loop.run()
    assert watchdog.given == [(10.0, during), (3.0, code)]
    assert code == (Exit.OK if error is None else during)


def test_records_that_are_skipped_are_counted_and_the_limit_begins_anew(tmp_path: Path) -> None:
    loop = make_loop(tmp_path, ShuffledSource(1, 60))
    assert loop.run() == Exit.OK
    loop = make_loop(tmp_path, ShuffledSource(1, 100), skip_to={Partition(TOPIC, 0): 75})
    limit = loop.pipeline.invalid_limit
    begun: list[int] = []
    loop.pipeline.observers.append(on_start(lambda: begun.append(limit.blocks.count)))
    assert loop.run() == Exit.OK
    assert begun == [0]
    counts = loop.pipeline.counts
    assert (counts.skipped, counts.records) == (15, 60 + 25)


def on_start(action: Any) -> Observer:
    """An observer that does something at the start."""

    class Starting(Observer):
        def on_start(self, learners: Any, status: Any) -> None:
            del learners, status
            action()

    return Starting()
