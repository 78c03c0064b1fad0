"""Avro: what fastavro writes becomes what the same values become as a dict."""

import io
import json
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn import fields
from streamlearn.errors import SchemaError
from streamlearn.stream import Events, Fields
from streamlearn.stream.formats.avro import AvroDecoder
from streamlearn.stream.formats.schemas import AvroSchema
from tests.support.formats import read, same


def record(*members: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Event",
        "fields": [{"name": name, "type": kind} for name, kind in members],
    }


def written(schema: Any, *events: Any) -> list[bytes]:
    parsed = fastavro.parse_schema(schema, {})
    records = []
    for event in events:
        to = io.BytesIO()
        fastavro.schemaless_writer(to, parsed, event)
        records.append(to.getvalue())
    return records


def decoder(schema: Any, roles: Fields | None = None, **options: Any) -> AvroDecoder:
    return AvroDecoder(AvroSchema(schema), sl.Names(**options), roles, grow_always=True)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(["a", "b", "price", "user_id", "x1", "long_name_of_a_field"])
LEAVES = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    ("long", st.integers(-(1 << 63), (1 << 63) - 1)),
    ("float", st.floats(allow_nan=False, allow_infinity=False, width=32)),
    ("double", NUMBERS),
    ("string", TEXTS),
]


@st.composite
def typed(draw: Any, depth: int = 0) -> tuple[Any, Any]:
    """A schema and a strategy of its values."""
    kinds = ["leaf"] * 3 + ["union", "strings", "enum", *(["map", "record"] if depth < 2 else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        leaf: tuple[Any, Any] = draw(st.sampled_from(LEAVES))
        return leaf
    if kind == "union":
        schema, values = draw(st.sampled_from(LEAVES[1:]))
        return ["null", schema], st.none() | values
    if kind == "strings":
        return {"type": "array", "items": "string"}, st.lists(TEXTS, max_size=20)
    if kind == "enum":
        symbols = ["RED", "GREEN", "BLUE"]
        name = f"E{draw(st.integers(0, 10**9))}"
        return {"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(symbols)
    if kind == "map":
        schema, values = draw(typed(depth + 1))
        return {"type": "map", "values": schema}, st.dictionaries(TEXTS, values, max_size=4)
    inner: tuple[Any, Any] = draw(records(depth + 1))
    return inner


@st.composite
def records(draw: Any, depth: int = 0) -> tuple[Any, Any]:
    members = draw(st.dictionaries(NAMES, typed(depth), min_size=1, max_size=4))
    schema = record(*[(name, kind) for name, (kind, _) in members.items()])
    schema["name"] = f"R{draw(st.integers(0, 10**9))}"
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in members.items()})


@given(st.data())
def test_records_become_what_their_values_become(data: Any) -> None:
    schema, values = data.draw(records())
    events = data.draw(st.lists(values, min_size=1, max_size=5))
    try:
        encoded = written(schema, *events)
    except fastavro.schema.SchemaParseException:  # two types of one name
        return
    read_back = [
        fastavro.schemaless_reader(io.BytesIO(one), fastavro.parse_schema(schema, {}), None)
        for one in encoded
    ]
    same(decoder(schema), encoded, read_back)


@given(st.data())
def test_bytes_that_were_cut_or_changed_never_crash(data: Any) -> None:
    schema, values = data.draw(records())
    event = data.draw(values)
    try:
        (encoded,) = written(schema, event)
    except fastavro.schema.SchemaParseException:
        return
    spoiled = bytearray(encoded)
    for _ in range(data.draw(st.integers(0, 3))):
        if spoiled:
            spoiled[data.draw(st.integers(0, len(spoiled) - 1))] = data.draw(st.integers(0, 255))
    reader = decoder(schema)
    events = read(reader, [bytes(spoiled[: data.draw(st.integers(0, len(spoiled)))]), encoded])
    assert events.records == 2
    assert all(bad.number < 2 for bad in events.invalid)


LOGICAL = {
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, 12.25),
    "fixed decimal": (
        {
            "type": "fixed",
            "name": "D",
            "size": 5,
            "logicalType": "decimal",
            "precision": 9,
            "scale": 2,
        },
        -12.25,
    ),
    "date": ({"type": "int", "logicalType": "date"}, 20_000),
    "millis": ({"type": "long", "logicalType": "timestamp-millis"}, 1_700_000_000_123),
    "micros": ({"type": "long", "logicalType": "timestamp-micros"}, 1_700_000_000_123_456),
}
PYTHON = {
    "decimal": Decimal("12.25"),
    "fixed decimal": Decimal("-12.25"),
    "date": date(1970, 1, 1) + timedelta(20_000),
    "millis": datetime.fromtimestamp(1_700_000_000.123, UTC),
    "micros": datetime.fromtimestamp(1_700_000_000.123456, UTC),
}


@pytest.mark.parametrize("kind", LOGICAL)
def test_logical_types_are_numbers(kind: str) -> None:
    schema, expected = LOGICAL[kind]
    same(
        decoder(record(("x", schema))),
        written(record(("x", schema)), {"x": PYTHON[kind]}),
        [{"x": expected}],
    )


@pytest.mark.parametrize("underlying", ["string", {"type": "fixed", "name": "U", "size": 16}])
def test_uuids_are_text(underlying: Any) -> None:
    kind = (
        {"type": "string", "logicalType": "uuid"}
        if underlying == "string"
        else {**underlying, "logicalType": "uuid"}
    )
    known = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
    value = known if underlying == "string" else known.bytes
    schema = record(("x", kind))
    plain = record(("x", underlying))
    same(
        decoder(schema),
        written(schema if underlying == "string" else plain, {"x": value}),
        [{"x": str(known)}],
    )


