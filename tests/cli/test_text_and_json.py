"""What commands print for people has what they print for programs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.cli.main import COMMANDS, main, parser
from streamlearn.cli.tables import cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVENTS, MODEL, CONFIG = "events.jsonl", "kept.model", "daemon.toml"
COMMAND_LINES = [
    ["train", EVENTS, "--label", "y"],
    ["test", MODEL, EVENTS],
    ["solve", EVENTS, "--label", "y", "--l2", "0.01"],
    ["evaluate", EVENTS, "--label", "y", "--learners", "default,FTRLClassifier"],
    ["inspect", MODEL],
    ["inspect", MODEL, "--top", "2"],
    ["inspect", MODEL, "--why", "one.json"],
    ["models", "list", "models"],
    ["models", "diff", "models"],
    ["check", CONFIG],
]
# which print the same lines, serve, or show a screen: their tests are elsewhere
OTHERS = {"predict", "serve", "demo", "replay"}
# that differ from run to run; and what text does not show: all points of curves, texts of pictures
VARYING = {
    "seconds",
    "events/s",
    "us/event",
    "seconds to load",
    "seconds to solve",
    "curves",
    "regret stderr",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text")
    rows = [
        {"x": i % 5, "city": "abc"[i % 3], "y": (i % 5 > 2) != (i % 7 == 0)} for i in range(400)
    ]
    (path / EVENTS).write_text("\n".join(map(json.dumps, rows)))
    (path / "one.json").write_text(json.dumps(rows[7]))
    (path / CONFIG).write_text(
        f"""
        source = {{ kind = "file", paths = ["{path}/{EVENTS}"], batch = 1500 }}
        format.label = "y"
        checkpoint = {{ path = "{path}/models", every_events = 100 }}
        telemetry.enabled = false
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        assert main(["train", EVENTS, "--label", "y", "--save", MODEL]) == 0
        for until in ("200", "end"):
            assert main(["run", CONFIG, "--until", until]) == 0
    return path


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in VARYING:
                yield from leaves(item, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, name)
    else:
        yield name, value


def is_shown(value: Any, text: str, numbers: list[float]) -> bool:
    """Whether a value is in a text, a number with a few digits, or as a percentage."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value is None or cell(value) in text
    return any(
        abs(found - shown) <= 0.006 * abs(shown)
        for found in numbers
        for shown in (value, 100.0 * value)
    )


@pytest.mark.parametrize("arguments", COMMAND_LINES, ids=" ".join)
def test_text_has_what_json_has(
    directory: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(directory)
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    if arguments[0] == "train":
        del facts["history"][-1]["since last"]  # the end, which text has as a summary
    assert main(arguments) == 0
    text = capsys.readouterr().out
    plain = re.sub(r"(?<=\d),(?=\d{3})|(?<=\d)_(?=\d{3})", "", text)
    numbers = [float(one) for one in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", plain)]
    found = list(leaves(facts))
    assert len(found) > 5
    missing = [one for one in found if not is_shown(one[1], text, numbers)]
    assert missing == []
    if arguments[0] in {"train", "test", "solve", "inspect"}:
        plain_facts = {name for name, one in facts.items() if not isinstance(one, list | dict)}
        assert all(name in text for name in plain_facts - VARYING)


def test_all_commands_with_json_are_compared() -> None:
    found = {
        name
        for name in COMMANDS
        if any("--json" in one.option_strings for one in parser().commands[name].actions)
    }
    assert found - OTHERS == {line[0] for line in COMMAND_LINES}
