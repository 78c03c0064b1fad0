"""The library and the commands on files work on Windows, which lacks what the daemon needs.

The modules that Windows lacks are made unavailable; wheels.yml runs .ci/smoke.py on Windows.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_POSIX = """
import sys
for name in ("fcntl", "grp", "pwd", "resource", "termios", "streamlearn.daemon.process.heartbeat"):
    sys.modules[name] = None
from streamlearn.cli.main import process
process()
"""


def command(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, *words],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def test_commands_on_files_need_no_posix(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,clicked\n" + "ann,true\nbob,false\n" * 50)
    (tmp_path / "a.toml").write_text('[source]\nkind = "synthetic"\nevents = 10\n')
    for words in (
        ["--version"],
        ["train", "a.csv", "--label", "clicked", "--save", "a.model"],
        ["predict", "a.model", "a.csv"],
        ["inspect", "a.model"],
        ["evaluate", "a.csv", "--label", "clicked", "--seconds", "1"],
        ["check", "a.toml"],
    ):
        done = command(tmp_path, *words)
        assert done.returncode == 0, done.stderr


def test_the_daemon_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[source]\nkind = "synthetic"\nevents = 10\n')
    for words in (["run", "a.toml"], ["demo"], ["models", "list", "state"], ["replay", "a.toml"]):
        done = command(tmp_path, *words)
        assert done.returncode == 2
        assert "Linux or macOS" in done.stderr
        assert len(done.stderr.splitlines()) == 1