def test_times_are_seconds_as_the_time_and_in_a_time_field() -> None:
    kinds = [("at", LOGICAL["millis"][0]), ("day", LOGICAL["date"][0])]
    schema = record(*kinds, ("clicked", "boolean"))
    reader = AvroDecoder(
        AvroSchema(schema),
        sl.Names(fields={"day": fields.Time(weekday=True)}),
        Fields(label="clicked", time="at", time_unit="ns"),
        grow_always=True,
    )
    events = read(
        reader, written(schema, {"at": PYTHON["millis"], "day": PYTHON["date"], "clicked": True})
    )
    assert events.times.tolist() == pytest.approx([1_700_000_000.123], abs=1e-6)
    assert reader.reader.names() == ["day.weekday=fri"]  # 2024-10-04


def test_roles_and_exact_integers() -> None:
    schema = record(("id", "long"), ("w", "double"), ("label", "long"), ("x", "int"))
    big = (1 << 62) + 1
    reader = decoder(schema, Fields(label="label", id="id", weight="w"))
    events = read(reader, written(schema, {"id": big, "w": 0.5, "label": big, "x": 2}))
    assert [events.id_of(0), events.weights[0], events.classes] == [str(big).encode(), 0.5, [big]]


@pytest.mark.parametrize("kind", ["category", "list"])
def test_declared_fields_are_exact(kind: str) -> None:
    schema = record(("u", "long"))
    big = -(1 << 62) - 1
    reader = decoder(schema, fields={"u": kind})
    read(reader, written(schema, {"u": big}))
    assert reader.reader.names() == [f"u={big}"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "array", "items": "double"}, [1.0, 2.0]),
        ({"type": "array", "items": {"type": "array", "items": "string"}}, [["a"]]),
        ("double", float("nan")),
        ("float", float("inf")),
    ],
)
def test_what_is_no_feature_is_refused_by_name(kind: Any, value: Any) -> None:
    schema = record(("before", "int"), ("x", kind))
    events = read(decoder(schema), written(schema, {"before": 1, "x": value}))
    assert [(bad.number, bad.field) for bad in events.invalid] == [(0, "x")]


def test_bytes_are_no_features() -> None:
    kinds = [("x", "bytes"), ("y", {"type": "fixed", "name": "F", "size": 3})]
    schema = record(*kinds, ("z", "int"))
    value = {"x": b"\xff\0", "y": b"abc", "z": 3}
    same(decoder(schema), written(schema, value), [{"z": 3}])
    events = read(decoder(schema, Fields(id="y")), written(schema, value))
    assert events.invalid[0].field == "y"


def test_a_type_may_contain_itself() -> None:
    schema = record(("x", "int"), ("next", ["null", "Event"]))
    event = {"x": 1, "next": {"x": 2, "next": {"x": 3, "next": None}}}
    same(decoder(schema), written(schema, event), [{"x": 1, "next": {"x": 2, "next": {"x": 3}}}])
    for _ in range(80):
        event = {"x": 1, "next": event}
    assert len(read(decoder(schema), written(schema, event)).invalid) == 1


def test_lengths_beyond_the_record_cost_nothing() -> None:
    schema = record(("x", {"type": "array", "items": "null"}), ("y", "string"))
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # 2**63 - 1
    for hostile in (huge + b"\0", b"\0" + huge, b"\xff" * 11, huge[:-1] + b"\x7f"):
        assert len(read(decoder(schema), [hostile]).invalid) == 1


def test_invalid_text_names_the_field_and_the_byte() -> None:
    schema = record(("x", "int"), ("y", "string"))
    ((place, field, _, message),) = read(decoder(schema), [b"\x02\x06ab\xff"]).invalid
    assert (place, field) == (0, "y")
    assert "byte 4" in message


def test_a_readers_schema_renames_drops_and_adds_fields() -> None:
    writer = record(("old", "int"), ("gone", "string"), ("kept", "string"))
    wanted = {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "new", "type": "double", "aliases": ["old"]},
            {"name": "kept", "type": "string"},
            {"name": "added", "type": "string", "default": "yes"},
            {"name": "inner", "type": record(("n", "int")) | {"name": "I"}, "default": {"n": 7}},
        ],
    }
    event = {"old": 3, "gone": "x", "kept": "y"}
    reader = AvroDecoder(AvroSchema(writer, wanted), sl.Names(), grow_always=True)
    expected = fastavro.schemaless_reader(
        io.BytesIO(written(writer, event)[0]), fastavro.parse_schema(writer, {}), wanted
    )
    same(reader, written(writer, event), [expected])


@pytest.mark.parametrize(
    "schema",
    ["string", {"type": "record"}, {"type": "recrod", "name": "x"}, record(("x", "Unknown")), 3],
)
def test_invalid_schemas_are_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        AvroSchema(schema)


def test_json_writes_the_same_names() -> None:
    schema = record(
        ("a", "string"), ("n", "double"), ("tags", {"type": "array", "items": "string"})
    )
    event = {"a": "x", "n": 1.5, "tags": ["p", "q", "p"]}
    avro, plain = sl.Names(), sl.Names()
    AvroDecoder(AvroSchema(schema), avro, grow_always=True).decode(written(schema, event), Events())
    plain.read_event(json.loads(json.dumps(event)))
    assert avro.names() == plain.names()


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", ["skipped", "items"])
def test_items_without_bytes_are_limited(name: str) -> None:
    schema = record((name, {"type": "array", "items": "null"}))
    blocks = b"\x80\x10" * 200_000  # of 1,024 nulls each
    events = read(decoder(schema, Fields(label="y", ignored=("skipped",))), [blocks + b"\x00"])
    [(_, field, _, reason)] = events.invalid
    assert field == name
    assert "items" in reason
