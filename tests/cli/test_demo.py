"""The demo: its numbers are those of the library, and other seeds give other results."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from streamlearn import config
from streamlearn.cli.actions import demo
from streamlearn.cli.actions.demo import view
from streamlearn.cli.main import main
from streamlearn.config.expressions import parse
from streamlearn.stream import Clicks, Events, JSONDecoder

EVENTS = 12_000


@pytest.fixture(autouse=True)
def _short_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve for the regrets, which no test here looks at, as short as possible."""
    monkeypatch.setattr(view, "SOLVE_SECONDS", 0.01)


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str, saves: str = "--no-save"
) -> dict[str, Any]:
    command = ["demo", "--events", str(EVENTS), "--no-page", "--json", saves, *arguments]
    assert main(command) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    facts.pop("events/s")
    for learner in facts["learners"].values():
        learner.pop("regret")  # solved within a time
    return facts


def test_another_seed_or_no_drift_gives_other_results(capsys: pytest.CaptureFixture[str]) -> None:
    one = run(capsys)
    assert one == run(capsys)
    assert one["events"] == EVENTS
    assert set(one["learners"]) == {table["name"] for table in demo.LEARNERS}
    assert one != run(capsys, "--seed", "5")
    still = run(capsys, "--no-drift")
    assert one["learners"]["default"] != still["learners"]["default"]
    assert one["change"] is not None
    assert still["change"] is None


def test_the_numbers_are_those_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    facts = run(capsys, "--no-drift")
    stream = Clicks("clicks", 1)
    model = parse(demo.LEARNERS[2]["model"])
    fields = config.event_fields(config.FormatConfig(label="clicked"))
    decoder, events = JSONDecoder(model.reader, fields, [model]), Events()
    decoder.decode(stream.values(0, EVENTS), events)
    scores = model.progressive_events(events).scores
    errors = (scores > 0.0) != (events.labels > 0.0)
    errors[0] = True  # no label was known yet
    found = facts["learners"]["pegasos"]
    assert found["error"] == pytest.approx(errors.mean())
    assert found["non-zeros"] == model.nonzero
    truth = stream.truth(EVENTS - 1)
    right = [name for name, value in truth.items() if model.weights.get(name, 0.0) * value > 0.0]
    assert found["real"] == len(right)
    clicks = events.labels.mean()
    assert facts["constant error"] == pytest.approx(min(clicks, 1.0 - clicks))
    wrong = (stream.chances(0, EVENTS) > 0.5) != (events.labels > 0.5)
    assert facts["truth's error"] == pytest.approx(wrong.mean())
    best = min(facts["learners"].values(), key=lambda one: one["error"])
    assert facts["learners"][facts["winner"]] == best
    assert facts["truth's error"] < best["error"] < facts["constant error"]


def test_an_event_is_explained_by_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    facts = run(capsys)["explained"]
    stream = Clicks("clicks", 1, EVENTS // 2)
    event = facts["event"] | {"clicked": facts["clicked"]}
    found = [json.loads(value) for value in stream.values(0, EVENTS)].index(event)
    assert facts["truth"] == pytest.approx(stream.chances(found, 1)[0])
    added = sum(one["truth"] for one in facts["adds"].values())
    assert 1.0 / (1.0 + math.exp(-added)) == pytest.approx(facts["truth"])


def test_what_is_saved_can_be_used_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--events", str(EVENTS), "--no-page", "--save", "a demo"]) == 0
    printed = capsys.readouterr().out.partition("Try next:")[2]
    change, *commands = [line.strip() for line in printed.strip().splitlines()]
    assert shlex.split(change) == ["cd", "a demo"]
    monkeypatch.chdir("a demo")
    assert len(commands) > 3
    for line in commands:
        program, *words = shlex.split(line)
        assert program == "streamlearn"
        assert main(words) == 0
    assert Path("report.html").exists()
    lines = Path("clicks.jsonl").read_bytes().splitlines()
    assert lines == Clicks("clicks", 1, EVENTS // 2).values(EVENTS, len(lines))


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file" / "below")
    assert main(["demo", "--events", "1000", "--no-page", "--save", place]) == 0
    assert "Nothing was saved" in capsys.readouterr().out


def test_plain_lines_have_no_control_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--events", "3000", "--no-page", "--no-save"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "The truth itself errs on" in " ".join(said.split())
    assert "3,000 of 3,000 events" in said
    for line in re.findall(r"^  streamlearn (.*)$", said.partition("Try next")[2], re.MULTILINE):
        assert ended(shlex.split(line)) == 0


def ended(words: list[str]) -> Any:
    """The exit code of a command; --help leaves by an exception."""
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("events", [1, 2, 61])
def test_few_events(events: int, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["demo", "--events", str(events), "--no-page", "--plain", "--no-save"]
    assert main(command) == 0
    assert f"Over {events:,} events" in capsys.readouterr().out


def test_a_person_watches_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    options = argparse.Namespace(events=1200, seed=1, no_drift=False, json=False, fast=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert demo.configured(options).source.rate == pytest.approx(20.0)  # type: ignore[union-attr]
    options.fast = True
    assert demo.configured(options).source.rate is None  # type: ignore[union-attr]
    options.fast, options.json = False, True
    assert demo.configured(options).source.rate is None  # type: ignore[union-attr]


def test_a_taken_port_is_replaced() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert demo.free_port(taken) == 0
    assert demo.free_port(taken) == taken


def test_interrupted_it_summarizes_so_far() -> None:
    command = [sys.executable, "-m", "streamlearn", "demo", "--events", "50000000", "--no-page"]
    command += ["--no-save"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("of 50,000,000 events" in line for line in lines)
        os.kill(process.pid, signal.SIGINT)
        said = "".join(lines)
        assert process.wait(30) == 0
    assert "The truth itself errs on" in " ".join(said.split())


def test_a_terminal_shows_a_table_and_the_page_stays_until_ctrl_c() -> None:
    """A taken port is replaced by another."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # already taken
            other.bind(("127.0.0.1", demo.PAGE_PORT))
            other.listen()
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "streamlearn", "demo", "--events", "20000"]
        command += ["--fast", "--no-save"]
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as run:
            os.close(theirs)
            said = read_until(ours, "press Ctrl-C")
            address = re.search(r"live page: (http://\S+)", said)
            assert address is not None
            with urllib.request.urlopen(f"{address[1]}api/status", timeout=30) as answer:  # noqa: S310
                assert len(json.load(answer)["learners"]) == len(demo.LEARNERS)
            run.send_signal(signal.SIGINT)
            assert run.wait(30) == 0
        os.close(ours)
    assert f"({demo.PAGE_PORT} is taken)" in said
    row = r"pegasos +[\d.]+% +[\d.]+% +[\d,]+ +\d+ +-?[\d.]+ \.\. -?[\d.]+"
    assert re.search(row, said)
    assert "\x1b[?25h" in said  # the cursor is restored


def read_until(terminal: int, end: str) -> str:
    said = ""
    while end not in said:
        said += os.read(terminal, 1 << 16).decode()
    return said
