"""A command that reads standard input says what it waits for, to a person at a terminal only."""

from __future__ import annotations

import argparse
import os
import pty
import subprocess
import sys
import time

import pytest

from streamlearn.cli import waiting

TRAIN = [sys.executable, "-m", "streamlearn", "train", "-", "--format", "csv", "--label", "y"]


def test_a_person_is_told_how_to_end_the_input() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(TRAIN, stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        said = ""
        while "Ctrl-D" not in said:
            said += os.read(ours, 1 << 16).decode()
        os.write(ours, b"x,y\n" + b"1,0\n2,1\n" * 3)
        time.sleep(0.1)  # a line discipline may need it: the end is one only at the start of a line
        os.write(ours, b"\x04")
        while "learned" not in said:
            said += os.read(ours, 1 << 16).decode()
        assert run.wait(30) == 0
    os.close(ours)


def test_a_pipe_is_silent() -> None:
    done = subprocess.run(TRAIN, input=b"x,y\n1,0\n2,1\n", capture_output=True, check=True)
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("files", "guess", "terminal", "told"),
    [
        (["-"], True, True, True),
        (["-"], False, True, False),
        (["-"], True, False, False),
        (["a.csv"], True, True, False),
    ],
)
def test_slow_input_is_explained(
    files: list[str],
    guess: bool,
    terminal: bool,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    options = argparse.Namespace(files=files, guess=guess, command="train")
    with waiting.first_rows(options, 10_000):
        for _ in range(100):
            said = capsys.readouterr().err
            if said or not told:
                break
            time.sleep(0.01)
    assert ("10,000" in said) == told


def test_rows_that_come_soon_need_no_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    options = argparse.Namespace(files=["-"], guess=True, command="train")
    with waiting.first_rows(options, 10_000):
        pass
    assert capsys.readouterr().err == ""
