"""Avro and Protobuf: a value of each type, as each kind of field, is what it is in a dict."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from tests.stream.formats import test_avro, test_protobuf
from tests.stream.formats.test_avro import record, written
from tests.stream.formats.test_json_paths import KINDS
from tests.stream.formats.test_protobuf import MANY, ONE, Proto, simple
from tests.support.formats import same

ROW = {"type": "record", "name": "Row", "fields": [{"name": "k", "type": "int"}]}
AVRO: list[tuple[Any, list[Any]]] = [
    ("boolean", [True, False]),
    ("int", [0, -3, 2**31 - 1]),
    ("long", [7, 2**53 + 1, -(2**63)]),
    ("float", [0.5, -2.0]),
    ("double", [0.1, 3.0, -0.0, 1e300, float("inf")]),
    ("string", ["", "a", "12.0", "-0", "TRUE", "a:1 b:-2.5", "2026-01-31T13:05:00Z"]),
    (["null", "string"], [None, "é"]),
    (["int", "null", "double"], [None, 5, 0.25]),
    ({"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}, ["BLUE", "RED"]),
    ({"type": "array", "items": "string"}, [[], ["a", "b", "a"]]),
    ({"type": "array", "items": ["null", "boolean", "long"]}, [[], [True, None, -7, True]]),
    ({"type": "array", "items": ["null", ROW]}, [[], [None], [{"k": 1}]]),
    ({"type": "array", "items": {"type": "array", "items": "int"}}, [[], [[1, 2], [3]]]),
    ({"type": "map", "values": "double"}, [{}, {"k": 1.5, "z": 0.0}]),
    ({"type": "map", "values": ["null", "string"]}, [{"k": None, "z": "y"}]),
    ({"type": "map", "values": {"type": "array", "items": "string"}}, [{"k": ["a", "a"]}]),
    ({**ROW, "name": "Inner"}, [{"k": 5}]),
]
PROTOBUF: list[tuple[tuple[Any, ...], list[Any]]] = [
    ((Proto.TYPE_BOOL,), [True]),
    ((Proto.TYPE_SINT32,), [-3, 2**31 - 1]),
    ((Proto.TYPE_INT64,), [2**53 + 1, -(2**63)]),
    ((Proto.TYPE_FIXED64,), [2**64 - 1]),
    ((Proto.TYPE_FLOAT,), [0.5]),
    ((Proto.TYPE_DOUBLE,), [0.1, 3.0, 1e300]),
    ((Proto.TYPE_STRING,), ["a", "12.0", "a:1 b:-2.5"]),
    ((Proto.TYPE_STRING, MANY), [["a", "b", "a"]]),
    ((Proto.TYPE_INT32, MANY), [[0, 5, 0]]),
    ((Proto.TYPE_MESSAGE, ONE, ".google.protobuf.DoubleValue"), [0.25]),
    ((Proto.TYPE_MESSAGE, MANY, ".google.protobuf.BoolValue"), [[True, False]]),
    ((Proto.TYPE_MESSAGE, ONE, ".google.protobuf.Struct"), [{"k": 2.0, "z": "y", "n": None}]),
    ((Proto.TYPE_MESSAGE, ONE, ".google.protobuf.ListValue"), [["a", True, None]]),
    ((Proto.TYPE_MESSAGE, ONE, ".google.protobuf.Value"), ["a", 2.5, {"k": {"z": True}}]),
]


def specs(kind: str) -> list[dict[str, str]]:
    found = [{"f": kind}, {"f": kind, "f^g": "interaction"}]
    return found if kind in {"auto", "ignore", "number(indicator)"} else [*found, {"*": kind}]


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_avro(kind: str) -> None:
    for spec in specs(kind):
        for schema, values in AVRO:
            whole = record(("f", schema), ("g", "int"))
            events = [{"f": value, "g": 2} for value in values]
            same(test_avro.decoder(whole, fields=spec), written(whole, *events), events)


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_avro_in_another_record(kind: str) -> None:
    for schema, values in AVRO:
        inner = {**record(("f", schema)), "name": "Outer"}
        whole = record(("o", inner), ("g", "int"))
        events = [{"o": {"f": value}, "g": 2} for value in values]
        given = {"o.f": kind, "o^g": "interaction"}
        same(test_avro.decoder(whole, fields=given), written(whole, *events), events)


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_protobuf(kind: str) -> None:
    for spec in specs(kind):
        for member, values in PROTOBUF:
            message = simple(("f", *member), ("g", Proto.TYPE_INT32))
            events = [{"f": value, "g": 2} for value in values]
            records = [ParseDict(event, message()).SerializeToString() for event in events]
            same(test_protobuf.decoder(message, fields=spec), records, events)
