"""`train` without an option is as good as what a scikit-learn user makes of a table by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.train import MOST_AREA, MOST_LOSS, clicks, theirs, write
from streamlearn.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
