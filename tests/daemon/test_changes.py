"""A daemon that starts again with another source or configuration."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.collectors.regret_trackers import RegretTrackers
from streamlearn.daemon.process.exits import Exit
from streamlearn.errors import (
    SourceChangedError,
)
from streamlearn.estimators import checkpoints, model_file
from streamlearn.stream import (
    Clicks,
    Files,
    Partition,
    Records,
    StandardInput,
    Synthetic,
)
from tests.support.streams import ShuffledSource, event, make_loop

if TYPE_CHECKING:
    from pathlib import Path

from tests.support.loops import MemoryLog, learned, newest, run

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


# -- changed configurations ----------------------------------------------------------------------


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
