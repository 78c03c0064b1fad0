"""Data frames: their rows are learned and predicted as events are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamlearn as sl
from streamlearn.errors import InvalidEventError
from streamlearn.estimators import model_file

if TYPE_CHECKING:
    from collections.abc import Callable

N = 120
FEATURES: dict[str, Callable[[], Any]] = {
    "names": sl.Names,
    "few names": lambda: sl.Names(max_names=9),
    "few names, others ignored": lambda: sl.Names(max_names=9, on_full="ignore"),
    "few bytes": lambda: sl.Names(max_bytes=10_000),
    "interactions": lambda: sl.Names({"a number^text": "interaction"}),
    "hashing": lambda: sl.Hashing(bits=18),
    "hashing with collisions": lambda: sl.Hashing(bits=3),
}
MODELS: dict[str, Callable[[Any], Any]] = {
    "default": lambda features: sl.LinearClassifier(features=features),
    "l1": lambda features: sl.DualAveragingClassifier(l1=1e-3, features=features),
    "class weights": lambda features: sl.LinearClassifier(
        features=features, class_weight={"b": 0.0, "a": 2.0}
    ),
    "simplex": lambda features: sl.LinearClassifier(
        sl.rules.DualAveraging(), penalty=sl.penalties.Simplex(), features=features,
        fit_intercept=False,
    ),
    "hinge": lambda features: sl.PegasosClassifier(features=features),
    "softmax": lambda features: sl.LinearClassifier(
        sl.rules.AdaGrad(), sl.losses.Softmax(), features=features
    ),
    "regression": lambda features: sl.LinearRegressor(features=features),
}  # fmt: skip


def columns() -> dict[str, pd.Series[Any]]:
    draw = np.random.default_rng(1)
    words = np.array(["red", "green", "blue", "", "füchsia"])
    text = pd.Series(words[draw.integers(5, size=N)])
    some = pd.Series(draw.random(N) < 0.3)
    return {
        "a number": pd.Series(draw.normal(size=N)),
        "zeros": pd.Series(draw.integers(2, size=N)),
        "single": pd.Series(draw.normal(size=N).astype(np.float32)),
        "bool": pd.Series(draw.random(N) < 0.5),
        "unsigned": pd.Series(draw.integers(2**63, 2**64, size=N, dtype=np.uint64) * 0 + 3),
        "maybe": pd.Series(draw.integers(9, size=N), dtype="Int64").mask(some),
        "maybe bool": pd.Series(draw.random(N) < 0.5, dtype="boolean").mask(some),
        "text": text.astype(object),
        "string": text.astype("string").mask(some),
        "category": text.astype("category").mask(some),
        "object": text.astype(object).where(~some, None),
        "holes": pd.Series(draw.normal(size=N)).mask(some),
        "zeros=1": pd.Series(draw.normal(size=N)),
    }


FRAMES: dict[str, Callable[[], pd.DataFrame]] = {
    "numbers": lambda: pd.DataFrame({name: columns()[name] for name in ("a number", "zeros")}),
    "every kind": lambda: pd.DataFrame(columns()),
    "mixed objects": lambda: pd.DataFrame(columns()).assign(
        mixed=pd.Series([[0.5, "text", ["a", "b"], None][i % 4] for i in range(N)], dtype=object)
    ),
    "numbered columns": lambda: pd.DataFrame(np.random.default_rng(2).normal(size=(N, 3))),
    "names of several levels": lambda: pd.DataFrame(
        {("a", 1): columns()["zeros"], ("a", 2): columns()["text"]}
    ),
    "one slot twice": lambda: pd.DataFrame(
        {"f=x": columns()["a number"], "f": ["x", "y"] * (N // 2)}
    ),
    "long texts": lambda: pd.DataFrame({"long": [f"{i % 9}" * 2000 for i in range(N)]}),
    "no columns": lambda: pd.DataFrame(index=range(N)),
}


def labels(model: Any) -> list[Any]:
    draw = np.random.default_rng(3)
    if isinstance(model, sl.LinearRegressor):
        return list(draw.normal(size=N))
    several = isinstance(model.objective.loss, sl.losses.Softmax) or model.class_weight
    return ["abc"[k] for k in draw.integers(3 if several else 2, size=N)]


def events(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    rows = frame.astype(object).to_dict("records")
    return [
        {name: None if x is pd.NA or x != x else x for name, x in row.items()}  # noqa: PLR0124
        for row in rows
    ]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("frame", FRAMES)
def test_rows_of_frames_equal_events(model: str, features: str, frame: str) -> None:
    if model == "simplex" and features == "hashing":
        features = "hashing with collisions"  # 2^18 weights at every step take too long
    X, one = FRAMES[frame](), MODELS[model](FEATURES[features]())
    many = one.clone()
    rows, y = events(X), labels(one)
    w = np.random.default_rng(4).integers(3, size=N).astype(float)
    for x, label, weight in zip(rows[:80], y, w, strict=False):
        one.learn_one(x, label, weight)
    many.learn_many(X[:80], pd.Series(y[:80]), w[:80])
    assert model_file.pack(many.state()) == model_file.pack(one.state())
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in rows]
    if isinstance(one, sl.LinearClassifier):
        shares = many.predict_proba_many(X)
        for x, share in zip(rows, shares.to_dict("records"), strict=True):
            assert share == pytest.approx(one.predict_proba_one(x), rel=1e-12)
    assert model_file.pack(many.state()) == model_file.pack(one.state())


@pytest.mark.parametrize("bad", [np.inf, b"bytes", "lone \ud800", object()])
def test_invalid_frame_changes_nothing(bad: Any) -> None:
    X = pd.DataFrame(columns())
    X["late"] = pd.Series(["fine"] * (N - 1) + [bad], dtype=object)
    if isinstance(bad, float):
        X["late"] = pd.Series([1.0] * (N - 1) + [bad])
    model = sl.LinearClassifier()
    with pytest.raises(sl.InvalidEventError) as refused:
        model.learn_many(X, pd.Series([True, False] * (N // 2)))
    assert "late" in str(refused.value.field)
    assert f"row {N - 1}" in str(refused.value)
    assert model.steps == 0
    assert model.reader.size == 0


def test_invalid_column_name_is_refused() -> None:
    for column in ([1.0, 2.0], ["a", "b"]):
        with pytest.raises(sl.InvalidEventError):
            sl.LinearClassifier().learn_many(pd.DataFrame({1.5: column}), pd.Series([True, False]))


def test_rows_before_a_diverging_row_are_learned() -> None:
    model = sl.LinearRegressor(sl.rules.GradientDescent(1e3))
    with pytest.raises(sl.DivergenceError):
        model.learn_many(pd.DataFrame({"a": [1e60] * 50}), pd.Series([1.0] * 50))
    assert 0 < model.steps < 50


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
@pytest.mark.parametrize(
    "use",
    [
        lambda model, X: model.learn_many(X, [True, False]),
        lambda model, X: model.predict_many(X),
        lambda model, X: model.predict_proba_many(X),
        lambda model, X: model.learn_arrow(X, "y"),
    ],
    ids=["learn_many", "predict_many", "predict_proba_many", "learn_arrow"],
)
def test_columns_of_one_name_are_refused_and_named(library: str, use: Any) -> None:
    X: Any = pd.DataFrame([[1.0, 2.0, 0], [3.0, 4.0, 1]], columns=["twice", "twice", "y"])
    if library == "pyarrow":
        values = [X.iloc[:, k].to_numpy() for k in range(3)]
        X = pa.Table.from_arrays([pa.array(one) for one in values], names=list(X.columns))
    model = sl.LinearClassifier()
    model.learn_one({"a": 1.0}, True)
    with pytest.raises(InvalidEventError, match="'twice'"):
        use(model, X)
    assert model.steps == 1
