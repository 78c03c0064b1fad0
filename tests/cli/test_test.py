"""test: the numbers of a saved model on files are those of its predictions."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn import metrics

import streamlearn as sl
from streamlearn.cli.actions.test import MAX_ROWS
from streamlearn.cli.main import main
from streamlearn.stream import Clicks

if TYPE_CHECKING:
    from pathlib import Path

N = 4000


@pytest.fixture
def clicks(tmp_path: Path) -> tuple[Path, Path]:
    """Return files to train on and to test with."""
    paths = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    for place, path in enumerate(paths):
        path.write_bytes(b"\n".join(Clicks("clicks", 2).values(place * N, N)) + b"\n")
    return paths


def trained(tmp_path: Path, path: Path, *options: str) -> Path:
    model = tmp_path / "clicks.model"
    assert main(["train", str(path), "--label", "clicked", "--save", str(model), *options]) == 0
    return model


def found(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["test", *map(str, arguments), "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


@pytest.mark.parametrize("options", [[], ["--hash", "14"]])
def test_numbers_are_those_of_the_predictions(
    options: list[str],
    tmp_path: Path,
    clicks: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = trained(tmp_path, clicks[0], *options)
    facts = found(capsys, path, clicks[1])
    model = sl.LinearClassifier.load(path)
    events = [json.loads(line) for line in clicks[1].read_bytes().splitlines()]
    labels = np.array([event.pop("clicked") for event in events])
    shares = np.array([model.predict_proba_one(event)[True] for event in events])
    assert facts["labeled"] == N
    assert facts["loss"] == pytest.approx(metrics.log_loss(labels, shares))
    assert facts["ROC area"] == pytest.approx(metrics.roc_auc_score(labels, shares), abs=1e-4)
    assert facts["calibration ratio"] == pytest.approx(shares.mean() / labels.mean())
    assert facts["error rate"] == pytest.approx((labels != (shares > 0.5)).mean())
    assert sum(row["weight"] for row in facts["reliability"]) == N
    sums: dict[str, float] = {}
    for event in events:
        for one in model.explain_one(event):
            if one.name is not None:
                field = one.name.partition("=")[0]
                sums[field] = sums.get(field, 0.0) + abs(one.contribution)
    total = sum(sums.values())
    wanted = {name: amount / total for name, amount in sums.items() if amount}
    assert facts["importance"] == pytest.approx(wanted, rel=1e-6)
    assert list(facts["importance"].values()) == sorted(facts["importance"].values(), reverse=True)


@pytest.mark.parametrize("command", ["test", "predict"])
def test_a_renamed_field_is_reported(
    command: str, tmp_path: Path, clicks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = trained(tmp_path, clicks[0])
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_text(clicks[1].read_text().replace('"ad"', '"Ad"'))
    for file, said in ((clicks[1], False), (renamed, True)):
        capsys.readouterr()
        assert main([command, str(path), str(file)]) == 0
        assert (" of ad\n" in capsys.readouterr().err) == said


def test_the_weight_of_negatives_is_said(
    tmp_path: Path, clicks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the model's, and the file may have all of them."""
    path = trained(tmp_path, clicks[0], "--kept", "0.5")
    share = "share of negatives kept"
    page = tmp_path / "page.html"
    assert found(capsys, path, clicks[1], "--report", page)[share] == 0.5
    assert "kept = 0.5" in page.read_text()
    assert share not in found(capsys, path, clicks[1], "--kept", "1", "--report", page)
    assert "kept = 0.5" not in page.read_text()


def test_importance_of_declared_fields_and_interactions(
    tmp_path: Path, clicks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        json.dumps({"ts": 3600 * i, "text": "free money" if i % 3 else "no", "y": i % 3 == 0})
        for i in range(300)
    ]
    clicks[0].write_text("\n".join(lines))
    path = tmp_path / "text.model"
    options = [
        "--field",
        "ts=time(hour, weekday)",
        "--field",
        "text=text",
        "--field",
        "ts^text=interaction",
    ]
    assert main(["train", str(clicks[0]), "--label", "y", *options, "--save", str(path)]) == 0
    facts = found(capsys, path, clicks[0])
    assert facts["importance"].keys() == {"ts", "text", "ts^text"}


