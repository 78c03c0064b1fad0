"""train, predict and labels: the same policy as in a daemon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

N = 1200


def written(path: Path, labels: list[Any]) -> str:
    lines = [json.dumps({"word": f"w{i % 7}", "y": labels[i % len(labels)]}) for i in range(N)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_third_class_is_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = written(tmp_path / "a.jsonl", [0, 1, 2]), str(tmp_path / "a.model")
    command = ["train", path, "--label", "y", "--save", model]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert f"{path}:3: " in error
    assert "--labels" in error
    assert main([*command, "--labels", "0,1,2"]) == 0
    assert sl.LinearClassifier.load(model).labels == [0, 1, 2]
    capsys.readouterr()
    assert main(["predict", model, path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[0])
    assert told.keys() == {"id", "prediction", "probabilities", "score"}
    assert set(told["probabilities"]) == {"0", "1", "2"}
    assert max(told["score"], key=told["score"].get) == str(told["prediction"])
    assert sorted(told["score"]) == ["0", "1", "2"]
    assert main(["predict", model, path, "--probability"]) == 0
    columns = capsys.readouterr().out.splitlines()[0].split("\t")
    assert [column.partition("=")[0] for column in columns[1:]] == ["0", "1", "2"]


def test_a_label_with_line_breaks_is_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ["two\nlines", "a\ttab"]
    path, model = written(tmp_path / "a.jsonl", labels), str(tmp_path / "a.model")
    assert main(["train", path, "--label", "y", "--save", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == N
    assert {json.loads(line) for line in lines} <= set(labels)


def test_labels_close_and_stay_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = written(tmp_path / "a.jsonl", ["no", "yes"]), str(tmp_path / "a.model")
    assert main(["train", path, "--label", "y", "--save", model]) == 0
    other = written(tmp_path / "b.jsonl", ["maybe"])
    again = ["train", other, "--resume", model, "--json"]
    capsys.readouterr()
    assert main(again) == 2
    assert "--labels" in capsys.readouterr().err
    assert main([*again, "--on-invalid", "skip", "--labels", "open"]) == 0
    capsys.readouterr()
    assert main([*again, "--labels", "no,yes,maybe"]) == 0
    assert json.loads(capsys.readouterr().out)["learned"] == N
    assert main([*again, "--labels", "no,maybe"]) == 2


@pytest.mark.parametrize("labels", [[True, False, "false", "TRUE"], ["a", "b"]])
def test_probability_is_that_of_the_positive_label(
    labels: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = written(tmp_path / "a.jsonl", labels), str(tmp_path / "a.model")
    assert main(["train", path, "--label", "y", "--save", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[0])
    assert told.keys() == {"id", "prediction", "probability", "score"}
    known = sl.LinearClassifier.load(model)
    assert known.labels == ([False, True] if isinstance(labels[0], bool) else ["a", "b"])
    share = known.predict_proba_one({"word": "w0"})[known.labels[1]]
    assert told["probability"] == pytest.approx(share)


def test_a_batch_of_invalid_lines_has_empty_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = written(tmp_path / "a.jsonl", ["a", "b"]), str(tmp_path / "a.model")
    assert main(["train", path, "--label", "y", "--save", model]) == 0
    (tmp_path / "bad.jsonl").write_text("{\n{\n")
    capsys.readouterr()
    bad = str(tmp_path / "bad.jsonl")
    assert main(["predict", model, bad, "--json", "--on-invalid", "skip"]) == 0
    assert capsys.readouterr().out == "null\nnull\n"


def test_a_number_has_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = written(tmp_path / "a.jsonl", [0.5, 2]), str(tmp_path / "a.model")
    assert main(["train", path, "--label", "y", "--regression", "--save", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[0])
    assert told.keys() == {"id", "prediction", "value", "score"}
    assert told["value"] == told["prediction"]


def test_classes_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.jsonl", [f"label {i}" for i in range(150)])
    command = ["train", path, "--label", "y", "--json", "--rule", "GradientDescent(0.1)"]
    assert main(command) == 2
    assert "--max-classes" in capsys.readouterr().err
    assert main([*command, "--on-invalid", "skip", "--max-classes", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["learned"] == N // 150 * 5


def test_a_label_that_is_misspelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"word": "w", "clicked": i % 2}) for i in range(N)))
    assert main(["train", str(path), "--label", "click"]) == 2
    error = capsys.readouterr().err
    assert error.count("nearest: clicked") == 2  # after the first events, and at the end


def test_labels_that_are_all_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The field is there: that its name is wrong would mislead."""
    path = tmp_path / "a.csv"
    path.write_text("word,clicked\n" + "w,\n" * 5)
    assert main(["train", str(path), "--label", "clicked"]) == 2
    error = capsys.readouterr().err
    assert "label field 'clicked'" in error
    assert "nearest" not in error


def test_a_model_of_labels_has_no_positive_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = written(tmp_path / "a.jsonl", ["a", "b"]), str(tmp_path / "a.model")
    assert main(["train", path, "--label", "y", "--save", model]) == 0
    capsys.readouterr()
    assert main(["train", path, "--label", "y", "--resume", model, "--positive", "a"]) == 2
    error = capsys.readouterr().err
    assert "--positive" in error
    assert "--labels" not in error  # which would not help


def test_the_positive_value_of_a_model_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The booleans that it maps to would be known, and mean the opposite."""
    path, model = written(tmp_path / "a.jsonl", [True, False]), str(tmp_path / "a.model")
    resumed = ["train", path, "--label", "y", "--resume", model]
    assert main(["train", path, "--label", "y", "--save", model]) == 0
    assert main([*resumed, "--positive", "false"]) == 2
    assert "--positive cannot be changed" in capsys.readouterr().err
    mapped = [*resumed, "--positive", "false", "--save", model]
    assert main(["train", path, "--label", "y", "--positive", "false", "--save", model]) == 0
    assert main(mapped) == main(resumed) == 0
    assert main([*resumed, "--positive", "true"]) == 2


def test_a_delimiter_is_named_as_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("word;clicked\nw;1\n")
    assert main(["train", str(path), "--label", "clicked", "--no-guess"]) == 2
    assert "--delimiter" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["train"], ["evaluate", "--seconds", "0.1"]])
@pytest.mark.parametrize(
    ("labels", "options", "named"),
    [
        (["yes", "Yes", "NO", "no", "yes "], [], ["'yes'", "'Yes'", "'NO'", "'yes '"]),
        (["yes", "Yes", "NO", "no"], ["--positive", "yes", "--positive", "Yes"], []),
        (["yes", "no"], [], []),
    ],
)
def test_labels_spelled_alike_are_named(
    command: list[str],
    labels: list[str],
    options: list[str],
    named: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path / "a.jsonl", labels)
    assert main([command[0], path, *command[1:], "--label", "y", *options]) == 0
    said = capsys.readouterr().err
    assert all(one in said for one in named)
    assert ("--positive" in said) == bool(named)
