"""The configurations of config/: each is valid, and learns what it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlearn.cli import main
from streamlearn.daemon import config
from streamlearn.daemon.config import plan

SCENARIOS = sorted(Path(__file__).resolve().parents[2].glob("config/*.toml"))


def test_there_are_scenarios() -> None:
    assert {path.stem for path in SCENARIOS} >= {"quickstart", "clicks", "spam", "regression"}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_each_is_valid_and_its_plan_too(
    path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    (tmp_path / "plan.toml").write_text(shown)
    assert plan.plain(config.load(tmp_path / "plan.toml")) == plan.plain(config.load(path))
    assert main(["check", str(path), "--json"]) == 0


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_each_says_what_it_is_about(path: Path) -> None:
    assert path.read_text().startswith("# ")
