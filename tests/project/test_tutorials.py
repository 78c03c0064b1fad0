"""Tutorials are run from top to bottom, as a reader would, in an empty directory."""

from __future__ import annotations

import doctest
import re
import runpy
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.cli.main import main
from tests.project.test_documents import ROOT, TUTORIALS

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: title=\"(.*?)\")?\n(.*?)^```", re.DOTALL | re.MULTILINE)
# a daemon that follows a file does not end, and its port may be taken
ONCE = ["--until", "end", "--set", "source.follow=false", "--set", "telemetry.port=0"]


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    printed = ""  # by the block of commands before
    for language, file, text in BLOCK.findall((ROOT / name).read_text("utf-8")):
        if file == "Output":
            assert [line for line in text.splitlines() if line not in printed] == []
        elif file:
            (tmp_path / file).write_text(text, encoding="utf-8")
            if file.endswith(".py"):
                runpy.run_path(file)
        elif language == "pycon":
            example = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
            assert doctest.DocTestRunner().run(example, clear_globs=False).failed == 0
            names = example.globs
        elif language == "sh":
            printed = ""
            for line in text.splitlines():
                words = shlex.split(line)[1:]
                code = main([*words, *(ONCE if words[0] == "run" else ())])
                output = capsys.readouterr()
                assert code == 0, (line, output.err)
                printed += output.out
