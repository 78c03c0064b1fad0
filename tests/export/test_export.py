"""Exported models give the scores of the model, in the programs that they are for."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING, Any

import duckdb
import joblib
import numpy as np
import pandas as pd
import pytest

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.errors import IncompatibleError
from streamlearn.export import document, expression
from streamlearn.export.pipeline import pipeline
from streamlearn.features import exact_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

N = 400
WORDS = ["Free", "money", "now", "größe", "it's", "a_b", "x1"]
# by name: a declaration, values as training and SQL see them, and whether scikit-learn can have it
KINDS: dict[str, tuple[str, Callable[[random.Random], Any], bool]] = {
    "number": ("number", lambda r: round(r.gauss(0.0, 3.0), 3), True),
    "clipped": ("number(clip(-1, 2), center=0.5)", lambda r: r.gauss(0.0, 3.0), True),
    "log": ("number(log1p, clip(0, inf))", lambda r: r.gauss(5.0, 9.0), True),
    "gap": ("number(indicator)", lambda r: r.choice([None, 1.5, 2.0, -1.0]), True),
    "mixed": (
        "number(center=1, indicator, invalid='category')",
        lambda r: r.choice([None, "1.5", "-2", "low", "it's", "missing"]),
        True,
    ),
    "dirty": (
        "number(indicator, invalid='missing', clip(-3, 1))",
        lambda r: r.choice([None, "1.5", "-2", "low", "inf", " 7e-1 "]),
        True,
    ),
    "whole": ("number(center=15, invalid='category')", lambda r: r.randrange(30), True),
    "category": ("category", lambda r: r.choice(["a", "b'c", "12", "True", None]), True),
    "id": ("category", lambda r: r.randrange(30), True),
    "flag": ("category", lambda r: r.choice([True, False]), True),
    "many": ("category", lambda r: f"u{r.randrange(60)}", True),
    "buckets": ("buckets(-1.5, 0, 2)", lambda r: r.gauss(0.0, 3.0), True),
    "quantiles": ("buckets(4, warmup=50)", lambda r: r.gauss(0.0, 3.0), True),
    "text": ("text", lambda r: " ".join(r.choices(WORDS, k=r.randrange(1, 6))), True),
    "binary": ("text(binary)", lambda r: ", ".join(r.choices(WORDS, k=3)), True),
    "pairs": ("text(ngrams=2)", lambda r: " ".join(r.choices(WORDS[:3], k=4)), True),
    "tags": ("list(separator=',')", lambda r: ",".join(r.choices(["x", "y z", "7"], k=3)), True),
    "time": ("time(hour, weekday, month)", lambda r: r.randrange(10**9, 2 * 10**9), True),
    "local": ("time(zone='Europe/Berlin')", lambda r: iso(r.randrange(10**9, 2 * 10**9)), True),
    "late": (
        "time(invalid='missing')",
        lambda r: r.choice([iso(r.randrange(10**9, 2 * 10**9)), "someday", None, "1700000000.5"]),
        True,
    ),
    "days": ("time(weekday, unit='ms')", lambda r: day(r.randrange(10**9, 2 * 10**9)), True),
    "auto": ("auto", lambda r: r.choice([0.5, 2.0, None, -1.0]), True),
    "word": ("auto", lambda r: r.choice(["a", "b", "12.0"]), True),
    "map": ("map", lambda r: f"a:{r.random():.3f} b:2", False),
}
NOT_SQL = {"pairs", "map"}
NOT_SKLEARN = {name for name, (_, _, possible) in KINDS.items() if not possible}
MODELS: dict[str, Callable[..., Any]] = {
    "default": sl.LinearClassifier,
    "l1": lambda **given: sl.LinearClassifier(penalty=sl.penalties.L1(1e-3), **given),
    "pegasos": lambda **given: sl.PegasosClassifier(l2=1e-3, **given),
    "ftrl": lambda **given: sl.FTRLClassifier(l1=0.01, **given),
    "regressor": sl.LinearRegressor,
}


def iso(second: int) -> str:
    """Return a time, with an offset in half of the cases."""
    text = str(np.datetime64(second, "s"))
    return text + "+05:30" if second % 2 else text


def day(second: int) -> Any:
    """Return a day, or milliseconds."""
    return iso(second)[:10] if second % 2 else second * 1000


def rows(names: list[str], seed: int = 0) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [{name: KINDS[name][1](draw) for name in names} for _ in range(N)]


def learned(kind: str, names: list[str], **given: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return a model that has learned events, and these events."""
    reader = sl.Names(fields={name: KINDS[name][0] for name in names})
    model, draw = MODELS[kind](features=reader, **given), random.Random(1)
    events = rows(names)
    for event in events:
        signal = sum(hash_of(value) for value in event.values()) + draw.gauss(0.0, 0.5)
        model.learn_one(event, signal if kind == "regressor" else signal > 0.0)
    return model, events


