"""The time of an event may be a feature as well, if it is declared as one."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import streamlearn as sl
from streamlearn.columns.batch import batches
from streamlearn.config import ConfigError, parse
from streamlearn.stream import CSVDecoder, Decoder, Events, Fields, JSONDecoder
from streamlearn.stream.column_rows import ColumnRows
from streamlearn.stream.formats.arrow import ArrowDecoder
from streamlearn.stream.formats.avro import AvroDecoder
from streamlearn.stream.formats.schemas import AvroSchema
from tests.stream.formats.test_avro import record, written

TIME = {"at": "time(hour)", "ad": "category"}
EVENT = {"at": "2026-01-31T13:05:00Z", "ad": "hats", "label": True}
SECONDS = 1769864700.0


def rows(decoder: Decoder, records: Any) -> tuple[Events, list[dict[Any, float]]]:
    events = Events()
    decoder.decode(records, events)
    named = [
        {decoder.reader.name_of(slot): value for slot, value in events.row_of(i)}
        for i in range(len(events))
    ]
    return events, named


def as_json(**options: Any) -> tuple[Decoder, list[bytes]]:
    return JSONDecoder(**options), [json.dumps(EVENT).encode()]


def as_objects(**options: Any) -> tuple[Decoder, list[bytes]]:
    """Return an event that is read as Python objects, as a field occurs twice."""
    return JSONDecoder(**options), [b'{"ad": "caps", ' + json.dumps(EVENT).encode()[1:]]


def as_csv(**options: Any) -> tuple[Decoder, list[bytes]]:
    return CSVDecoder(**options, columns=tuple(EVENT)), [b"2026-01-31T13:05:00Z,hats,true"]


def as_avro(reader: Any, fields: Fields) -> tuple[Decoder, list[bytes]]:
    schema = record(("at", "string"), ("ad", "string"), ("label", "boolean"))
    decoder = AvroDecoder(AvroSchema(schema), reader, fields, grow_always=True)
    return decoder, written(schema, EVENT)


def as_columns(**options: Any) -> tuple[Decoder, Any]:
    (batch,) = batches(pl.DataFrame([EVENT]))
    return ArrowDecoder(**options), ColumnRows(batch, 0, 1)


FORMATS = [as_json, as_objects, as_csv, as_avro, as_columns]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("declared", [True, False])
def test_a_declared_time_is_both(form: Any, declared: bool) -> None:
    fields = TIME if declared else {"ad": "category"}
    decoder, records = form(reader=sl.Names(fields=fields), fields=Fields(time="at"))
    events, named = rows(decoder, records)
    assert not events.invalid
    assert events.times.tolist() == [SECONDS]
    assert named == [{"ad=hats": 1.0} | ({"at.hour=13": 1.0} if declared else {})]


@pytest.mark.parametrize("value", ["true", '"soon"', "[1]", "{}", "1e999", '{"a": 1}', "1x"])
def test_an_invalid_time_is_invalid_as_a_feature_too(value: str) -> None:
    for text in (f'{{"at": {value}, "ad": "hats"}}', f'{{"ad": "hats", "at": {value}}}'):
        found = []
        for declared in (TIME, {"ad": "category"}):
            decoder = JSONDecoder(sl.Names(fields=declared), Fields(time="at"))
            events, _ = rows(decoder, [text.encode(), json.dumps(EVENT).encode()])
            found.append([(one.number, one.field, one.code) for one in events.invalid])
        assert found[0] == found[1]
        assert [number for number, _, _ in found[0]] == [0]


@pytest.mark.parametrize("nested", [True, False])
def test_events_of_python_objects_keep_it(nested: bool) -> None:
    name = "meta.at" if nested else "at"
    event = {"meta": {"at": 0}} if nested else {"at": 0}
    fields = Fields(time=name).declared(sl.Names(fields={name: "time"}).fields)
    assert fields.split(event) == (event, {"time": 0})
    assert Fields(time=name).split(event)[0] == ({"meta": {}} if nested else {})


def test_an_invalid_time_is_refused_where_nothing_is_learned() -> None:
    fields = Fields(time="at").unlabeled()
    decoder = JSONDecoder(sl.Names(fields=TIME), fields, grow_always=True)
    events, named = rows(decoder, [b'{"at": "noon", "label": 1}', b'{"at": 0, "label": 1}'])
    assert [(bad.number, bad.field) for bad in events.invalid] == [(0, "at")]
    assert named == [{"at.hour=0": 1.0}]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"at": "auto"}, "features.fields.at"),
        ({"at^ad": "interaction", "ad": "category"}, "features.fields.at^ad"),
        ({"id": "category"}, "features.fields.id"),
    ],
)
def test_what_the_time_is_must_be_said(fields: dict[str, str], key: str) -> None:
    given = {"source.kind": "stdin", "format.label": "y", "format.time": "at", "format.id": "id"}
    with pytest.raises(ConfigError) as error:
        parse("", "", {**given, "features.fields": fields}, environ={})
    assert [problem.path for problem in error.value.problems] == [key]
    parse("", "", {**given, "features.fields": {**TIME, "at^ad": "interaction"}}, environ={})


def test_where_nothing_is_learned_events_are_found_as_before() -> None:
    fields = Fields(label="y", weight="w", root="data", time="at").unlabeled()
    decoder = JSONDecoder(sl.Names(), fields, grow_always=True)
    _, named = rows(decoder, [b'{"y": 2, "data": {"y": 1, "w": -1, "at": 0, "x": 3}}'])
    assert named == [{"x": 3.0}]
