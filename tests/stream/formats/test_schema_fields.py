"""The fields of a schema as they are shown: their types, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

from streamlearn.cli.actions.field_examples import becomes
from streamlearn.stream.formats.schema_fields import DEEPEST
from streamlearn.stream.formats.schemas import SCHEMA_ID_HEADER, AvroSchema, ProtobufMessage
from tests.stream.formats import test_avro, test_protobuf
from tests.stream.formats.test_protobuf import MANY, ONE, Proto, simple
from tests.support.formats import read

RECORD = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}
AVRO: list[tuple[Any, str, Any]] = [
    ("boolean", "boolean", True),
    ("int", "int", 5),
    ("long", "long", 5),
    ("float", "float", 0.5),
    ("double", "double", 0.5),
    ("string", "string", "a"),
    ("bytes", "bytes", b"a"),
    (["null", "string"], "string or null", "a"),
    (["double", "null"], "double or null", 0.5),
    ({"type": "enum", "name": "E", "symbols": ["a"]}, "enum", "a"),
    ({"type": "fixed", "name": "F", "size": 1}, "fixed", b"a"),
    ({"type": "array", "items": "int"}, "list of int", [5]),
    ({"type": "array", "items": ["null", "string"]}, "list of string or null", ["a"]),
    ({"type": "map", "values": "double"}, "map of double", {"k": 0.5}),
    ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp-millis", 5),
]
SCALARS = {
    "TYPE_INT32": 5, "TYPE_INT64": 5, "TYPE_UINT32": 5, "TYPE_UINT64": 5, "TYPE_SINT32": 5,
    "TYPE_SINT64": 5, "TYPE_FIXED32": 5, "TYPE_FIXED64": 5, "TYPE_SFIXED32": 5,
    "TYPE_SFIXED64": 5, "TYPE_FLOAT": 0.5, "TYPE_DOUBLE": 0.5, "TYPE_BOOL": True,
    "TYPE_STRING": "a", "TYPE_BYTES": b"a",
}  # fmt: skip
MESSAGES: dict[str, tuple[str, Any]] = {
    "Timestamp": ("Timestamp", timestamp_pb2.Timestamp(seconds=5)),
    "Duration": ("Duration", duration_pb2.Duration(seconds=5)),
    "Struct": ("Struct", struct_pb2.Struct(fields={"k": struct_pb2.Value(number_value=5.0)})),
    "ListValue": (
        "ListValue",
        struct_pb2.ListValue(values=[struct_pb2.Value(string_value="a")]),
    ),
    "Value": ("Value", struct_pb2.Value(number_value=5.0)),
    "DoubleValue": ("double", wrappers_pb2.DoubleValue(value=0.5)),
    "FloatValue": ("float", wrappers_pb2.FloatValue(value=0.5)),
    "Int64Value": ("int64", wrappers_pb2.Int64Value(value=5)),
    "UInt64Value": ("uint64", wrappers_pb2.UInt64Value(value=5)),
    "Int32Value": ("int32", wrappers_pb2.Int32Value(value=5)),
    "UInt32Value": ("uint32", wrappers_pb2.UInt32Value(value=5)),
    "BoolValue": ("bool", wrappers_pb2.BoolValue(value=True)),
    "StringValue": ("string", wrappers_pb2.StringValue(value="a")),
}


def made(decoder: Any, record: bytes) -> str:
    """Return what the field `f` became, in the words of `becomes`."""
    events = read(decoder, [record])
    if events.invalid:
        return "an error: declare it as a list"
    names = [str(decoder.reader.name_of(slot)) for slot, _ in events.row_of(0)]
    if not names:
        return "nothing"
    if all(name.startswith("f=") for name in names):
        return "f=VALUE for each value"
    return "a number" if names == ["f"] else "the fields f.KEY"


@pytest.mark.parametrize(("schema", "text", "value"), AVRO)
def test_types_of_avro(schema: Any, text: str, value: Any) -> None:
    whole = {"type": "record", "name": "C", "fields": [{"name": "f", "type": schema}]}
    assert AvroSchema(whole).fields("any") == {"f": text}
    [record] = test_avro.written(whole, {"f": value})
    assert becomes("f", text) == made(test_avro.decoder(whole), record)


def test_records_of_avro_are_their_fields() -> None:
    def record(**fields: Any) -> dict[str, Any]:
        listed = [{"name": name, "type": kind} for name, kind in fields.items()]
        return {"type": "record", "name": "C", "fields": listed}

    assert AvroSchema(record(a=RECORD, b="R", c=["null", "R"])).fields("any") == {
        "a.x": "int",
        "b.x": "int",
        "c.x": "int",
    }
    either = AvroSchema(record(a=["null", RECORD, "string"])).fields("any")
    assert either.keys() == {"a"}
    loop = AvroSchema(record(x="int", next=["null", "C"])).fields("any")
    assert loop["next." * DEEPEST + "x"] == "int"
    assert max(name.count(".") for name in loop) == DEEPEST


@pytest.mark.parametrize("kind", SCALARS)
def test_scalars_of_protobuf(kind: str) -> None:
    message = simple(("f", getattr(Proto, kind)))
    text = kind.removeprefix("TYPE_").lower()
    assert ProtobufMessage(message.DESCRIPTOR).fields("any") == {"f": text}
    record = message(f=SCALARS[kind]).SerializeToString()
    assert becomes("f", text) == made(test_protobuf.decoder(message), record)
    several = simple(("f", getattr(Proto, kind), MANY))
    assert ProtobufMessage(several.DESCRIPTOR).fields("any") == {"f": f"list of {text}"}
    record = several(f=[SCALARS[kind]]).SerializeToString()
    assert becomes("f", f"list of {text}") == made(test_protobuf.decoder(several), record)


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages_of_protobuf(kind: str) -> None:
    text, value = MESSAGES[kind]
    message = simple(("f", Proto.TYPE_MESSAGE, ONE, f".google.protobuf.{kind}"))
    assert ProtobufMessage(message.DESCRIPTOR).fields("any") == {"f": text}
    record = message()
    record.f.MergeFromString(value.SerializeToString())
    found = made(test_protobuf.decoder(message), record.SerializeToString())
    assert becomes("f", text) in {found, "any of these"}


def test_only_messages_of_a_registry_have_its_header() -> None:
    plain, framed = (
        ProtobufMessage(timestamp_pb2.Timestamp.DESCRIPTOR, framed=one) for one in (False, True)
    )
    assert (plain.header_name, plain.framed) == (None, False)
    assert (framed.header_name, framed.framed) == (SCHEMA_ID_HEADER, True)
