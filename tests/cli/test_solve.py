"""solve: the solution is that of the library, and its model predicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np
import pytest

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.cli.parsing import INTERRUPTED
from streamlearn.hindsight import Progress
from streamlearn.hindsight.sharded.files import file_shards
from streamlearn.stream import Clicks, Fields
from streamlearn.stream.sources.stretch import SMALLEST

if TYPE_CHECKING:
    from pathlib import Path

L, P = sl.losses, sl.penalties
N = 600


@pytest.fixture
def clicks(tmp_path: Path) -> str:
    values = Clicks("clicks", 2).values(0, N)
    for k in range(3):
        (tmp_path / f"{k}.jsonl").write_bytes(b"\n".join(values[k::3]) + b"\n")
    return str(tmp_path / "*.jsonl")


def solved(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["solve", *arguments, "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


@pytest.mark.parametrize("features", [[], ["--hash", "12"]])
def test_the_model_that_is_saved_has_the_solution(
    clicks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], features: list[str]
) -> None:
    path = tmp_path / "clicks.model"
    given = ["--label", "clicked", "--l2", "1e-3", "--gap", "1e-8", "--save", str(path)]
    facts = solved(capsys, clicks, *given, *features, "--shards", "2")
    assert facts["rows"] == N
    assert facts["shards"] == 2
    assert facts["labels"] == [False, True]
    assert 0.0 <= facts["gap"] <= 1e-8
    assert facts["history"][-1]["objective"] == facts["objective"]
    model = sl.LinearClassifier.load(path)
    events = [json.loads(line) for line in Clicks("clicks", 2).values(0, N)]
    signs = np.array([1.0 if event.pop("clicked") else -1.0 for event in events])
    scores = np.array([model.score_one(event) for event in events])
    w = model.coefficients()
    value = L.Logistic().value(scores, signs).mean() + 0.5e-3 * (w**2).sum()
    assert value == pytest.approx(facts["objective"], abs=1e-12)
    assert main(["predict", str(path), str(tmp_path / "0.jsonl")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == N // 3
    model.learn_one(events[0], True)  # it can learn more


def test_several_classes_and_columns_of_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for name in "ab":
        rows = [(f"{10 + rng.integers(3)}", f"{rng.normal():.3f}") for _ in range(60)]
        lines = [f"{'xyz'[int(code) - 10]},{code},{size}" for code, size in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["kind,code,size", *lines]) + "\n")
    path = tmp_path / "kinds.model"
    given = ["--label", "kind", "--loss", "Softmax()", "--l2", "0.01", "--save", str(path)]
    facts = solved(capsys, str(tmp_path / "*.csv"), *given, "--field", "code=category")
    assert facts["method"] == "lbfgs"
    assert sorted(facts["labels"]) == ["x", "y", "z"]
    assert main(["predict", str(path), str(tmp_path / "a.csv")]) == 0
    expected = [line[0] for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    assert capsys.readouterr().out.split() == expected


def test_numbers_are_predicted_with_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.svm").write_text("".join(f"{3 * x + 1} 1:{x}\n" for x in range(20)))
    path = tmp_path / "line.model"
    given = ["--regression", "--l2", "1e-9", "--gap", "1e-9", "--save", str(path)]
    facts = solved(capsys, str(tmp_path / "a.svm"), *given)
    assert facts["labels"] == []
    model = sl.LinearRegressor.load(path)
    assert model.predict_one({1: 100.0}) == pytest.approx(301.0, abs=1e-2)


def test_container_files_are_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = [{"name": "y", "type": "boolean"}, {"name": "x", "type": "double"}]
    schema = fastavro.parse_schema({"type": "record", "name": "Event", "fields": fields})
    for k in range(2):
        events = [{"y": i % 3 == 0, "x": float(i)} for i in range(k, 30, 2)]
        with (tmp_path / f"{k}.avro").open("wb") as file:
            fastavro.writer(file, schema, events)
    facts = solved(capsys, str(tmp_path / "*.avro"), "--label", "y", "--l2", "0.1")
    assert facts["rows"] == 30
    assert facts["labels"] == [False, True]


@pytest.mark.parametrize("loss", ["NDCG()", "ROCArea", "OrdinalRegression()"])
def test_rankings_of_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str], loss: str) -> None:
    rng = np.random.default_rng(1)
    for name in "ab":
        x = rng.normal(size=60)
        rows = [
            {"query": f"{name}{i // 6}", "x": one, "z": rng.normal(), "clicked": int(one > 0.3)}
            for i, one in enumerate(x.tolist())
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "ranker.model"
    given = ["--label", "clicked", "--loss", loss, "--l2", "1e-2", "--save", str(path)]
    facts = solved(capsys, str(tmp_path / "*.jsonl"), *given, "--group", "query", "--shards", "2")
    assert (facts["shards"], facts["groups"]) == (2, 20)
    assert facts["gap"] <= 1e-4
    assert solved(capsys, str(tmp_path / "a.jsonl"), *given, "--shards", "1")["groups"] == 1
    score = sl.LinearRegressor.load(path).predict_one
    assert score({"x": 1.0, "z": 0.0}) > score({"x": -1.0, "z": 0.0})
    # what `test` measures of the model is not what was solved
    assert main(["solve", str(tmp_path / "a.jsonl"), *given]) == 0
    assert "regression" in capsys.readouterr().err
    (tmp_path / "c.jsonl").write_text((tmp_path / "a.jsonl").read_text())
    assert (
        main(["solve", str(tmp_path / "*.jsonl"), *given, "--group", "query", "--shards", "3"]) == 2
    )
    assert "group 'a" in capsys.readouterr().err


def test_fields_are_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    x, noise = rng.integers(0, 99, 400), rng.normal(size=400)
    rows = [
        f"u{i:04},{10 + i % 7},{one},{one + e:.3f}"
        for i, (one, e) in enumerate(zip(x, noise, strict=True))
    ]
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(["id,zip,size,price", *rows]) + "\n")
    model = tmp_path / "prices.model"
    given = [str(path), "--label", "price", "--l2", "1e-6", "--shards", "2", "--save", str(model)]
    assert main(["solve", *given]) == 0
    assert 'id = "ignore"' in capsys.readouterr().out
    names = set(sl.LinearRegressor.load(model).weights)
    assert not [name for name in names if name.startswith("id=")]
    assert "zip=12" in names
    assert sl.LinearRegressor.load(model).predict_one({"size": 50}) == pytest.approx(50, abs=1)
    facts = solved(capsys, *given, "--no-guess", "--regression")
    assert facts["non-zeros"] > 400


def test_a_large_file_is_divided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clicks.jsonl"
    path.write_bytes(b"\n".join(Clicks("clicks", 2).values(0, 24_000)) + b"\n")
    assert path.stat().st_size > 2 * SMALLEST
    given = [str(path), "--label", "clicked", "--l2", "1e-3", "--hash", "8"]
    facts = solved(capsys, *given, "--shards", "2")
    assert (facts["shards"], facts["rows"]) == (2, 24_000)
    whole = solved(capsys, *given, "--shards", "1")
    assert (whole["shards"], whole["rows"]) == (1, 24_000)
    assert facts["objective"] == pytest.approx(whole["objective"], abs=2e-4)


def test_the_progress_is_printed(clicks: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", clicks, "--label", "clicked", "--l2", "1e-3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    header = next(i for i, line in enumerate(lines) if line.split()[:1] == ["iteration"])
    gaps = []
    for line in lines[header + 1 :]:
        if not line:
            break
        _, objective, bound, gap, _ = map(float, line.split())
        assert gap == pytest.approx(objective - bound, rel=0.01, abs=1e-9)
        gaps.append(gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] <= 1e-4


def test_ctrl_c_ends_with_the_best_solution_so_far(
    clicks: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Progress.record

    def interrupted(self: Progress, iteration: int, *given: Any) -> bool:
        if iteration == 3:
            raise KeyboardInterrupt
        return record(self, iteration, *given)

    monkeypatch.setattr(Progress, "record", interrupted)
    given = ["--label", "clicked", "--l2", "1e-3", "--gap", "0", "--json"]
    assert main(["solve", clicks, *given]) == INTERRUPTED
    shown = capsys.readouterr()
    facts = json.loads(shown.out)
    assert facts["gap"] == facts["history"][-1]["gap"] > 0.0
    assert "interrupted" in shown.err


def test_one_feature_is_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{n % 7},{n % 2}\n" for n in range(40)))
    assert main(["solve", str(path), "--label", "y", "--l2", "1e-2"]) == 0
    assert "40 rows, 1 feature\n" in capsys.readouterr().out


def test_a_time_limit_is_a_normal_end(clicks: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--label", "clicked", "--loss", "Hinge()", "--l2", "1e-6", "--gap", "0"]
    assert main(["solve", clicks, *given, "--seconds", "0.01", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["gap"] > 0.0
    assert "time limit" in shown.err


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([], "--l2"),
        (["--l2", "-1"], "--l2"),
        (["--l2", "0.1", "--method", "newtn"], "newton"),
        (["--l2", "0.1", "--method", "sdca"], "newton-cg"),
        (["--l2", "0.1", "--label", "clik"], "--label"),
        (["--l2", "0.1", "--loss", "Hing()"], "Hinge"),
        (["--l2", "0.1", "--ray", "127.0.0.1:1"], "127.0.0.1:1"),
        (["--l2", "0.1", "--group", "user"], "NDCG"),
        (["--l2", "0.1", "--loss", "NDCG", "--shards", "2"], "--group"),
        (["--l2", "0.1", "--loss", "NDGC"], "NDCG"),
    ],
)
def test_wrong_use_is_named(
    clicks: str, capsys: pytest.CaptureFixture[str], given: list[str], named: str
) -> None:
    try:
        code = main(["solve", clicks, "--label", "clicked", *given])
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == 2
    assert named in capsys.readouterr().err


def test_the_command_and_the_library_agree(
    clicks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--label", "clicked", "--l1", "1e-2", "--no-intercept", "--no-guess"]
    facts = solved(capsys, clicks, *given)
    paths = sorted(tmp_path.glob("*.jsonl"))
    shards = file_shards(paths, format="json", fields=Fields(label="clicked"))
    found = sl.hindsight.solve_shards(shards, L.Logistic(), P.L1(1e-2))
    assert facts["objective"] == pytest.approx(found.objective, abs=1e-4)
    assert facts["non-zeros"] == pytest.approx(np.count_nonzero(found.w), abs=3)