def hash_of(value: Any) -> float:
    """Return a number between -1 and 1 that depends on a value."""
    return math.sin(sum(str(value).encode()))


def by_duckdb(model: Any, events: list[dict[str, Any]]) -> list[Any]:
    table = pd.DataFrame(events)
    with duckdb.connect() as connection:
        connection.register("events", table)
        return [
            score
            for (score,) in connection.sql("FROM events").project(expression(model)).fetchall()
        ]


def by_document(found: dict[str, Any], model: Any, event: dict[str, Any]) -> list[float]:
    """Compute the scores as docs/guides/export.md says, from JSON."""
    found = json.loads(json.dumps(found))
    names = exact_names(model.reader)
    features = [(str(names.name_of(slot)), x) for slot, x in names.read_event(event)]
    scores = []
    for output in found["outputs"]:
        total = output["offset"]
        for member in output["members"]:
            score = member["intercept"]
            for name, value in features:
                size, x = abs(value), value
                if name not in member["weights"]:
                    continue
                w = member["weights"][name]
                if "largest" in member and size > member["largest"][name]:
                    if "wealth" in member:
                        below = size * (member["absolute"][name] + member["beta"] * size)
                        ridge = member["ridge"][name] if "ridge" in member else 0.0
                        w = member["wealth"][name] / (below + ridge)
                    else:
                        x = math.copysign(member["largest"][name], x)
                score += w * x
            if member["low"] is not None:
                score = min(max(score, member["low"]), member["high"])
            total += member["share"] * score
        scores.append(total)
    return scores


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", ["default", "pegasos"])
def test_each_field_kind(kind: str, name: str) -> None:
    model, events = learned(kind, [name])
    # larger numbers than the model has learned, too
    events += [{"number": 1e3}, {"auto": -50.0}] if name in {"number", "auto"} else []
    events = [event for event in events if name in event]
    want = [model.score_one(event) for event in events]
    assert np.ptp(want) > 0.0
    found = document(model)
    got = [by_document(found, model, event)[0] for event in events]
    assert got == pytest.approx(want, abs=1e-9)
    if name in NOT_SQL:
        with pytest.raises(IncompatibleError, match=name):
            expression(model)
    else:
        assert by_duckdb(model, events) == pytest.approx(want, abs=1e-6)
    if name in NOT_SKLEARN:
        with pytest.raises(IncompatibleError, match=name):
            pipeline(model)
    else:
        made = pipeline(model).decision_function(pd.DataFrame(events[:N]))
        assert made == pytest.approx(want[:N], abs=1e-6)


@pytest.mark.parametrize("name", sorted(KINDS.keys() - NOT_SKLEARN))
@pytest.mark.parametrize("types", [None, "numpy_nullable", "pyarrow"])
def test_a_pipeline_takes_columns_of_any_type(name: str, types: Any) -> None:
    model, events = learned("pegasos", [name])
    want = [model.score_one(event) for event in events]
    table = pd.DataFrame(events)
    if types is not None:
        table = table.convert_dtypes(dtype_backend=types)
    assert pipeline(model).decision_function(table) == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_all_fields_together(kind: str, tmp_path: Path) -> None:
    names = sorted(KINDS.keys() - NOT_SQL - NOT_SKLEARN)
    model, events = learned(kind, names)
    want = [model.score_one(event) for event in events]
    assert by_duckdb(model, events) == pytest.approx(want, abs=1e-6)
    joblib.dump(pipeline(model), tmp_path / "a.joblib")
    made, table = joblib.load(tmp_path / "a.joblib"), pd.DataFrame(events)
    if kind == "regressor":
        assert made.predict(table) == pytest.approx(want, abs=1e-6)
        return
    assert made.decision_function(table) == pytest.approx(want, abs=1e-6)
    shares = [model.predict_proba_one(event)[True] for event in events]
    assert made.predict_proba(table)[:, 1] == pytest.approx(shares, abs=1e-6)
    assert made.predict(table).tolist() == [model.predict_one(event) for event in events]


@pytest.mark.parametrize("loss", [sl.losses.Logistic(), sl.losses.Softmax()])
def test_several_classes(loss: Any) -> None:
    rule = sl.rules.AdaGrad() if isinstance(loss, sl.losses.Softmax) else None
    model = sl.LinearClassifier(rule, loss=loss)
    events = rows(["auto", "word"])
    draw = random.Random(2)
    for event in events:
        model.learn_one(event, draw.choice(["z", "b", event["word"]]))
    want = [model.score_one(event) for event in events]
    for got, scores in zip(by_duckdb(model, events), want, strict=True):
        assert got == pytest.approx(scores, abs=1e-6)
    made, table = pipeline(model), pd.DataFrame(events)
    columns = made.decision_function(table)
    labels = len(made.classes_)
    scale = 1.0 if isinstance(loss, sl.losses.Softmax) else 1.0 - 1.0 / labels
    for k, label in enumerate(made.classes_):
        assert columns[:, k] == pytest.approx([scale * one[label] for one in want], abs=1e-6)
    assert made.predict(table).tolist() == [model.predict_one(event) for event in events]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "loss",
    [sl.losses.Logistic(), sl.losses.Softmax(), sl.losses.Hinge(), sl.losses.Exponential()],
    ids=repr,
)
def test_probabilities_are_those_of_the_model(loss: Any, classes: int) -> None:
    model = sl.LinearClassifier(sl.rules.AdaGrad(0.1), loss=loss)
    events, draw = rows(["auto", "word"]), random.Random(4)
    for event in events:
        model.learn_one(event, draw.choice(["b", "z", event["word"]][:classes]))
    made, table = pipeline(model), pd.DataFrame(events)
    want = [model.predict_proba_one(event) for event in events]
    got = made.predict_proba(table)
    assert np.ptp(got) > 0.01
    for k, label in enumerate(made.classes_):
        assert got[:, k] == pytest.approx([one[label] for one in want], abs=1e-6)


