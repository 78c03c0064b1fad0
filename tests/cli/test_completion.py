"""What the shells themselves make of the scripts that complete commands and options."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import subprocess
import time
from typing import TYPE_CHECKING, Self

import pytest

from streamlearn.cli.main import COMMANDS, main
from tests.support.missing import require_program

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 20.0


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    main(["completion", shell])
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_completed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = script(shell, capsys)
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        flags = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out.split("examples:")[0]))
        found = [flag for flag in flags if flag not in shown and f"-l {flag[2:]}" not in shown]
        assert found == []


def test_bash(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "completion"
    file.write_text(script("bash", capsys))

    def completed(*words: str) -> list[str]:
        line = " ".join(shlex.quote(word) for word in ("streamlearn", *words))
        code = f"source {file}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _streamlearn"
        run = subprocess.run(
            [require_program("bash"), "-c", f'{code}; echo "${{COMPREPLY[@]}}"'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stderr == ""
        return run.stdout.split()

    assert completed("ch") == ["check"]
    assert set(COMMANDS) <= set(completed(""))
    assert completed("check", "--js") == ["--json"]
    assert completed("completion", "z") == ["zsh"]
    assert completed("models", "r") == ["rollback"]


def test_fish(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "completion.fish"
    file.write_text(script("fish", capsys))

    def completed(line: str) -> list[str]:
        code = f"source {file}; complete -C {shlex.quote(line)}"
        run = subprocess.run(
            [require_program("fish"), "--no-config", "-c", code],
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stderr == ""
        return [row.split("\t")[0] for row in run.stdout.splitlines()]

    assert completed("streamlearn ch") == ["check"]
    assert set(COMMANDS) <= set(completed("streamlearn "))
    assert completed("streamlearn check --js") == ["--json"]
    assert completed("streamlearn completion z") == ["zsh"]
    assert completed("streamlearn train --on-invalid sk") == ["skip"]


def test_zsh(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "_streamlearn").write_text(script("zsh", capsys))
    with Typed(require_program("zsh"), "-f", "-i") as shell:
        load = f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -D"
        shell.says(f"PS1=; PROMPT_EOL_MARK=; {load}; echo rea''dy\n", "ready")
        for keys, line in (
            ("ch", "check "),
            ("check --js", "check --json "),
            ("completion z", "completion zsh "),
            ("models ro", "models rollback "),
            ("train --on-invalid sk", "train --on-invalid skip "),
        ):
            shell.says(f"streamlearn {keys}\t", f"streamlearn {line}")
            shell.types("\x15")  # the line is dropped


class Typed:
    """A program in a terminal, and what it shows of what is typed."""

    def __init__(self, *command: str) -> None:
        self.command = command
        self.shown = ""

    def __enter__(self) -> Self:
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ["TERM"] = "dumb"
            os.execv(self.command[0], self.command)  # noqa: S606 - a shell is what is tested
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.process, 9)
        os.waitpid(self.process, 0)
        os.close(self.terminal)

    def types(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def says(self, keys: str, answer: str) -> None:
        """Type, and wait for the answer."""
        self.types(keys)
        end = time.monotonic() + SECONDS
        ready = select.poll()
        ready.register(self.terminal, select.POLLIN)
        while answer not in self.shown:
            assert time.monotonic() < end, (keys, answer, self.shown)
            if ready.poll(100):
                self.shown += os.read(self.terminal, 1 << 16).decode(errors="replace")
        self.shown = self.shown.partition(answer)[2]
