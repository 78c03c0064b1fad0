"""Declared fields that change between two runs of the daemon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.daemon.checkpointing import field_changes
from streamlearn.daemon.process.exits import Exit
from streamlearn.estimators import checkpoints

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
[source]
kind = "file"
paths = ["{directory}/events.jsonl"]
[format]
label = "click"
[features]
kind = "{kind}"
[features.fields]
{fields}
[[learner]]
name = "one"
[checkpoint]
path = "{directory}/state"
[telemetry]
enabled = false
[run]
until = "end"
"""
FIELDS = {"user": "category", "price": "number(log1p)", "age": "buckets(4, warmup=30)"}


def run(directory: Path, kind: str, fields: dict[str, str], events: range) -> int:
    with (directory / "events.jsonl").open("a") as file:
        for i in events:
            event = {"user": i % 7, "price": i % 5, "age": (17 * i) % 90, "click": i % 3 == 0}
            file.write(json.dumps(event) + "\n")
    path = directory / "a.toml"
    text = "\n".join(f'{name} = "{field}"' for name, field in fields.items())
    path.write_text(CONFIG.format(directory=directory, kind=kind, fields=text))
    return main(["run", str(path)])


@pytest.mark.parametrize("kind", ["names", "hashing"])
def test_edges_are_in_the_checkpoint(tmp_path: Path, kind: str) -> None:
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    parts.mkdir()
    whole.mkdir()
    for events in (range(20), range(20, 40), range(40, 60)):  # the warm-up ends in the second
        assert run(parts, kind, FIELDS, events) == Exit.OK
    assert run(whole, kind, FIELDS, range(60)) == Exit.OK
    one, other = (checkpoints.model(path / "state", "one") for path in (parts, whole))
    assert one["state"]["features"] == other["state"]["features"]
    assert "edges" in one["state"]["features"]["buckets"]["age"]


def test_fields_are_added_and_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "names", FIELDS, range(50)) == Exit.OK
    fields = {"price": "number(log1p, invalid='missing')", "age": "ignore", "city": "category"}
    capsys.readouterr()
    assert run(tmp_path, "names", fields, range(50, 60)) == Exit.OK
    log = capsys.readouterr().err
    [line] = [line for line in log.splitlines() if "fields changed" in line]
    assert "city" in line
    assert "user" in line
    assert run(tmp_path, "names", {**fields, "price": "category"}, range(1)) == Exit.USAGE
    log = capsys.readouterr().err
    assert "'price'" in log
    assert "ignore" in log


@pytest.mark.parametrize(
    ("old", "new", "names", "allowed"),
    [
        (None, "category", (), True),
        ("category", None, (), True),
        ("category", "text", (), False),
        ("text", "text(ngrams=2)", (), False),
        ("number", "number(indicator, invalid='missing')", (), True),
        ("number", "number(log1p)", (), False),
        ("number(center=2)", "number(center=3)", (), False),
        ("number(center=2)", None, (), False),
        ("number(log1p)", None, (), False),
        ("number(log1p)", "ignore", (), True),
        ("ignore", "number(log1p)", (), True),
        (None, "number(log1p)", (), True),
        (None, "number(log1p)", ("x",), False),
        ("buckets(4)", "buckets(5)", (), False),
        ("time", "time(month)", (), False),
    ],
)
def test_which_changes_are_allowed(
    old: str | None, new: str | None, names: tuple[str, ...], allowed: bool
) -> None:
    before, now = ({} if text is None else {"x": text} for text in (old, new))
    found = field_changes.compare(before, now, names)
    assert bool(found)
    assert (not found.refused) == allowed


def test_all_other_fields_keep_their_kind() -> None:
    assert field_changes.compare({"*": "category"}, {}).refused
    assert field_changes.compare({}, {"*": "ignore"}).refused


def test_a_saved_model_declares_its_fields(tmp_path: Path) -> None:
    lines = [
        json.dumps({"user": i % 7, "price": str(i % 5), "y": i % 2}) + "\n" for i in range(100)
    ]
    (tmp_path / "events.jsonl").write_text("".join(lines))
    saved = str(tmp_path / "a.model")
    assert main([
        "train", str(tmp_path / "events.jsonl"), "--label", "y", "--save", saved,
        "--field", "user,other=category", "--field", "price=number(log1p)",
    ]) == 0  # fmt: skip
    model = sl.LinearClassifier.load(saved)
    assert dict(model.reader.fields) == {
        "user": sl.fields.Category(),
        "other": sl.fields.Category(),
        "price": sl.fields.Number(log1p=True),
    }
    assert {"user=3", "price"} <= set(model.reader.names())
    assert main(["train", str(tmp_path / "events.jsonl"), "--resume", saved]) == 0
    for options in (["--field", "user=text", "--resume", saved], ["--field", "user=wat"],
                    ["--field", "user"], ["--field", "y=category"]):  # fmt: skip
        assert main(["train", str(tmp_path / "events.jsonl"), "--label", "y", *options]) == 2


def test_a_trained_model_starts_a_daemon(tmp_path: Path) -> None:
    """It learns on as `train --resume` does, where its fields are declared."""
    for part, name in enumerate(["early", "late"]):
        lines = [
            json.dumps({"user": i % 7, "price": (i * 37) % 100 / 10, "click": i % 3 == 0})
            for i in range(500 * part, 500 * part + 500)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    early, late = (str(tmp_path / f"{name}.jsonl") for name in ("early", "late"))
    begun, resumed = str(tmp_path / "begun.model"), str(tmp_path / "resumed.model")
    assert main(["train", early, "--label", "click", "--save", begun]) == 0
    assert main(["train", late, "--resume", begun, "--save", resumed]) == 0
    fields = sl.LinearClassifier.load(begun).reader.fields.texts
    assert fields
    declared = "\n".join(f"{name} = {json.dumps(text)}" for name, text in fields.items())
    text = CONFIG.format(directory=tmp_path, kind="names", fields=declared)
    path = tmp_path / "a.toml"
    start = f"name = {json.dumps('one')}\nstart = {json.dumps(begun)}"
    path.write_text(text.replace("events.jsonl", "late.jsonl").replace('name = "one"', start))
    for _ in range(2):  # the second start resumes from the checkpoint
        assert main(["run", str(path)]) == 0
    model = sl.LinearClassifier.load(tmp_path / "state")
    assert model.weights == sl.LinearClassifier.load(resumed).weights
