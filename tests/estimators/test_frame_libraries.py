"""Frames of any library, and streams of columns: what river's contract asks of its own models."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import datasets

import streamlearn as sl
from streamlearn.estimators import frames, model_file

if TYPE_CHECKING:
    from collections.abc import Callable


class Library(NamedTuple):
    frame: Callable[..., Any]
    series: Callable[..., Any]


LIBRARIES = {
    "pandas": Library(pd.DataFrame, pd.Series),
    "polars": Library(pl.DataFrame, pl.Series),
    "pyarrow": Library(pa.table, lambda values: pa.chunked_array([values])),
}
MODELS: dict[str, Callable[[], Any]] = {
    "classifier": sl.LinearClassifier,
    "regressor": sl.LinearRegressor,
    "l1": lambda: sl.DualAveragingClassifier(l1=1e-3),
}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    return LIBRARIES[request.param]


def table(model: Any) -> tuple[dict[str, list[Any]], list[Any], list[dict[str, Any]]]:
    data: Any = datasets.TrumpApproval() if model == "regressor" else datasets.Bananas()
    rows = list(data.take(80))
    events = [x for x, _ in rows]
    labels = [float(y) if model == "regressor" else bool(y) for _, y in rows]
    return {name: [x[name] for x in events] for name in events[0]}, labels, events


def packed(model: Any) -> bytes:
    return model_file.pack({**model.state(), "label_name": None})


@pytest.mark.parametrize("model", MODELS)
def test_learn_many_is_the_same_for_all_libraries(model: str, library: Library) -> None:
    columns, labels, events = table(model)
    one, many = MODELS[model](), MODELS[model]()
    for x, y in zip(events, labels, strict=True):
        one.learn_one(x, y)
    many.learn_many(library.frame(columns), library.series(labels))
    assert packed(many) == packed(one)


@pytest.mark.parametrize("model", MODELS)
def test_predict_many_returns_what_it_was_given(model: str, library: Library) -> None:
    columns, labels, events = table(model)
    X, y, found = library.frame(columns), library.series(labels), MODELS[model]()
    found.learn_many(X, y)
    predicted = found.predict_many(X)
    assert type(predicted) is type(y)
    values = nw.from_native(predicted, series_only=True).to_list()
    assert values == [found.predict_one(x) for x in events]


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeError, match="got int"):
        sl.LinearClassifier().learn_arrow(3, label="y")


def test_probabilities_have_a_column_for_each_label(library: Library) -> None:
    columns, labels, events = table("classifier")
    X, model = library.frame(columns), sl.LinearClassifier()
    assert nw.from_native(model.predict_proba_many(X)).columns == []
    model.learn_many(X, library.series(labels))
    shares = model.predict_proba_many(X)
    assert type(shares) is type(X)
    found = nw.from_native(shares, eager_only=True)
    in_pandas = isinstance(X, pd.DataFrame)
    assert list(found.columns) == ([False, True] if in_pandas else ["False", "True"])
    for row, x in zip(found.to_numpy(), events, strict=True):
        assert list(row) == pytest.approx(list(model.predict_proba_one(x).values()), rel=1e-9)


def test_chunks_are_learned_as_one_batch(library: Library) -> None:
    columns, labels, _ = table("regressor")
    whole, chunked = sl.LinearRegressor(), sl.LinearRegressor()
    whole.learn_many(library.frame(columns), library.series(labels))
    for at in range(0, len(labels), 7):
        part = {name: values[at : at + 7] for name, values in columns.items()}
        chunked.learn_many(library.frame(part), library.series(labels[at : at + 7]))
    assert packed(chunked) == packed(whole)


def test_index_and_name_of_pandas_are_kept() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]}, index=[100, 200, 300, 400])
    model = sl.LinearClassifier()
    model.learn_many(X, pd.Series([False, True, False, True], index=X.index, name="label"))
    assert list(model.predict_many(X).index) == list(X.index)
    assert model.predict_many(X).name == "label"
    assert list(model.predict_proba_many(X).index) == list(X.index)


def test_weights_are_numbers_or_series(library: Library) -> None:
    _, labels, events = table("regressor")
    weights = [float(i % 3) for i in range(len(labels))]
    one, many = sl.LinearRegressor(), sl.LinearRegressor()
    for x, y, w in zip(events, labels, weights, strict=True):
        one.learn_one(x, y, w)
        one.learn_one(x, y, 2.0)
        many.learn_many(
            library.frame({name: [value] for name, value in x.items()}),
            library.series([y]),
            library.series([w]),
        )
        many.learn_many(library.frame({n: [v] for n, v in x.items()}), library.series([y]), 2)
    assert packed(many) == packed(one)


# Every type of Arrow that has a meaning: its values, and the same values in an event.
TIMES = [datetime(2026, 1, 5, 13, 30, tzinfo=UTC) + timedelta(hours=7 * i) for i in range(3)]
TYPES: dict[str, tuple[pa.Array[Any], list[Any]]] = {
    "null": (pa.nulls(3), [None] * 3),
    "bool": (pa.array([True, None, False]), [True, None, False]),
    **{
        f"{kind}": (pa.array([1, None, 3], kind), [1, None, 3])
        for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    },
    "large": (pa.array([2**63 + 5, 0, 7], "uint64"), [float(2**63 + 5), 0, 7]),
    "half": (pa.array(np.array([0.5, -2.25, np.nan], np.float16)), [0.5, -2.25, None]),
    "float": (pa.array([0.1, None, float("nan")], "float32"), [float(np.float32(0.1)), None, None]),
    "double": (pa.array([0.1, None, float("nan")]), [0.1, None, None]),
    "string": (pa.array(["ä", None, ""]), ["ä", None, ""]),
    "large string": (pa.array(["ä", None, ""], "large_string"), ["ä", None, ""]),
    "view": (
        pa.array(["ä", None, "longer than twelve"], "string_view"),
        ["ä", None, "longer than twelve"],
    ),
    "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    "numbers in a dictionary": (pa.array([7, None, 7]).dictionary_encode(), [7, None, 7]),
    "decimal": (
        pa.array([Decimal("12.34"), None, Decimal("-0.05")], pa.decimal128(9, 2)),
        [12.34, None, -0.05],
    ),
    "whole decimal": (pa.array([Decimal(12), None, Decimal(-3)], pa.decimal128(9)), [12, None, -3]),
    "wide decimal": (
        pa.array([Decimal("12345678901234567890123.5")] * 3, pa.decimal256(50, 4)),
        [12345678901234567890123.5] * 3,
    ),
    "list": (pa.array([["a", "b", "a"], None, []]), [["a", "b", "a"], None, []]),
    "large list": (pa.array([["a"], None, [None]], pa.large_list(pa.string())), [["a"], None, []]),
    "fixed list": (
        pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string(), 2)),
        [["a", "b"], None, ["c"]],
    ),
    "struct": (
        pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}]),
        [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}],
    ),
    "map": (
        pa.array([[("a", 1.5), ("b", None)], None, []], pa.map_(pa.string(), pa.float64())),
        [{"a": 1.5, "b": None}, None, {}],
    ),
    "texts in a map": (
        pa.array([[("a", "x")], None, []], pa.map_(pa.string(), pa.string())),
        [{"a": "x"}, None, {}],
    ),
}
DECLARED: dict[str, tuple[str, Any, list[Any]]] = {
    **{f"time {unit}": ("time(hour, weekday)", pa.array(TIMES, pa.timestamp(unit, "UTC")), TIMES)
       for unit in ("s", "ms", "us", "ns")},
    "time without a zone": ("time", pa.array([one.replace(tzinfo=None) for one in TIMES]), TIMES),
    "date": ("time(weekday, month)", pa.array([one.date() for one in TIMES]),
             [one.date() for one in TIMES]),
    "date64": ("time(weekday)", pa.array([one.date() for one in TIMES], pa.date64()),
               [one.date() for one in TIMES]),
    "category": ("category", pa.array([2**53 + 1, -7, None]), [2**53 + 1, -7, None]),
    "category of decimals": (
        "category", pa.array([Decimal("1.50"), Decimal("2.00")] * 2, pa.decimal128(9, 2))[:3],
        [1.5, 2.0, 1.5],
    ),
    "category of bools": ("category", pa.array([True, False, None]), [True, False, None]),
    "category of a dictionary": (
        "category", pa.array(["1.0", "TRUE", "1.0"]).dictionary_encode(), ["1.0", "TRUE", "1.0"],
    ),
    "list of integers": ("list", pa.array([[1, 2, 1], None, []]), [[1, 2, 1], None, []]),
    "map": (
        "map", pa.array([[("a", 1.5)], None, []], pa.map_(pa.string(), pa.float64())),
        [{"a": 1.5}, None, {}],
    ),
    "number": ("number(indicator, center=2)", pa.array([1, None, 3]), [1, None, 3]),
}  # fmt: skip


def features(reader: Any, events: list[dict[str, Any]]) -> list[Any]:
    return [reader.read_event(event) for event in events]


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("name", [*TYPES, *(f"declared {name}" for name in DECLARED)])
def test_values_mean_what_they_mean_in_events(name: str, crossed: bool) -> None:
    declared = name.removeprefix("declared ")
    kind, column, values = DECLARED[declared] if declared != name else ("auto", *TYPES[name])
    spec = {"f": kind} | ({"f^g": "interaction"} if crossed else {})
    events = [{"f": value, "g": k % 2} for k, value in enumerate(values)]
    X = pa.table({"f": column, "g": [0, 1, 0]})
    for features_of in (sl.Names, lambda fields: sl.Hashing(8, fields)):
        one = sl.LinearRegressor(features=features_of(fields=spec))
        whole, sliced, streamed = one.clone(), one.clone(), one.clone()
        for k, event in enumerate(events):
            one.learn_one(event, float(k))
        whole.learn_many(X, [0.0, 1.0, 2.0])
        sliced.learn_many(X.slice(0, 1), [0.0])
        sliced.learn_many(X.slice(1), [1.0, 2.0])
        streamed.learn_many(X.to_reader(max_chunksize=2), [0.0, 1.0, 2.0])
        assert packed(whole) == packed(one)
        assert packed(sliced) == packed(one)
        assert packed(streamed) == packed(one)


REFUSED = {
    "times": pa.array(TIMES),
    "bytes": pa.array([b"a", b"b", b"c"]),
    "times of day": pa.array([one.time() for one in TIMES]),
    "durations": pa.array([timedelta(1)] * 3),
    "lists of numbers": pa.array([[1], [2], [3]]),
    "lists of lists": pa.array([[["a"]]] * 3),
    "infinity": pa.array([1.0, 2.0, float("inf")]),
    "maps of lists": pa.array([[("a", ["x"])]] * 3, pa.map_(pa.string(), pa.list_(pa.string()))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_field_can_hold_is_refused_by_row_and_column(name: str) -> None:
    model = sl.LinearRegressor()
    at = 2 if name == "infinity" else 0
    with pytest.raises(sl.InvalidEventError) as refused:
        model.learn_many(pa.table({"good": ["a", "b", "c"], "bad": REFUSED[name]}), [1.0, 2.0, 3.0])
    assert str(refused.value.field).startswith("bad")
    assert f"row {at}" in str(refused.value)
    assert (model.steps, model.reader.size) == (0, 0)
    ignoring = sl.LinearRegressor(features=sl.Names({"bad": "ignore"}))
    ignoring.learn_many(pa.table({"good": ["a"] * 3, "bad": REFUSED[name]}), [1.0, 2.0, 3.0])
    assert ignoring.reader.names() == ["good=a"]


def stream(rows: int, size: int) -> Any:
    draw = np.random.default_rng(5)
    schema = pa.schema({"user": pa.string(), "price": pa.float64(), "clicked": pa.bool_()})

    def batches() -> Any:
        for start in range(0, rows, size):
            n = min(size, rows - start)
            users = pa.array([f"u{k}" for k in draw.integers(50, size=n)])
            cells = [users, pa.array(draw.normal(size=n)), pa.array(draw.random(n) < 0.3)]
            yield pa.record_batch(cells, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


@pytest.mark.parametrize("origin", ["reader", "duckdb", "polars", "batch"])
def test_learn_arrow_reads_the_label_in_a_column(origin: str) -> None:
    whole = stream(1000, 1000).read_all()
    one = sl.LinearClassifier()
    for event in whole.to_pylist():
        label = event.pop("clicked")
        one.learn_one(event, label)
    given: dict[str, Callable[[], Any]] = {
        "reader": lambda: whole.to_reader(max_chunksize=64),
        "duckdb": lambda: duckdb.from_arrow(whole),
        "polars": lambda: pl.from_arrow(whole),
        "batch": lambda: whole.combine_chunks().to_batches()[0],
    }
    many = sl.LinearClassifier()
    many.learn_arrow(given[origin](), label="clicked")
    assert packed(many) == packed(one)
    predicted = many.predict_many(given[origin]() if origin != "batch" else whole)
    rows = whole.drop_columns("clicked").to_pylist()
    assert (
        predicted.to_list()
        if origin == "polars"
        else predicted.to_pylist() == [many.predict_one(row) for row in rows]
    )


def test_rows_without_label_or_weight() -> None:
    X = pa.table({"x": [1.0, 2.0, 3.0], "y": [True, None, False], "w": [None, 5.0, 0.5]})
    one, many = sl.LinearClassifier(), sl.LinearClassifier()
    one.learn_one({"x": 1.0}, True)
    one.learn_one({"x": 3.0}, False, 0.5)
    many.learn_arrow(X, label="y", weight="w")
    assert packed(many) == packed(one)
    with pytest.raises(ValueError, match="'z'"):
        many.learn_arrow(X, label="z")


def test_a_stream_is_learned_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "CHUNK", 100)
    one, many = sl.LinearClassifier(), sl.LinearClassifier()
    for event in stream(1000, 1000).read_all().to_pylist():
        one.learn_one({name: event[name] for name in ("user", "price")}, event["clicked"])
    many.learn_arrow(stream(1000, 1000), label="clicked")
    assert packed(many) == packed(one)
    bad = pa.table({"x": [1.0] * 250 + [float("inf")], "y": [True, False] * 125 + [True]})
    model = sl.LinearClassifier()
    with pytest.raises(sl.InvalidEventError):
        model.learn_arrow(bad, label="y")
    assert model.steps == 200  # the batch with the invalid row is not learned
    with pytest.raises(ValueError, match="251"):
        model.learn_many(bad.to_reader(), [True] * 250)


def test_nothing_is_kept_of_rows_that_are_refused() -> None:
    model = sl.LinearRegressor(features=sl.Names({"x": "buckets(4, warmup=10)"}))
    before = packed(model)
    bad = pa.table({"x": list(range(12)), "a": ["p", "q"] * 6, "b": [*[1.0] * 11, float("inf")]})
    with pytest.raises(sl.InvalidEventError):
        model.learn_many(bad, [1.0] * 12)
    assert packed(model) == before
    model.learn_many(bad.slice(1, 2), [1.0, 2.0])  # the names are looked up again
    assert model.reader.names() == ["a=q", "b", "a=p"]


def test_objects_of_another_kind_are_refused() -> None:
    for X in ([{"a": 1}], np.eye(2), "text", None):
        with pytest.raises(ValueError, match="data frame"):
            sl.LinearRegressor().learn_many(X, [1.0])
    with pytest.raises(ValueError, match="single column"):
        sl.LinearRegressor().learn_many(pa.array([1.0]), [1.0])
    repeated = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ValueError, match="'a'"):
        sl.LinearRegressor().learn_many(repeated, [1.0])


def test_dates_are_refused_in_events_as_in_columns() -> None:
    with pytest.raises(sl.InvalidEventError):
        sl.Names().read_event({"f": date(2026, 1, 1)})
