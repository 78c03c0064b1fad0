"""What the README says of the command line holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamlearn.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> Iterator[str]:
    return iter(re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL))


def test_its_configuration_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "readme.toml"
    file.write_text(next(blocks("toml")), encoding="utf-8")
    assert main(["check", str(file)]) == 0
    assert "sparse" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"`streamlearn ([a-z]+)", README.read_text("utf-8"))))
)
def test_its_commands_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert command in capsys.readouterr().out
