"""Files that commands write: what cannot be written is refused before any work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from streamlearn.cli.main import COMMANDS, main, parser

if TYPE_CHECKING:
    from pathlib import Path

EVENTS, MODEL = "events.jsonl", "kept.model"
LABELED = [EVENTS, "--label", "y"]
COMMAND_LINES: dict[tuple[str, str], list[str]] = {
    ("train", "--save"): LABELED,
    ("solve", "--save"): [*LABELED, "--l2", "0.1"],
    ("evaluate", "--html"): LABELED,
    ("evaluate", "--png"): LABELED,
    ("test", "--report"): [MODEL, EVENTS],
    ("export", "--output"): [MODEL, "--to", "sql"],
}
OUTPUTS = {option for _, option in COMMAND_LINES}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"x": i % 5, "y": i % 3 == 0}) for i in range(60)]
    (tmp_path / EVENTS).write_text("\n".join(rows))
    assert main(["train", *LABELED, "--save", MODEL]) == 0
    return tmp_path


def test_all_outputs_are_known() -> None:
    found = {
        (name, option)
        for name in COMMANDS
        for action in parser().commands[name].actions
        for option in OUTPUTS.intersection(action.option_strings)
    }
    assert found - {("demo", "--save")} == COMMAND_LINES.keys()


@pytest.mark.parametrize("path", ["nowhere/file", ".", "read"])
@pytest.mark.parametrize(("command", "option"), COMMAND_LINES, ids=str)
def test_what_cannot_be_written_is_refused_first(
    directory: Path,
    command: str,
    option: str,
    path: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = COMMAND_LINES[command, option]
    target = given[0] if path == "read" else path
    before = {one.name: one.read_bytes() for one in directory.iterdir()}
    capsys.readouterr()
    assert main([command, *given, option, target]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"streamlearn {command}: {option}: ")
    assert {one.name: one.read_bytes() for one in directory.iterdir()} == before
