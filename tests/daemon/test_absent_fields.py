"""Configured fields that no record has are told of: in the log, and by commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.daemon import build
from streamlearn.daemon.absent_fields import MAX_SHOWN, field_hint
from streamlearn.daemon.label_monitor import UNLABELED_RUN
from streamlearn.features import Names
from streamlearn.stream import Events, JSONDecoder
from tests.support.loops import MemoryLog

if TYPE_CHECKING:
    from pathlib import Path

EVENT = {"x": 1.5, "y": True, "amount": 2.0, "key": 7, "at": 1_700_000_000}
PRESENT = {"weight": "amount", "id": "key", "time": "at"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.jsonl"
    found.write_text("".join(json.dumps(EVENT | {"y": k % 3 > 0}) + "\n" for k in range(1100)))
    return found


def warned(path: Path, changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Run a daemon; return its warnings of absent fields, by role."""
    log = MemoryLog()
    source = {"kind": "file", "paths": [str(path)], "batch": 50}
    given: dict[str, Any] = {"source": source, "format.label": "y"}
    given |= {"run.until": "end", "telemetry.enabled": False, "regret.enabled": False, **changes}
    build.loop(config.parse("", overrides=given), log).run()
    lines = log.lines("field absent")
    found = {line["role"]: line for line in lines}
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize("role", PRESENT)
def test_a_misspelled_field_is_logged(path: Path, role: str) -> None:
    fields = {f"format.{one}": name for one, name in PRESENT.items()}
    wrong = PRESENT[role] + "s"
    found = warned(path, {**fields, f"format.{role}": wrong})
    assert found.keys() == {role}
    assert found[role]["level"] == "warning"
    assert (found[role]["field"], found[role]["similar"]) == (wrong, [PRESENT[role]])
    assert found[role]["events"] >= UNLABELED_RUN


def test_the_time_of_delayed_labels(path: Path) -> None:
    """Without times, nothing would time out."""
    labels = {"format.id": "key", "labels.hold_for": 10.0}
    assert warned(path, {**labels, "format.time": "at"}) == {}
    assert warned(path, {**labels, "format.time": "time"}).keys() == {"time"}


def test_a_weight_that_is_always_1_is_there(path: Path) -> None:
    path.write_text(path.read_text().replace('"amount": 2.0', '"amount": 1.0'))
    assert warned(path, {"format.weight": "amount"}) == {}


def test_few_records_do_not_tell(path: Path) -> None:
    path.write_text("\n".join(path.read_text().splitlines()[:900]))
    assert warned(path, {"format.weight": "none"}) == {}


@pytest.mark.parametrize("role", ["weight", "id"])
@pytest.mark.parametrize("command", ["train", "evaluate", "test", "predict"])
def test_commands_name_the_option(
    path: Path, tmp_path: Path, command: str, role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if (command, role) == ("predict", "weight"):
        role = "id"  # the only one that it takes
    model, given = str(tmp_path / "a.model"), [str(path)]
    if command in {"test", "predict"}:
        assert main(["train", str(path), "--label", "y", "--save", model]) == 0
        given = [model, str(path)]
    for name, told in ((PRESENT[role], False), (PRESENT[role] + "s", True)):
        capsys.readouterr()
        assert main([command, *given, "--label", "y", f"--{role}", name]) == 0
        err = capsys.readouterr().err
        assert (f"--{role}" in err) is told
        assert (f"nearest: {PRESENT[role]}" in err) is told


def test_weights_of_rows_to_solve(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("amount", "amounts"):
        assert main(["solve", str(path), "--label", "y", "--l2", "0.1", "--weight", name]) == 0
        assert ("'amounts' (--weight)" in capsys.readouterr().err) is (name == "amounts")


def test_a_declared_field_without_features_is_named(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for declared in ("x=number", "key^x=interaction", "*=auto", "none=ignore"):
        assert main(["train", str(path), "--label", "y", "--field", declared]) == 0
        assert "(--field)" not in capsys.readouterr().err
    assert main(["train", str(path), "--label", "y", "--field", "x,kye=category"]) == 0
    err = capsys.readouterr().err
    assert "'kye' (--field)" in err
    assert "'x'" not in err


@pytest.mark.parametrize(("label", "told"), [("yes", 1), ("true", 0)])
def test_class_weights_of_labels_that_never_occur(path: Path, label: str, told: int) -> None:
    log = MemoryLog()
    given = {
        "source": {"kind": "file", "paths": [str(path)]},
        "format.label": "y",
        "learner": [{"name": "a", "class_weight": {label: 3.0}}],
        "run.until": "end",
        "telemetry.enabled": False,
        "regret.enabled": False,
    }
    build.loop(config.parse("", overrides=given), log).run()
    lines = log.lines("class weights unused")
    assert [(one["learner"], one["of_labels"]) for one in lines] == [("a", [label])] * told


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (None, {"field": None}),
        ("amount", {"field": "amount"}),
        ("amonut", {"field": "amonut", "similar": ["amount"]}),
        ("q", {"field": "q", "fields": ["amount", *(f"f{k:02}" for k in range(MAX_SHOWN - 1))]}),
    ],
)
def test_the_hint_of_a_field(name: str | None, hint: dict[str, Any]) -> None:
    decoder = JSONDecoder(Names())
    record = {"amount": 1.0, **{f"f{k:02}": 1.0 for k in range(30)}}
    decoder.decode([json.dumps(record).encode()], Events())
    assert field_hint(name, decoder) == hint
