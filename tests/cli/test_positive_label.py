"""The positive label of a model is the same for all that read it, whichever was seen first."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.export import document

if TYPE_CHECKING:
    from pathlib import Path

CASES: list[tuple[tuple[Any, Any], list[str], list[Any]]] = [
    (("spam", "ham"), ["--labels", "ham,spam"], ["ham", "spam"]),
    (("ham", "spam"), ["--labels", "ham,spam"], ["ham", "spam"]),
    (("spam", "ham"), [], ["spam", "ham"]),
    (("1", "0"), [], ["0", "1"]),
    (("true", "false"), [], ["false", "true"]),
    ((2, 1), [], [1, 2]),
]


def written(path: Path, labels: tuple[Any, Any]) -> str:
    """Events whose label follows from x; the first one has the first label."""
    rows = [{"x": i % 2 - 0.5, "y": labels[i % 2]} for i in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("command", ["train", "solve"])
@pytest.mark.parametrize(("labels", "options", "order"), CASES)
def test_what_the_score_is_of(
    command: str,
    labels: tuple[Any, Any],
    options: list[str],
    order: list[Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`probability` is the logistic function of the score, that of the last label."""
    path, saved = written(tmp_path / "a.jsonl", labels), str(tmp_path / "a.model")
    more = ["--l2", "1e-3", "--shards", "1"] if command == "solve" else []
    assert main([command, path, "--label", "y", *options, *more, "--save", saved]) == 0
    model = sl.LinearClassifier.load(saved)
    assert model.labels == order
    assert document(model)["labels"] == order
    capsys.readouterr()
    assert main(["predict", saved, path, "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        told = json.loads(line)
        assert math.isclose(told["probability"], 1.0 / (1.0 + math.exp(-told["score"])))
        assert (told["prediction"] == order[1]) == (told["score"] > 0.0)
    assert main(["test", saved, path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ROC area"] == 1.0
