"""A source that the configuration names, in a daemon that stops in between."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.daemon import build, preflight
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.estimators import checkpoints

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from streamlearn.stream import Clicks, Synthetic

def clicks(seed, password=None):
    assert password in {None, "hunter2"}
    return Synthetic(Clicks(seed=seed), events=500, batch=64)

def nothing():
    return "no source"
"""
TEXT = """
[source]
kind = "{kind}"
[source.options]
seed = 3
password = "${{PASSWORD}}"
[format]
label = "clicked"
[telemetry]
enabled = false
[regret]
enabled = false
[checkpoint]
path = "{path}"
[run]
until = "end"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_source.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop_source", raising=False)


def settings(path: Path, kind: str = "shop_source:clicks", **changes: Any) -> config.Config:
    text = TEXT.format(kind=kind, path=path)
    return config.parse(text, overrides=changes, environ={"PASSWORD": "hunter2"})


@pytest.mark.usefixtures("module")
def test_a_source_by_name_resumes_where_it_was(tmp_path: Path) -> None:
    log = Log("json", "error")
    for until in ("137", "end"):
        given = settings(tmp_path / "parts", **{"run.until": until})
        assert build.loop(given, log).run() == Exit.OK
    assert build.loop(settings(tmp_path / "whole"), log).run() == Exit.OK
    parts, whole = (checkpoints.newest(str(tmp_path / name)) for name in ("parts", "whole"))
    assert parts is not None
    assert whole is not None
    assert parts[1]["positions"] == whole[1]["positions"] == [["synthetic", 0, 500]]
    assert parts[1]["counts"]["learned"] == 500
    assert str(parts[1]["learners"]) == str(whole[1]["learners"])


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    "kind", ["shop_source:nothing", "shop_source:none", "no_such_module:f", "shop_source:clicks"]
)
def test_check_finds_what_cannot_be_built(tmp_path: Path, kind: str) -> None:
    wrong = {} if kind != "shop_source:clicks" else {"source.options.sede": 4}
    given = settings(tmp_path / "state", kind, **wrong)
    [problem] = preflight.checkpoint(given)
    assert problem.path == "source"
    assert kind.rpartition(":")[0] in problem.text
