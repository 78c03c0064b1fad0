"""The commands on checkpoints in an object store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.daemon.process.exits import Exit
from streamlearn.estimators import checkpoints
from streamlearn.storage import open_store

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
[source]
kind = "synthetic"
stream = "clicks"
events = {events}

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"

[[learner]]
name = "{other}"

[checkpoint]
path = "{bucket}"

[telemetry]
enabled = false

[dead_letters]
path = "{directory}/dead.jsonl"

[run]
until = "end"
"""


@pytest.fixture
def learned(tmp_path: Path, bucket: str) -> Path:
    """A configuration that two runs have learned with."""
    path = tmp_path / "a.toml"
    for events in (400, 900):
        text = CONFIG.format(directory=tmp_path, bucket=bucket, events=events, other="default")
        path.write_text(text)
        assert main(["run", str(path)]) == Exit.OK
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == Exit.OK
    return json.loads(capsys.readouterr().out)


def test_models(learned: Path, bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = shown(capsys, "models", "list", bucket)
    assert [row["valid"] for row in rows] == [True] * len(rows)
    assert rows[0]["steps"] == 900
    newest, older = rows[0]["checkpoint"], rows[-1]["checkpoint"]
    changes = shown(capsys, "models", "diff", bucket, older, newest)["learners"]
    assert set(changes) == {"sparse", "default"}
    assert shown(capsys, "inspect", bucket, "--learner", "sparse")["steps"] == 900
    assert sl.LinearClassifier.load(bucket, learner="sparse").steps == 900
    assert main(["models", "rollback", bucket, older]) == Exit.OK
    assert sl.LinearClassifier.load(bucket, learner="sparse").steps < 900
    assert main(["run", str(learned)]) == Exit.OK
    assert sl.LinearClassifier.load(bucket, learner="sparse").steps == 900


def test_check_tells_where_run_starts_and_writes_nothing(
    learned: Path, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = open_store(bucket).entries()
    newest = checkpoints.valid(bucket)[0].name
    assert shown(capsys, "check", str(learned))["start"] == f"from {bucket}/{newest}, as epoch 3"
    fresh = shown(capsys, "check", str(learned), "--set", f"checkpoint.path={bucket}/fresh")
    assert fresh["start"] == f"from scratch, as epoch 1 of {bucket}/fresh"
    assert open_store(bucket).entries() == before
    assert main(["check", str(learned), "--set", "checkpoint.path=s3://nowhere/a"]) == Exit.USAGE
    assert "NoSuchBucket" in capsys.readouterr().err


def test_removed_learner_is_archived(learned: Path, bucket: str, tmp_path: Path) -> None:
    text = CONFIG.format(directory=tmp_path, bucket=bucket, events=1000, other="another")
    learned.write_text(text)
    assert main(["run", str(learned)]) == Exit.OK
    store = open_store(bucket)
    (name,) = [name for name in store.names() if name.startswith("archive/")]
    (tmp_path / "default.model").write_bytes(store.read(name))
    assert sl.LinearClassifier.load(tmp_path / "default.model").steps == 900


def test_checkpoints_move_between_a_directory_and_a_bucket(
    learned: Path, bucket: str, tmp_path: Path
) -> None:
    store, other = open_store(bucket), open_store(tmp_path / "state")
    (tmp_path / "state").mkdir()
    for name in store.names():
        other.write(name, [store.read(name)])
    moved = ["--set", f"checkpoint.path={tmp_path}/state", "--set", "source.events=1200"]
    assert main(["run", str(learned), *moved]) == Exit.OK
    assert sl.LinearClassifier.load(tmp_path / "state", learner="sparse").steps == 1200
    back = open_store(f"{bucket}/back")
    for name in other.names():
        if name != "archive":
            back.write(name, [other.read(name)])
    again = ["--set", f"checkpoint.path={back}", "--set", "source.events=1500"]
    assert main(["run", str(learned), *again]) == Exit.OK
    assert sl.LinearClassifier.load(str(back), learner="sparse").steps == 1500


def test_unusable_stores_have_their_own_exit_codes(
    learned: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["models", "list", f"{bucket}/nothing"]) == Exit.OK
    assert main(["models", "list", "s3://nowhere/a"]) == Exit.CHECKPOINT
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert main(["models", "list", bucket]) == Exit.DENIED
    assert main(["run", str(learned)]) == Exit.DENIED
