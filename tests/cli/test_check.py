"""check: what it finds wrong is what run refuses, all of it, and it changes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import fastavro
import msgspec
import pytest

from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.daemon import preflight
from streamlearn.daemon.process.exits import Exit
from streamlearn.stream import Clicks
from streamlearn.stream.sources.backfill import CUT
from tests.support.schema_registry import FakeRegistry
from tests.support.serialized import serializer

CONFIG = """\
[source]
kind = "file"
paths = ["{directory}/clicks.jsonl"]

[format]
label = "clicked"

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"

[checkpoint]
path = "{directory}/state"

[predictions]
path = "{directory}/predictions.jsonl"

[telemetry]
enabled = false

[run]
until = "end"
"""

BACKFILL = """\
[source]
kind = "kafka"
topics = ["clicks"]
bootstrap = "localhost:9092"

[backfill]
paths = ["{directory}/clicks.jsonl"]
until = "2026-11-18T00:00:00Z"

[format]
label = "clicked"
time = "time"

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"

[checkpoint]
path = "{directory}/state"
"""


@pytest.fixture
def learned(tmp_path: Path) -> Path:
    """A configuration whose run has written a checkpoint."""
    (tmp_path / "clicks.jsonl").write_bytes(b"\n".join(Clicks("clicks", 2).values(0, 500)) + b"\n")
    path = tmp_path / "a.toml"
    path.write_text(CONFIG.format(directory=tmp_path))
    assert main(["run", str(path)]) == Exit.OK
    return path


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_what_run_would_resume_is_valid(learned: Path) -> None:
    before = contents(learned.parent)
    assert main(["check", str(learned)]) == Exit.OK
    assert contents(learned.parent) == before
    assert main(["run", str(learned)]) == Exit.OK


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        ('source.paths=["none.jsonl"]', Exit.NOT_FOUND, "source: none.jsonl"),
        ("predictions.path=none/p.jsonl", Exit.USAGE, "predictions.path: no such directory: none"),
        ("format.positive=true", Exit.USAGE, "checkpoint.path: "),
        ('source.paths=["{there}"]', Exit.USAGE, "source.paths: {there} is a directory"),
        ("predictions.path={there}/clicks.jsonl", Exit.USAGE, "predictions.path: {there}/clicks"),
        ('source.paths=["{there}/*.jsonl"]', Exit.USAGE, "predictions.path: {there}/predictions"),
        ("format.kind=none:read", Exit.USAGE, "format: none:read cannot be imported"),
    ],
)
def test_what_run_refuses_is_refused(
    changed: str, code: Exit, said: str, learned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    there = str(learned.parent)
    changed, said = changed.replace("{there}", there), said.replace("{there}", there)
    events = (learned.parent / "clicks.jsonl").read_bytes()
    assert main(["check", str(learned), "--set", changed]) == Exit.USAGE
    assert said in capsys.readouterr().err
    assert main(["run", str(learned), "--set", changed]) == code
    assert (learned.parent / "clicks.jsonl").read_bytes() == events  # nothing is written there


def test_a_header_without_the_label_is_refused(
    learned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("csv", "json"):
        changed = ["--set", f"format.kind={kind}", "--set", f"checkpoint.path={learned}.{kind}"]
        capsys.readouterr()
        codes = [main([command, str(learned), *changed]) for command in ("check", "run")]
        assert codes == [Exit.USAGE if kind == "csv" else Exit.OK] * 2
        assert ("format: " in capsys.readouterr().err) == (kind == "csv")


def test_all_that_is_wrong_is_told(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = learned.read_text().replace("gamma=5.0", "gamma=6.0").replace("clicks.jsonl", "x.jsonl")
    learned.write_text(text)
    capsys.readouterr()
    assert main(["check", str(learned)]) == Exit.USAGE
    _, *lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["checkpoint.path", "source"]
    assert "gamma=5.0" in lines[0]
    assert "gamma=6.0" in lines[0]
    # without the checkpoint the models may be what they are
    assert main(["check", str(learned), "--set", f"checkpoint.path={learned.parent}/new"]) == 2
    assert "gamma" not in capsys.readouterr().err


def test_a_checkpoint_of_another_part_of_history_is_refused(
    learned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `run` refuses it, which needs a broker to find out."""
    learned.write_text(BACKFILL.format(directory=learned.parent))
    capsys.readouterr()
    assert main(["check", str(learned)]) == Exit.USAGE
    assert "backfill: backfill.until is 2026-11-18" in capsys.readouterr().err
    with_history = config.load(learned)
    without = msgspec.structs.replace(with_history, backfill=None)
    for part, fits in (("", (True, False)), (" ended", (True, True))):
        identity = {CUT: f"2026-11-18T00:00:00+00:00{part}"}
        found = [not [*preflight.history(one, identity)] for one in (with_history, without)]
        assert tuple(found) == fits


