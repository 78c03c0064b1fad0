"""Columns of pandas frames of each type mean what their values mean in events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import streamlearn as sl
from streamlearn.estimators import model_file
from streamlearn.estimators.pandas_columns import batch_of_pandas

STAMPS = ["2026-01-05T13:30:00", "2026-07-01T23:59:59", "1969-12-31T05:00:00"]
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
# a column, its values in events, and the declaration of its field
COLUMNS: dict[str, tuple[Any, list[Any], str]] = {
    **{kind: (np.array([1, 0, 3], kind), [1, 0, 3], "auto") for kind in INTEGERS},
    **{
        kind: (pd.array([1, None, 3], kind), [1, None, 3], "auto")
        for kind in ("Int8", "UInt16", "Int64", "UInt64")
    },
    "bool": (np.array([True, False, True]), [True, False, True], "auto"),
    "boolean": (pd.array([True, None, False], "boolean"), [True, None, False], "auto"),
    **{
        kind: (np.array([0.5, np.nan, -2.25], kind), [0.5, None, -2.25], "auto")
        for kind in ("float16", "float32", "float64", ">f8", ">f4")
    },
    "Float32": (pd.array([0.5, None, -2.25], "Float32"), [0.5, None, -2.25], "auto"),
    "text": (np.array(["ä", None, ""], object), ["ä", None, ""], "auto"),
    "string": (pd.array(["ä", None, "x"], "string"), ["ä", None, "x"], "auto"),
    "categories": (pd.Categorical(["b", None, "b"]), ["b", None, "b"], "auto"),
    **{
        f"times in {unit}": (
            np.array(STAMPS, f"datetime64[{unit}]"), STAMPS, "time(hour, weekday, month)",
        )
        for unit in ("s", "ms", "us", "ns")
    },
    "times in a zone": (
        pd.to_datetime(pd.Series(STAMPS)).dt.tz_localize("Asia/Kolkata"),
        [stamp + "+05:30" for stamp in STAMPS],
        "time(hour, weekday, month)",
    ),
}  # fmt: skip


def packed(model: Any) -> bytes:
    return model_file.pack({**model.state(), "label_name": None})


@pytest.mark.parametrize("name", COLUMNS)
def test_values_mean_what_they_mean_in_events(name: str) -> None:
    column, values, kind = COLUMNS[name]
    X = pd.DataFrame({"f": column, "g": [1.0, 2.0, 3.0]})
    one = sl.LinearRegressor(features=sl.Names({"f": kind}))
    many = one.clone()
    for k, value in enumerate(values):
        event = {"f": value, "g": k + 1.0}
        one.learn_one({key: x for key, x in event.items() if x is not None}, float(k))
    many.learn_many(X, pd.Series([0.0, 1.0, 2.0]))
    assert batch_of_pandas(X) is not None
    assert packed(many) == packed(one)


@pytest.mark.parametrize(
    "column",
    [
        np.array(["a", 5, None], object),
        np.array([["a"], ["b"], ["c"]], object).tolist(),
        np.array([1, 2, 3], "timedelta64[s]"),
        np.array([1, 2, 3], complex),
        pd.period_range("2026-01", periods=3, freq="M"),
    ],
)
def test_other_columns_are_read_as_events(column: Any) -> None:
    assert batch_of_pandas(pd.DataFrame({"f": column})) is None
    assert batch_of_pandas(pd.DataFrame({0: [1.0, 2.0]})) is None


def test_a_frame_without_columns_has_rows() -> None:
    model = sl.LinearRegressor()
    model.learn_many(pd.DataFrame(index=range(4)), pd.Series([1.0, 2.0, 3.0, 4.0]))
    assert model.steps == 4
    assert len(model.predict_many(pd.DataFrame(index=range(3)))) == 3
