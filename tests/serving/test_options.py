"""What a server is told by a configuration, and what it finds in a directory."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.errors import ModelFileError
from streamlearn.serving import Snapshot, arrays, build, directory, promotions
from tests.serving.conftest import model, publish
from tests.support.configurations import KAFKA, SYNTHETIC


def parsed(text: str, **tables: Any) -> config.Config:
    return config.parse(text, overrides=tables, environ={})


def test_the_directory_is_that_of_the_table_or_beside_the_checkpoints() -> None:
    assert build.directory_of(parsed(KAFKA)) == Path("state/serving")
    assert build.directory_of(parsed(KAFKA, serve={"path": "there"})) == Path("there")
    with pytest.raises(ValueError, match=r"serve\.path"):
        build.directory_of(parsed(SYNTHETIC))


def test_options_are_those_of_the_configuration(tmp_path: Path) -> None:
    learners = [{"name": "a"}, {"name": "b"}]
    with pytest.raises(ValueError, match="serve"):
        build.options(parsed(KAFKA), tmp_path)
    found = build.options(parsed(KAFKA, learner=learners, serve={"port": 5}), tmp_path)
    assert (found.path, found.counts) == (Path("state/serving"), tmp_path)
    assert (found.settings.port, found.learner) == (5, "a")
    assert found.split is None
    assert found.log is None
    found = build.options(parsed(KAFKA, learner=learners, serve={"learners": ["b"]}), tmp_path)
    assert found.learner == "b"
    split = {"by": "user", "arms": {"a": 0.25, "b": 0.75}, "salt": "s"}
    serve = {"learner": "b", "split": split}
    found = build.options(parsed(KAFKA, learner=learners, serve=serve), tmp_path)
    assert found.learner == "b"
    assert found.split is not None
    assert (found.split.by, found.split.salt) == ("user", "s")


def test_a_log_is_written_to_the_brokers_of_the_source(tmp_path: Path) -> None:
    tables = {
        "source": {"kind": "kafka", "bootstrap": "nowhere:1", "topics": ["clicks", "served"]},
        "format": {"label": "y", "id": "id"},
        "labels": {"topic": "labels"},
        "serve": {"log": {"topic": "served"}},
    }
    found = build.options(parsed(KAFKA, **tables), tmp_path)
    assert found.log is not None
    assert found.log.settings.topic == "served"
    assert build.log_options(None, parsed(KAFKA).source) is None
    assert build.log_options(found.log.settings, parsed(SYNTHETIC).source) is None


def test_fields_of_a_model_file_are_those_that_it_was_trained_on() -> None:
    assert build.fields_of({}) == {}
    found = build.fields_of({"format": {"format.label": "clicked", "format.time": "at"}})
    assert (found["label"], found["time"], found["weight"]) == ("clicked", "at", None)


def test_the_newest_snapshot_of_a_learner_is_found(tmp_path: Path) -> None:
    made = model()
    with pytest.raises(ModelFileError, match="no snapshot"):
        directory.newest(tmp_path / "none")
    (tmp_path / "unlike").write_text("nothing")
    for events in (100, 300, 200):
        publish(tmp_path, made, events)
    found = directory.newest(tmp_path)
    assert Snapshot(found).version.events == 300
    name = Snapshot(found).learner
    assert directory.newest(tmp_path, name) == found
    with pytest.raises(ModelFileError, match="other"):
        directory.newest(tmp_path, "other")
    entry = directory.SnapshotFile(1, 50, "other")
    sl.serving.save(made, tmp_path / entry.name, "other")
    with pytest.raises(ModelFileError, match=f"{name}, other|other, {name}"):
        directory.newest(tmp_path)
    assert directory.newest(tmp_path, name) == found
    assert name in repr(Snapshot(found))


def test_a_snapshot_of_another_format_is_refused(tmp_path: Path) -> None:
    sl.serving.save(model(), tmp_path / "a")
    header, content = arrays.read(tmp_path / "a")
    with pytest.raises(ModelFileError, match="format 99"):
        Snapshot(tmp_path / "a", content=({**header, "format": 99}, content))


@pytest.mark.parametrize("line", [b"{", b'{"learner": 5}', b'"\xff"'])
def test_changes_that_are_damaged_are_named(line: bytes, tmp_path: Path) -> None:
    assert promotions.history(tmp_path) == []
    promotions.promote(tmp_path, "a")
    path = tmp_path / promotions.FILE
    whole = path.read_bytes()
    path.write_bytes(whole + line)  # not whole yet
    assert promotions.current(promotions.history(tmp_path)) == "a"
    path.write_bytes(whole + line + b"\n")
    with pytest.raises(ModelFileError, match=promotions.FILE):
        promotions.history(tmp_path)


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("no such user")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert promotions.user().isdigit()


@pytest.mark.parametrize(
    ("start", "stop", "want"), [(0, 3, "abc"), (1, 2, "b"), (2, 2, ""), (3, 1, "")]
)
def test_names_are_read_by_line(start: int, stop: int, want: str, tmp_path: Path) -> None:
    path = tmp_path / "names"
    directory.append_names(path, ["a", "b"], start=True)
    directory.append_names(path, ["c"])
    assert list(directory.read_names(path, start, stop)) == list(want)
    with pytest.raises(ModelFileError, match="4 names"):
        directory.read_names(path, 0, 4)
    directory.append_names(path, [], start=True)
    assert path.read_bytes() == b""


def test_what_no_snapshot_needs_is_deleted(tmp_path: Path) -> None:
    made = model()
    for epoch, events in ((1, 10), (2, 20), (2, 30), (3, 40)):
        for learner in ("a", "b"):
            entry = directory.SnapshotFile(epoch, events, learner)
            version = sl.serving.Version(epoch, events)
            sl.serving.save(made, tmp_path / entry.name, learner, version=version)
        directory.append_names(tmp_path / f"names-{epoch:010}.jsonl", [], start=True)
    directory.append_names(tmp_path / "names-0000000009.jsonl", [], start=True)  # of the next epoch
    directory.prune(tmp_path, "a", 2)
    left = [(one.epoch, one.events) for one in directory.entries(tmp_path) if one.learner == "a"]
    assert left == [(3, 40), (2, 30)]
    assert sum(one.learner == "b" for one in directory.entries(tmp_path)) == 4
    assert len(list(tmp_path.glob("names-*"))) == 4  # of each epoch of b
    directory.prune(tmp_path, "b", 1)
    assert {path.name for path in tmp_path.glob("names-*")} == {
        "names-0000000002.jsonl",
        "names-0000000003.jsonl",
        "names-0000000009.jsonl",
    }