def test_a_directory_that_cannot_hold_checkpoints_is_told(
    learned: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, access = learned.parent / "locked", os.access
    place.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != place and access(path, mode))
    assert main(["check", str(learned), "--set", f"checkpoint.path={place}2/state"]) == 0
    capsys.readouterr()
    assert main(["check", str(learned), "--set", f"checkpoint.path={place}/other/state"]) == 2
    assert f"checkpoint.path: {place} is not writable" in capsys.readouterr().err


def test_a_damaged_checkpoint_is_told(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (learned.parent / "state").glob("*.checkpoint"):
        path.write_bytes(b"")
    capsys.readouterr()
    assert main(["check", str(learned)]) == Exit.USAGE
    assert "damaged" in capsys.readouterr().err
    assert main(["run", str(learned)]) == Exit.CHECKPOINT


def test_fields_are_shown_with_examples(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = learned.read_text()
    fields = '[features.fields]\nhour = "category"\nprice = "buckets(5)"\nabsent = "text"\n'
    learned.write_text(text.replace("/state", "/other") + fields)
    capsys.readouterr()
    assert main(["check", "--json", str(learned)]) == Exit.OK
    shown = json.loads(capsys.readouterr().out)["fields"]
    assert shown["hour"]["kind"] == "category"
    [name] = shown["hour"]["example"]
    assert name.startswith("hour=")
    assert isinstance(shown["price"]["example"], str)  # known after the warm-up
    assert shown["absent"] == {"kind": "text"}
    assert shown["user"]["kind"] == "auto"
    assert "clicked" not in shown
    learned.write_text(text + '[features.fields]\nhour = "categry"\nclicked = "number"\n')
    assert main(["check", str(learned)]) == Exit.USAGE
    error = capsys.readouterr().err
    assert "features.fields.hour" in error
    assert "features.fields.clicked" in error


@pytest.mark.parametrize("kind", ["avro", "protobuf", "json-schema"])
def test_fields_are_those_of_the_schema(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeRegistry() as server:
        if kind == "json-schema":
            types = {"ad": {"type": "string"}, "hour": {"type": "integer"}, "click": {}}
            server.add("clicks-value", json.dumps({"properties": types}), "JSON")
        else:
            serializer(kind, server.url)(b"{}")
        text = f"""
        [source]
        kind = "kafka"
        bootstrap = "localhost:1"
        topics = ["clicks"]
        [format]
        kind = "{kind}"
        label = "click"
        [features.fields]
        hour = "category"
        [registry]
        url = "{server.url}"
        [checkpoint]
        path = "{tmp_path}/state"
        """
        path = tmp_path / "a.toml"
        path.write_text(text, encoding="utf-8")
        assert main(["check", str(path), "--json"]) == Exit.OK
        fields = json.loads(capsys.readouterr().out)["fields"]
        assert fields["hour"]["kind"] == "category"
        assert fields["hour"]["type"].split()[0] in {"int", "int32", "integer"}
        assert fields["ad"]["type"].split()[0] == "string"
        assert fields["click"]["kind"] == "label"
        server.fault = (503, b"")  # the configuration is still valid
        assert main(["check", str(path)]) == Exit.OK
        found = capsys.readouterr()
        assert "503" in found.err
        assert "hour" in found.out


def test_fields_of_an_avro_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = [{"name": "ad", "type": "string"}, {"name": "icon", "type": ["null", "bytes"]}]
    user = {"type": "record", "name": "U", "fields": [{"name": "age", "type": "int"}]}
    schema = {"type": "record", "name": "C", "fields": [*fields, {"name": "user", "type": user}]}
    with (tmp_path / "a.avro").open("wb") as file:
        events = [{"ad": "x", "icon": b"i", "user": {"age": 3}}]
        fastavro.writer(file, schema, events)
    text = f"""
    [source]
    kind = "file"
    paths = ["{tmp_path}/a.avro"]
    [format]
    kind = "avro"
    label = "ad"
    """
    path = tmp_path / "a.toml"
    path.write_text(text, encoding="utf-8")
    assert main(["check", str(path)]) == Exit.OK, capsys.readouterr().err
    out = capsys.readouterr().out
    assert "# field user.age: int, auto, such as user.age (3)" in out
    assert "# field ad: string, label" in out
    assert "# field icon: bytes or null, auto, nothing" in out
