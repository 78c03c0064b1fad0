"""`train` without an option is as good as what a scikit-learn user makes of a table by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.train import MOST_AREA, MOST_LOSS, clicks, theirs, write
from streamlearn.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def test_it_is_as_good_as_logistic_regression_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, labels = clicks(40_000, seed=1)
    path = tmp_path / "clicks.csv"
    write(path, columns, labels)
    assert main(["train", str(path), "--label", "clicked", "--holdout", "last:20%", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["holdout"]
    loss, area = theirs(columns, labels)
    assert found["loss"] <= MOST_LOSS * loss
    assert found["ROC area"] >= area - MOST_AREA


@pytest.mark.parametrize(("mean", "told"), [(0.0, False), (100.0, False), (-1e4, True)])
def test_labels_far_from_zero_are_told_of(
    mean: float, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"x": k % 7, "y": mean + k % 7}) + "\n" for k in range(200)]
    path.write_text("".join(lines))
    assert main(["train", str(path), "--label", "y", "--regression"]) == 0
    assert ("far from 0" in capsys.readouterr().err) is told


def test_equal_labels_are_not_far_from_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1, "y": 1000.5}\n' * 50)
    assert main(["train", str(path), "--label", "y", "--regression"]) == 0
    assert capsys.readouterr().err == ""
