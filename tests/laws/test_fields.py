"""The same event has the same features in every format, for every kind of field."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn.columns.batch import batches
from streamlearn.features import fields as kinds
from streamlearn.features import from_state
from streamlearn.features.fields.field import Field
from streamlearn.stream import Events, Fields, decoder_of
from streamlearn.stream.column_rows import ColumnRows

EXAMPLES = settings(derandomize=True, max_examples=80, deadline=None, database=None)
MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}  # in CSV

integers = st.one_of(st.integers(-5, 5), st.integers(-(10**20), 10**20))
floats = st.floats(-1e9, 1e9, allow_subnormal=False)
numbers = st.one_of(st.booleans(), integers, floats)
letters = st.characters(codec="utf-8", categories=["L", "N", "P", "S"], exclude_characters="|")
words = st.text(letters, min_size=1, max_size=6).filter(
    lambda word: word.strip().lower() not in MISSING
)
items = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=5).filter(
    lambda word: word.lower() not in MISSING
)
seconds = st.integers(-2_208_000_000, 4_102_000_000)
iso = seconds.map(lambda second: datetime.fromtimestamp(second, UTC).isoformat())

# Every kind: declarations of it, and values that it takes.
VALUES: dict[str, tuple[list[str], st.SearchStrategy[Any]]] = {
    "auto": (["auto"], st.one_of(integers, floats)),
    "ignore": (["ignore"], st.one_of(integers, words)),
    "number": (
        [
            "number",
            "number(clip(-2, 3))",
            "number(log1p, clip(0, inf), center=1.5)",
            "number(indicator)",
        ],
        numbers,
    ),
    "category": (["category"], st.one_of(numbers, words)),
    "buckets": (["buckets(-1, 0.5, 1000)"], numbers),
    "text": (
        [
            "text",
            "text(ngrams=3)",
            "text(chars=3)",
            "text(words, chars=2, binary)",
            "text(ngrams=2, normalized)",
        ],
        st.lists(words, min_size=1, max_size=8)
        .map(" ".join)
        .filter(lambda text: text.strip().lower() not in MISSING),
    ),
    "time": (
        ["time", "time(hour, month, zone='Europe/Berlin')", "time(weekday, zone='Asia/Kolkata')"],
        st.one_of(seconds, iso),
    ),
    "list": (
        ["list"],
        st.lists(st.one_of(st.integers(-999, 999), st.booleans(), items), min_size=1, max_size=6),
    ),
    "map": (
        ["map"],
        st.dictionaries(items, st.one_of(st.integers(-9, 9), floats), min_size=1, max_size=6),
    ),
}


def test_every_kind_has_values() -> None:
    assert {*VALUES, "interaction"} == Field.kinds().keys()


def declared(kind: str) -> st.SearchStrategy[tuple[str, Any]]:
    specs, values = VALUES[kind]
    return st.tuples(st.sampled_from(specs), values)


several = st.lists(st.sampled_from(sorted(VALUES)).flatmap(declared), min_size=1, max_size=5)


def as_text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{item}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def as_csv(event: dict[str, Any]) -> list[bytes]:
    lines = []
    for row in (list(event), [as_text(value) for value in event.values()]):
        file = io.StringIO()
        csv.writer(file).writerow(row)
        lines.append(file.getvalue().encode())
    return lines


def as_vw(event: dict[str, Any]) -> list[bytes]:
    spaces = []
    for name, value in event.items():
        if isinstance(value, list | dict) or " " in as_text(value):
            spaces.append(f"|{name} {as_text(value)} ")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            spaces.append(f"| {name}:{value} ")
        else:
            spaces.append(f"| {name}={value} ")
    return ["".join(spaces).encode()]


def as_arrow(event: dict[str, Any]) -> ColumnRows:
    columns = {}
    for name, value in event.items():
        if isinstance(value, dict):
            kind = pa.map_(pa.string(), pa.float64())
            columns[name] = pa.array([list(value.items())], kind)
        elif isinstance(value, list):
            columns[name] = pa.array([[str(item) for item in value]])
        else:
            large = type(value) is int and 2**63 <= value < 2**64
            columns[name] = pa.array([value], pa.uint64() if large else None)
    (batch,) = batches(pa.table(columns))
    return ColumnRows(batch, 0, 1)


def row_of(reader: Any, kind: str, records: Any) -> list[tuple[int, float]]:
    events = Events()
    decoder_of(kind, reader, Fields(label=None), grow_always=True).decode(records, events)
    assert not events.invalid
    return events.row_of(0)


def named(reader: Any, row: list[tuple[int, float]]) -> dict[Any, float]:
    return {reader.name_of(slot): value for slot, value in row}


@EXAMPLES
@given(several, st.booleans())
def test_formats_agree(given_fields: list[tuple[str, Any]], cross: bool) -> None:
    event = {f"f{i}": value for i, (_, value) in enumerate(given_fields)}
    spec = {f"f{i}": field for i, (field, _) in enumerate(given_fields)}
    if cross:
        spec["f0^*"] = "interaction"

    def reader() -> sl.Names:
        return sl.Names(spec)

    names = reader()
    row = names.read_event(event)
    assert all(math.isfinite(value) for _, value in row)
    assert names.read_event(event, grow=False) == row
    others: dict[str, Any] = {
        "json": [json.dumps(event).encode()],
        "csv": as_csv(event),
        "vw": as_vw(event),
    }
    if all(type(value) is not int or -(2**63) <= value < 2**64 for value in event.values()):
        others["arrow"] = as_arrow(event)
    for kind, records in others.items():
        other = reader()
        assert row_of(other, kind, records) == row, kind
        assert other.names() == names.names(), kind
        hashed = sl.Hashing(24, spec)
        want = sl.Hashing(24, spec).read_event(event)
        assert row_of(hashed, kind, records) == want, kind
    blanks = ((",", ":"), (" ,\t", "\n:  "), (", ", ": "))
    lines = [json.dumps(event, separators=one).encode() for one in blanks]
    # a decoder that knows the fields of a record reads the next ones another way
    events = Events()
    decoder_of("json", reader(), Fields(label=None), grow_always=True).decode(lines * 2, events)
    assert [events.row_of(k) for k in range(len(events))] == [row] * len(lines) * 2
    model, one = (sl.LinearRegressor(features=reader()) for _ in range(2))
    frame = pd.DataFrame({name: pd.Series([value]) for name, value in event.items()})
    model.learn_many(frame, pd.Series([1.5]))
    one.learn_one(event, 1.5)
    assert model.reader.names() == one.reader.names() == names.names()
    np.testing.assert_equal(model.state(), one.state())
    assert names == from_state(names.state())


SPECS = [spec for kind in sorted(VALUES) for spec in VALUES[kind][0] if "indicator" not in spec]


@pytest.mark.parametrize("spec", SPECS)
@settings(EXAMPLES, max_examples=8)
@given(st.data())
def test_what_other_fields_are_is_what_each_is(spec: str, data: Any) -> None:
    """Declared by `*`, for fields on their own and in another one."""
    values = VALUES[kinds.parse(spec).kind][1]
    event = {"a": data.draw(values), "ü": data.draw(values), "b": {"c": data.draw(values)}}
    each, every = sl.Names({"a": spec, "ü": spec, "b.c": spec}), sl.Names({"*": spec})
    if "map" in spec:
        event, each = {"a": event["a"]}, sl.Names({"a": spec})
    assert named(every, every.read_event(event)) == named(each, each.read_event(event))


def reference(field: Any, value: Any) -> dict[str, float]:
    """What a field named f becomes, in plain Python."""
    text = str(value)
    if isinstance(value, bool) or text.lower() in {"true", "false"}:
        text = text.lower()
    elif isinstance(value, float):
        text = str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    elif isinstance(value, str) and re.fullmatch(r"-?[0-9]+\.0+", text):
        text = text.partition(".")[0]
    text = "0" if text == "-0" else text
    if isinstance(field, kinds.Number):
        x = float(value)
        if field.clip is not None:
            x = min(max(x, field.clip[0]), field.clip[1])
        return {"f": (math.log1p(x) if field.log1p else x) - field.center}
    if isinstance(field, kinds.Category):
        return {f"f={text}": 1.0}
    if isinstance(field, kinds.Buckets):
        assert isinstance(field.edges, tuple)
        edges = [-math.inf, *field.edges, math.inf]
        [k] = [k for k in range(len(edges) - 1) if edges[k] <= value < edges[k + 1]]
        low, high = (f"{edge:g}" for edge in edges[k : k + 2])
        return {f"f=[{low},{high})": 1.0}
    if isinstance(field, kinds.Time):
        zone = ZoneInfo(field.zone)
        moment = (
            datetime.fromisoformat(value).astimezone(zone)
            if isinstance(value, str)
            else datetime.fromtimestamp(value, zone)
        )
        parts = {
            "hour": moment.hour,
            "weekday": f"{moment:%a}".lower(),
            "month": moment.month,
        }
        chosen = [part for part in parts if getattr(field, part)] or ["hour", "weekday"]
        return {f"f.{part}={parts[part]}": 1.0 for part in chosen}
    if isinstance(field, kinds.Text):
        return words_of(field, text)
    raise AssertionError(field)


def words_of(field: kinds.Text, text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    tokens = re.findall(r"\w+", lower)
    names = []
    only_chars = field.chars is not None and not field.words and field.ngrams == 1
    if not only_chars:
        for n in range(1, field.ngrams + 1):
            names += ["f=" + " ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    for token in tokens if field.chars else ():
        padded = f" {token} "
        n = field.chars or 0
        names += ["f~" + padded[i : i + n] for i in range(max(1, len(padded) - n + 1))]
    for name in names:
        found[name] = 1.0 if field.binary else found.get(name, 0.0) + 1.0
    norm = math.sqrt(sum(value * value for value in found.values()))
    return {name: value / norm if field.normalized else value for name, value in found.items()}


@EXAMPLES
@given(st.sampled_from(["number", "category", "buckets", "time", "text"]).flatmap(declared))
def test_fields_are_what_the_documentation_says(one: tuple[str, Any]) -> None:
    text, value = one
    assume("İ" not in str(value))  # its lowercase is two characters
    names = sl.Names(fields={"f": text})
    found = named(names, names.read_event({"f": value}))
    want = {name: x for name, x in reference(kinds.parse(text), value).items() if x != 0.0}
    assert found.keys() == want.keys()
    for name, x in want.items():
        assert found[name] == pytest.approx(x, rel=1e-12)


@EXAMPLES
@given(st.sampled_from(sorted(VALUES)).flatmap(lambda kind: st.sampled_from(VALUES[kind][0])))
def test_text_of_a_field_is_read_back(text: str) -> None:
    field = kinds.parse(text)
    assert kinds.parse(str(field)) == field
    assert eval(repr(field), {**vars(kinds), "inf": math.inf}) == field  # noqa: S307 - its own text


@pytest.mark.parametrize("cut", [0, 7, 19, 20, 35])
@pytest.mark.parametrize("features", [sl.Names, sl.Hashing])
def test_resume_in_the_warm_up(features: Any, cut: int) -> None:
    spec = {"x": "buckets(4, warmup=20)", "y": "buckets(3, warmup=30)"}
    events = [({"x": (7 * i) % 31, "y": i % 5 / 3}, i % 2 == 0) for i in range(60)]
    whole, part = (sl.LinearClassifier(features=features(fields=spec)) for _ in range(2))
    for x, y in events:
        whole.learn_one(x, y)
    for x, y in events[:cut]:
        part.learn_one(x, y)
    state = json.loads(json.dumps(part.reader.state()))
    resumed = sl.LinearClassifier(features=features(fields=spec))
    resumed.restore({**part.state(), "features": state})
    for x, y in events[cut:]:
        resumed.predict_one(x)  # teaches no edges
        resumed.learn_one(x, y)
    np.testing.assert_equal(resumed.state(), whole.state())
    assert set(whole.reader.frozen()["x"]) == {"edges"}


INVALID = [
    ("number", "abc"),
    ("number(log1p)", -2),
    ("buckets(1, 2)", "abc"),
    ("time", "yesterday"),
    ("time", 1_700_000_000_000),  # milliseconds
    ("time", True),
    ("map", "a:b"),
    ("text", "a " * 70_000),
    ("text(chars=2)", "a" * 70_000),
    ("text", "a" * (1 << 20) + "a"),
    ("list", " ".join(map(str, range(70_000)))),
]
INVALID_OBJECTS = [
    ("number", float("nan")),
    ("number", 10**400),
    ("category", float("inf")),
    ("category", ["a"]),
    ("text", {"a": 1}),
    ("list", [["a"]]),
    ("time", [1]),
]


@pytest.mark.parametrize(("field", "value"), INVALID)
@pytest.mark.parametrize("kind", ["json", "csv", "vw", "arrow", "dict"])
def test_invalid_values_are_refused_or_missing(kind: str, field: str, value: Any) -> None:
    event = {"f": value, "g": 2}
    records: dict[str, Any] = {
        "json": [json.dumps(event).encode()],
        "csv": as_csv(event),
        "vw": as_vw(event),
        "arrow": as_arrow(event),
    }
    inside, end = ("(", ")") if "(" not in field else (field[field.index("(") :][:-1] + ", ", ")")
    dropping = f"{field.partition('(')[0]}{inside}invalid=missing{end}"
    lenient = sl.Names(fields={"f": dropping})
    strict = sl.Names(fields={"f": field})
    if kind == "dict":
        with pytest.raises(sl.InvalidEventError) as caught:
            strict.read_event(event)
        assert caught.value.field == "f"
        assert named(lenient, lenient.read_event(event)) == {"g": 2.0}
        return
    events = Events()
    decoder_of(kind, strict, Fields(label=None), grow_always=True).decode(records[kind], events)
    [(_, at_fault, *_)] = events.invalid
    assert at_fault == "f"
    assert len(events) == strict.size == 0
    assert named(lenient, row_of(lenient, kind, records[kind])) == {"g": 2.0}


@pytest.mark.parametrize(("field", "value"), INVALID_OBJECTS)
def test_invalid_objects_are_refused_or_missing(field: str, value: Any) -> None:
    with pytest.raises(sl.InvalidEventError) as caught:
        sl.Names(fields={"f": field}).read_event({"f": value})
    assert caught.value.field == "f"
    lenient = sl.Names(fields={"f": f"{field}(invalid=missing)"})
    assert lenient.read_event({"f": value}) == []


def test_other_fields_and_inner_fields() -> None:
    spec = {"*": "ignore", "user.id": "category", "ad": "auto"}
    event = {"user": {"id": 7, "age": 3}, "ad": {"size": 2.0}, "debug": {"took": 1}, "x": 5}
    names = sl.Names(fields=spec)
    row = names.read_event(event)
    assert named(names, row) == {"user.id=7": 1.0, "ad.size": 2.0}
    json_names = sl.Names(fields=spec)
    assert row_of(json_names, "json", [json.dumps(event).encode()]) == row
    assert json_names.names() == names.names()
    flat = {"user.id": 7, "user.age": 3, "ad.size": 2.0, "debug.took": 1, "x": 5}
    csv_names = sl.Names(fields=spec)
    assert row_of(csv_names, "csv", as_csv(flat)) == row
    assert csv_names.names() == names.names()
    vw_names = sl.Names(fields=spec)
    line = b"|user id:7 age:3 |ad size:2.0 |debug took:1 | x:5"
    assert row_of(vw_names, "vw", [line]) == row
    assert vw_names.names() == names.names()
    every = sl.Names(fields={"*": "category"})
    assert set(named(every, every.read_event(event))) == {
        "user.id=7", "user.age=3", "ad.size=2", "debug.took=1", "x=5",
    }  # fmt: skip
