"""CSV with decimal commas: the same as with points."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn.stream import CSVDecoder, Events, Fields
from streamlearn.stream.formats.csv import number, with_point
from tests.features.test_damaged_times import damaged

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = settings(derandomize=True, max_examples=150, deadline=None, database=None)
ROLES = Fields(label="y", weight="w", time="t", id="id")
COLUMNS = ["a", "b", "word", "n", "w", "t", "id", "y"]
DECLARED = {"b": "number(log1p, clip(0, inf), invalid=category)", "n": "buckets(-1.5, 2)"}
numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))
weights = st.floats(0.0, 1e4).map(lambda x: round(x, 2))
rows = st.lists(
    st.tuples(
        numbers, st.one_of(numbers, st.just("none yet")), st.sampled_from(["1,5,2", "x", ","]),
        numbers, weights, weights, st.sampled_from(["7", "1,5"]), numbers,
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip


def with_comma(value: Any, *, grouped: bool) -> str:
    """A number as in German, other values as they are."""
    if isinstance(value, str):
        return value
    text = f"{value:,}" if grouped else repr(value)
    if "e" in text:
        return text.replace(".", ",")
    return text.translate(str.maketrans(",.", ".,"))


def table(rows: Sequence[Sequence[str]]) -> list[bytes]:
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows([COLUMNS, *rows])
    return out.getvalue().encode().splitlines(keepends=True)


def outcome(records: Sequence[bytes], decimal: str, task: Any) -> Any:
    decoder = CSVDecoder(sl.Names(fields=DECLARED), ROLES, [task()], delimiter=";", decimal=decimal)
    events = Events()
    decoder.decode(records, events)
    seen = [events.row_of(i) for i in range(len(events))]
    tags = (events.labels.tolist(), events.weights.tolist(), events.times.tolist(), events.ids)
    return seen, tags, decoder.reader.names(), decoder.types, [one[:2] for one in events.invalid]


@EXAMPLES
@given(rows, st.booleans(), st.sampled_from([sl.LinearRegressor, sl.LinearClassifier]))
def test_the_same_as_with_points(rows: Any, grouped: bool, task: Any) -> None:
    points = table([[str(value) for value in row] for row in rows])
    commas = table([[with_comma(value, grouped=grouped) for value in row] for row in rows])
    assert outcome(commas, ",", task) == outcome(points, ".", task)


GROUPED = ["1.234,5", "-12.345.678,9e-3", "+999.999", "1234,5", ",5E7", "0,", "12.345", "-,"]


@pytest.mark.parametrize("text", GROUPED)
def test_numbers_equal_the_reference(text: str) -> None:
    for one in damaged(text, "019.,-+eE "):
        plain = one.strip(" ")
        form = re.fullmatch(r"([+-]?)(\d{1,3}(?:\.\d{3})+|\d*)(?:,(\d*(?:[eE][+-]?\d+)?))?", plain)
        expected = one  # what has points elsewhere is a number as it is
        if form is not None and ("," in plain or "." in plain):
            whole = form[2].replace(".", "")
            expected = f"{form[1]}{whole}" + ("" if form[3] is None else f".{form[3]}")
        assert number(with_point(one)) == number(expected), one


@pytest.mark.parametrize(
    ("delimiter", "decimal"), [(",", ","), (";", ";"), (";", ""), (";", ",."), (";", None)]
)
def test_invalid_decimals(delimiter: str, decimal: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        CSVDecoder(sl.Names(), delimiter=delimiter, decimal=decimal)
