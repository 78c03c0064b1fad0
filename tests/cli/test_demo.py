"""The demo: its numbers are those of the library, and other seeds give other results."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import Any

import pytest

from streamlearn import config
from streamlearn.cli.actions import demo
from streamlearn.cli.actions.demo.summary import discovered
from streamlearn.cli.main import main
from streamlearn.config.expressions import parse
from streamlearn.stream import Clicks, Events, JSONDecoder

EVENTS = 12_000


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["demo", "--events", str(EVENTS), "--no-page", "--json", *arguments]) == 0
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
    assert one["true weights"] != still["true weights"]


def test_the_numbers_are_those_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    facts = run(capsys, "--no-drift")
    stream = Clicks("clicks", 1)
    model = parse(demo.LEARNERS[2]["model"])
    fields = config.event_fields(config.FormatConfig(label="clicked"))
    decoder, events = JSONDecoder(model.reader, fields, [model]), Events()
    decoder.decode(stream.values(0, EVENTS), events)
    scores = model.progressive_events(events)
    wrong = ((scores > 0.0) != (events.labels > 0.0)).mean()
    found = facts["learners"]["pegasos"]
    assert found["error"] == pytest.approx(wrong)
    assert found["non-zeros"] == model.nonzero
    assert found["found"] == discovered(model.weights, stream.truth(EVENTS - 1))
    clicks = events.labels.mean()
    assert facts["constant error"] == pytest.approx(min(clicks, 1.0 - clicks))
    best = min(facts["learners"].values(), key=lambda one: one["error"])
    assert facts["learners"][facts["winner"]] == best


def test_discovered_counts_truth_features_of_the_right_sign() -> None:
    truth = {"a": 1.0, "b": -2.0, "c": 0.5}
    assert discovered({"a": 3.0, "b": -1.0, "c": 0.1, "d": 0.01}, truth) == 3
    assert discovered({"a": -3.0, "b": -1.0, "d": 5.0, "c": 0.1}, truth) == 1
    assert discovered({}, truth) == 0


def test_plain_lines_have_no_control_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--events", "3000", "--no-page"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "won:" in said
    assert "3,000 of 3,000 events" in said
    for line in re.findall(r"^  streamlearn (.*)$", said.partition("Try next:")[2], re.MULTILINE):
        words = shlex.split(line, comments=True)
        if words[0] == "demo":
            words += ["--events", "100", "--no-page"]
        assert ended(words) == 0


def ended(words: list[str]) -> Any:
    """The exit code of a command; --help leaves by an exception."""
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("events", [1, 2, 61])
def test_few_events(events: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--events", str(events), "--no-page", "--plain"]) == 0
    assert f"Over {events:,} events" in capsys.readouterr().out


def test_a_taken_port_is_replaced() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert demo.free_port(taken) == 0
    assert demo.free_port(taken) == taken


def test_interrupted_it_summarizes_so_far() -> None:
    command = [sys.executable, "-m", "streamlearn", "demo", "--events", "50000000", "--no-page"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("of 50,000,000 events" in line for line in lines)
        os.kill(process.pid, signal.SIGINT)
        said = "".join(lines)
        assert process.wait(30) == 0
    assert "won:" in said


def test_a_terminal_shows_a_table_and_the_page_stays_until_ctrl_c() -> None:
    """A taken port is replaced by another."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # already taken
            other.bind(("127.0.0.1", demo.PAGE_PORT))
            other.listen()
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "streamlearn", "demo", "--events", "20000"]
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as run:
            os.close(theirs)
            said = read_until(ours, "Ctrl-C to stop")
            address = re.search(r"live page: (http://\S+)", said)
            assert address is not None
            with urllib.request.urlopen(f"{address[1]}api/status", timeout=30) as answer:  # noqa: S310
                assert len(json.load(answer)["learners"]) == len(demo.LEARNERS)
            run.send_signal(signal.SIGINT)
            assert run.wait(30) == 0
        os.close(ours)
    assert f"({demo.PAGE_PORT} is taken)" in said
    row = r"pegasos +[\d.]+% +[\d.]+% +[\d.]+ +-?[\d.]+ \.\. -?[\d.]+ +[\d,]+"
    assert re.search(row, said)
    assert "\x1b[?25h" in said  # the cursor is restored


def read_until(terminal: int, end: str) -> str:
    said = ""
    while end not in said:
        said += os.read(terminal, 1 << 16).decode()
    return said