def test_several_classes_and_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(0)
    lines = [
        {"x": x, "kind": "<i>" if x > 1.0 else "low" if x < -1.0 else "mid", "size": 3.0 * x}
        for x in draw.normal(size=600).tolist()
    ]
    path, model = tmp_path / "numbers.jsonl", tmp_path / "a.model"
    path.write_text("\n".join(map(json.dumps, lines)))
    main(["train", str(path), "--label", "kind", "--field", "size=ignore", "--save", str(model)])
    page = tmp_path / "page.html"
    facts = found(capsys, model, path, "--report", page)
    assert sum(facts["confusion"][0][name] for name in ("<i>", "low", "mid")) > 0.0
    assert "<i>" not in checked(page)
    options = ["--field", "kind=ignore", "--save", str(model), "--regression"]
    main(["train", str(path), "--label", "size", *options])
    facts = found(capsys, model, path, "--report", page)
    assert facts["R2"] > 0.9
    assert facts["importance"] == {"x": 1.0}
    checked(page)


def test_text_has_what_json_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "rows.jsonl", tmp_path / "a.model"
    lines = [{f"f{i % 40}": 1.0, "x": i % 7, "kind": "abc"[i % 3]} for i in range(300)]
    path.write_text("\n".join(map(json.dumps, lines)))
    main(["train", str(path), "--label", "kind", "--save", str(model)])
    facts = found(capsys, model, path)
    assert main(["test", str(model), str(path)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    tables = {name for name, value in facts.items() if isinstance(value, list | dict)}
    assert tables >= {"confusion", "importance"}
    for name in facts.keys() - tables:
        assert any(" ".join(line).startswith(name) for line in shown), name
    for name in tables:
        at = shown.index([name])
        rows = shown[at + 1 : shown.index([], at) if [] in shown[at:] else None]
        assert len(rows) == 1 + min(len(facts[name]), MAX_ROWS)  # with the names of columns
    rows = shown[shown.index(["confusion"]) + 2 :][:3]
    for row, expected in zip(rows, facts["confusion"], strict=True):
        assert [float(one.replace(",", "")) for one in row if one[0].isdigit()][:3] == [
            value for name, value in expected.items() if name in "abc"
        ]


class Checker(HTMLParser):
    """Collects tags that are open, and what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.loads += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(path: Path) -> str:
    """Return a page whose tags are closed, and which loads nothing and has no unknown numbers."""
    page = path.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.loads == []
    assert "url(" not in page
    assert "<script" not in page
    assert "nan" not in re.sub("<style>.*</style>", "", page, flags=re.DOTALL).lower()
    return page


def test_the_page(
    tmp_path: Path, clicks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = trained(tmp_path, clicks[0]), tmp_path / "page.html"
    assert main(["test", str(path), str(clicks[1]), "--report", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    text = checked(page)
    for title in ("ROC", "Precision and recall", "Calibration", "Scores", "Importance", "Training"):
        assert f"<h2>{title}</h2>" in text
    # one label only: no curves, and no division by zero
    lines = [line for line in clicks[1].read_bytes().splitlines() if b'"clicked":false' in line]
    clicks[1].write_bytes(b"\n".join(lines[:100]))
    assert main(["test", str(path), str(clicks[1]), "--report", str(page)]) == 0
    assert "ROC" not in checked(page).replace("ROC area", "")
    clicks[1].write_bytes(lines[0])
    assert main(["test", str(path), str(clicks[1]), "--report", str(page)]) == 0
    checked(page)


def test_mistakes(
    tmp_path: Path, clicks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = trained(tmp_path, clicks[0])
    for arguments in (
        [path, clicks[1], "--report", clicks[1]],
        [path, clicks[1], "--report", path],
        [path, clicks[1], "--label", "none"],
        [path, tmp_path / "none.jsonl"],
    ):
        assert main(["test", *map(str, arguments)]) == 2
        assert capsys.readouterr().err.startswith("streamlearn test: ")
    clicks[1].write_text('{"age": 3, "clicked": "perhaps"}\n')
    assert main(["test", str(path), str(clicks[1])]) == 2
    assert "perhaps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [("x,w,y\n", "no events"), ("x,w,y\n1,1,\n", "'y'"), ("x,w,y\n1,0,1\n", "weight above 0")],
)
def test_what_cannot_be_measured_is_said(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / "a.csv", str(tmp_path / "m")
    path.write_text("x,w,y\n1,1,0\n2,1,1\n")
    given = [str(path), "--label", "y", "--weight", "w"]
    assert main(["train", *given, "--save", saved]) == 0
    path.write_text(text)
    capsys.readouterr()
    for command in (["test", saved, str(path)], ["train", *given]):
        assert main(command) == 2
        out, err = capsys.readouterr()
        assert said in err
        assert "learned" not in err
        assert not out
