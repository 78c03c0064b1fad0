"""Delayed labels of which none meets its event are told of in the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.label_monitor import UNLABELED_RUN
from streamlearn.daemon.process.exits import Exit
from tests.support.loops import MemoryLog

if TYPE_CHECKING:
    from pathlib import Path

COUNT = UNLABELED_RUN + 100


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def warnings(paths: list[str], labels: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a daemon to the end of files; return its warnings of labels without events."""
    log = MemoryLog()
    given: dict[str, Any] = {
        "source": {"kind": "file", "paths": paths},
        "format": {"label": "y", "id": "key"},
        "labels": {"hold_events": 10_000, **labels},
        "run.until": "end",
        "telemetry.enabled": False,
        "regret.enabled": False,
    }
    assert build.loop(config.parse("", overrides=given), log).run() == Exit.OK
    return log.lines("no events of labels")


@pytest.mark.parametrize("count", [5, COUNT])
def test_events_that_have_their_labels(count: int, tmp_path: Path) -> None:
    rows = [{"key": k, "x": k % 5, "y": k % 2 == 0} for k in range(count)]
    [line] = warnings([written(tmp_path / "a.jsonl", rows)], {})
    assert line["level"] == "warning"
    assert line["labels"] == count
    assert "[labels]" in line["remedy"]


def test_it_is_told_while_the_stream_goes_on(tmp_path: Path) -> None:
    rows = [{"key": k, "x": k % 5, "y": k % 2 == 0} for k in range(3 * COUNT)]
    [line] = warnings([written(tmp_path / "a.jsonl", rows)], {})
    assert UNLABELED_RUN <= line["labels"] < 3 * COUNT


@pytest.mark.parametrize(("shift", "told"), [(0, 0), (COUNT, 1)])
def test_ids_that_differ(shift: int, told: int, tmp_path: Path) -> None:
    events = [{"key": k, "x": k % 5} for k in range(COUNT)]
    labels = [{"id": k + shift, "y": k % 2 == 0} for k in range(COUNT)]
    paths = [written(tmp_path / "a.jsonl", events), written(tmp_path / "b.jsonl", labels)]
    assert len(warnings(paths, {"topic": paths[1], "id": "id"})) == told