@pytest.mark.parametrize("targets", [1, 2])
def test_regressions_that_clip_nothing(targets: int) -> None:
    loss = sl.losses.MultiSquared() if targets > 1 else sl.losses.Squared()
    model = sl.LinearRegressor(sl.rules.AdaGrad(), loss=loss)
    events, draw = rows(["auto", "word"]), random.Random(3)
    for event in events:
        label = hash_of(event["word"]) + draw.gauss(0.0, 0.1)
        model.learn_one(event, label if targets == 1 else [label, 1.0 - label])
    scores: list[Any] = [model.score_one(event) for event in events]
    found = by_duckdb(model, events)
    if targets > 1:
        scores = [list(one.values()) for one in scores]
        found = [list(one.values()) for one in found]
    want = np.array(scores)
    assert np.ptp(want) > 0.1
    assert np.array(found) == pytest.approx(want, abs=1e-6)
    assert pipeline(model).predict(pd.DataFrame(events)) == pytest.approx(want, abs=1e-6)


def test_hashed_weights_are_exported_by_slot() -> None:
    model = sl.LinearClassifier(features=sl.Hashing(bits=8))
    for event in rows(["auto", "word"]):
        model.learn_one(event, event["word"] == "a")
    found = document(model)
    assert found["features"]["bits"] == 8
    assert all(int(name) < 256 for name in found["outputs"][0]["members"][0]["weights"])


def test_what_cannot_be_exported_is_refused_by_name() -> None:
    groups = sl.LinearClassifier(features=sl.Names({"auto^word": "interaction"}))
    mixed = sl.LinearClassifier()
    hashed = sl.LinearClassifier(features=sl.Hashing(bits=8))
    full = sl.LinearClassifier(features=sl.Names(max_names=2))
    for k, event in enumerate(rows(["auto", "word"])):
        groups.learn_one(event, k % 2)
        mixed.learn_one({"price": [2.5, "high"][k % 2]}, k % 2)
        hashed.learn_one(event, k % 2)
        full.learn_one(event, event["word"] == "b")
    for model, name in ((groups, "auto\\^word"), (mixed, "price"), (hashed, "json"), (full, "#")):
        for export in (expression, pipeline):
            with pytest.raises(IncompatibleError, match=name):
                export(model)
    counts = sl.LinearRegressor(sl.rules.AdaGrad(), loss=sl.losses.Poisson())
    counts.learn_one({"x": 1.0}, 3.0)
    with pytest.raises(IncompatibleError, match="Poisson"):
        pipeline(counts)
    alone = sl.LinearClassifier()
    alone.learn_one({"x": 1.0}, "a")
    with pytest.raises(IncompatibleError, match="two"):
        pipeline(alone)
    with pytest.raises(IncompatibleError, match="weight"):
        pipeline(sl.LinearClassifier())


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("user,price,y\n" + "ann,2.5,1\nbob,1.5,0\n" * 50)
    model = str(tmp_path / "a.model")
    assert main(["train", str(path), "--label", "y", "--save", model]) == 0
    capsys.readouterr()
    assert main(["export", model, "--to", "sql"]) == 0
    text = capsys.readouterr().out
    (score,) = duckdb.read_csv(str(path)).project(text).fetchall()[0]
    own = sl.LinearClassifier.load(model)
    assert score == pytest.approx(own.score_one({"user": "ann", "price": 2.5}))
    file = tmp_path / "a.json"
    assert main(["export", model, "--to", "json", "--output", str(file)]) == 0
    assert json.loads(file.read_text())["labels"] == [0, 1]
    file = tmp_path / "a.joblib"
    assert main(["export", model, "--to", "sklearn", "--output", str(file)]) == 0
    assert joblib.load(file).predict(pd.DataFrame({"user": ["ann"], "price": [2.5]})).tolist() == [
        1
    ]
    for wrong in (["--to", "sklearn"], ["--to", "json", "--output", model]):
        assert main(["export", model, *wrong]) == 2
        assert capsys.readouterr().err.startswith("streamlearn export: ")
