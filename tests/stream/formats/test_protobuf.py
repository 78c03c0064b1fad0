"""Protobuf: what its own library writes becomes what the same values become as a dict."""

from typing import Any

import pytest
from google.protobuf import (
    descriptor_pb2,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn import fields
from streamlearn.errors import SchemaError
from streamlearn.stream import Fields
from streamlearn.stream.formats.protobuf import ProtobufDecoder
from streamlearn.stream.formats.protobuf_plan import message_at, message_named
from streamlearn.stream.formats.schemas import ProtobufMessage, indexes_of
from tests.support.formats import read, same

Proto = descriptor_pb2.FieldDescriptorProto
ONE, MANY = Proto.LABEL_OPTIONAL, Proto.LABEL_REPEATED
WELL_KNOWN = ["duration", "struct", "timestamp", "wrappers"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INT32, INT64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
UINT32, UINT64 = st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)
VALUES: dict[int, Any] = {
    Proto.TYPE_INT32: INT32,
    Proto.TYPE_SINT32: INT32,
    Proto.TYPE_SFIXED32: INT32,
    Proto.TYPE_INT64: INT64,
    Proto.TYPE_SINT64: INT64,
    Proto.TYPE_SFIXED64: INT64,
    Proto.TYPE_UINT32: UINT32,
    Proto.TYPE_FIXED32: UINT32,
    Proto.TYPE_UINT64: UINT64,
    Proto.TYPE_FIXED64: UINT64,
    Proto.TYPE_FLOAT: st.floats(allow_nan=False, allow_infinity=False, width=32),
    Proto.TYPE_DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    Proto.TYPE_BOOL: st.booleans(),
    Proto.TYPE_STRING: TEXTS,
}


def file_of(syntax: str = "proto3") -> descriptor_pb2.FileDescriptorProto:
    made = descriptor_pb2.FileDescriptorProto(name="event.proto", package="shop", syntax=syntax)
    made.dependency.extend(f"google/protobuf/{name}.proto" for name in WELL_KNOWN)
    made.message_type.add(name="Event")
    return made


def add(
    message: Any, name: str, kind: Any, label: Any = ONE, type_name: str = "", **options: Any
) -> None:
    number = len(message.field) + 1
    made = message.field.add(name=name, number=number, type=kind, label=label, **options)
    if type_name:
        made.type_name = type_name


def message_of(file: descriptor_pb2.FileDescriptorProto, name: str = "Event") -> Any:
    return message_factory.GetMessageClass(message_named([file], f"shop.{name}"))


def decoder(kind: Any, roles: Fields | None = None, **options: Any) -> ProtobufDecoder:
    schema = ProtobufMessage(kind.DESCRIPTOR)
    return ProtobufDecoder(schema, sl.Names(**options), roles, grow_always=True)


def simple(*members: tuple[Any, ...], syntax: str = "proto3") -> Any:
    file = file_of(syntax)
    for name, kind, *more in members:
        add(file.message_type[0], name, kind, *more)
    return message_of(file)


def as_event(message: Message) -> dict[str, Any]:
    """What protobuf's own library reads, as an event."""
    event: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            event[field.name] = {str(key): value[key] for key in value}
        elif field.is_repeated:
            event[field.name] = list(value)
        elif field.message_type is not None:
            event[field.name] = as_event(value)
        else:
            event[field.name] = value
    return event


@st.composite
def kinds(draw: Any) -> tuple[Any, dict[str, Any]]:
    """A message class, and strategies of its fields."""
    file = file_of(draw(st.sampled_from(["proto2", "proto3"])))
    message = file.message_type[0]
    inner = file.message_type.add(name="Inner")
    strategies: dict[str, Any] = {}
    for k in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(list(VALUES)))
        add(message, f"f{k}", kind)
        strategies[f"f{k}"] = VALUES[kind]
    add(message, "tags", Proto.TYPE_STRING, MANY)
    strategies["tags"] = st.lists(TEXTS, max_size=12)
    for k in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(list(VALUES)))
        add(inner, f"g{k}", kind)
    if draw(st.booleans()):
        add(message, "inner", Proto.TYPE_MESSAGE, ONE, ".shop.Inner")
        strategies["inner"] = st.fixed_dictionaries(
            {}, optional={one.name: VALUES[one.type] for one in inner.field}
        )
    if draw(st.booleans()):
        for one in message.field:
            one.number = 7 * one.number + 3
    return message_of(file), strategies


@given(st.data())
def test_records_become_what_their_values_become(data: Any) -> None:
    kind, strategies = data.draw(kinds())
    values = st.fixed_dictionaries({}, optional=strategies)
    messages = [kind(**one) for one in data.draw(st.lists(values, min_size=1, max_size=5))]
    same(
        decoder(kind), [one.SerializeToString() for one in messages], list(map(as_event, messages))
    )


@given(st.data())
def test_bytes_that_were_cut_or_changed_are_what_protobuf_says(data: Any) -> None:
    kind, strategies = data.draw(kinds())
    values = data.draw(st.fixed_dictionaries({}, optional=strategies))
    spoiled = bytearray(kind(**values).SerializeToString())
    for _ in range(data.draw(st.integers(0, 3))):
        if spoiled:
            spoiled[data.draw(st.integers(0, len(spoiled) - 1))] = data.draw(st.integers(0, 255))
    events = read(decoder(kind), [bytes(spoiled)])
    assert events.records == 1


def test_parts_of_messages_are_merged_and_the_last_value_counts() -> None:
    file = file_of()
    add(file.message_type[0], "a", Proto.TYPE_MESSAGE, ONE, ".shop.Inner")
    add(file.message_type[0], "n", Proto.TYPE_INT32)
    inner = file.message_type.add(name="Inner")
    for name in ("p", "q"):
        add(inner, name, Proto.TYPE_INT32)
    kind = message_of(file)
    parts: list[dict[str, Any]] = [
        {"a": {"p": 1}, "n": 1},
        {"a": {"q": 2}},
        {"a": {"p": 3}, "n": 4},
    ]
    encoded = b"".join(kind(**part).SerializeToString() for part in parts)
    whole = kind.FromString(encoded)
    assert as_event(whole) == {"a": {"p": 3, "q": 2}, "n": 4}
    same(decoder(kind), [encoded], [as_event(whole)])


def test_the_last_of_a_oneof_counts() -> None:
    file = file_of()
    message = file.message_type[0]
    message.oneof_decl.add(name="either")
    add(message, "x", Proto.TYPE_INT32, oneof_index=0)
    add(message, "y", Proto.TYPE_STRING, oneof_index=0)
    kind = message_of(file)
    encoded = kind(x=3).SerializeToString() + kind(y="b").SerializeToString()
    same(decoder(kind), [encoded], [{"y": "b"}])


def test_optional_fields_of_proto3_are_there_though_zero() -> None:
    file = file_of()
    message = file.message_type[0]
    message.oneof_decl.add(name="_s")
    add(message, "s", Proto.TYPE_STRING, oneof_index=0, proto3_optional=True)
    kind = message_of(file)
    same(decoder(kind), [kind(s="").SerializeToString(), b""], [{"s": ""}, {}])


def test_packed_and_unpacked_lists() -> None:
    kind = simple(("x", Proto.TYPE_INT32, MANY))
    reader = decoder(kind, fields={"x": "list"})
    unpacked = b"\x08\x05\x08\x07"
    for encoded in (kind(x=[5, 7]).SerializeToString(), unpacked):
        events = read(reader, [encoded])
        assert [reader.reader.names()[slot] for slot, _ in events.row_of(0)] == ["x=5", "x=7"]
    assert read(decoder(kind), [unpacked]).invalid[0].field == "x"


@pytest.mark.parametrize("value", [Proto.TYPE_DOUBLE, Proto.TYPE_STRING])
@pytest.mark.parametrize("key", [Proto.TYPE_STRING, Proto.TYPE_INT64, Proto.TYPE_BOOL])
def test_maps_are_fields(key: Any, value: Any) -> None:
    file = file_of()
    message = file.message_type[0]
    entry = message.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    add(entry, "key", key)
    add(entry, "value", value)
    add(message, "counts", Proto.TYPE_MESSAGE, MANY, ".shop.Event.CountsEntry")
    kind = message_of(file)
    keys: dict[Any, Any] = {
        Proto.TYPE_STRING: ("a", "b"),
        Proto.TYPE_INT64: (-7, 8),
        Proto.TYPE_BOOL: (False, True),
    }
    values = (1.5, 2.5) if value == Proto.TYPE_DOUBLE else ("u", "v")
    message = kind(counts=dict(zip(keys[key], values, strict=True)))
    expected = {str(name).lower(): one for name, one in zip(keys[key], values, strict=True)}
    last = kind(counts={keys[key][0]: values[1]})
    encoded = message.SerializeToString(deterministic=True)
    same(
        decoder(kind),
        [encoded, encoded + last.SerializeToString()],
        [{"counts": expected}, {"counts": expected | {str(keys[key][0]).lower(): values[1]}}],
    )


def well_known(name: str, label: Any = ONE) -> Any:
    return simple(("x", Proto.TYPE_MESSAGE, label, f".google.protobuf.{name}"))


def test_well_known_types() -> None:
    struct = struct_pb2.Struct()
    struct.update({"n": 1.5, "s": "t", "b": True, "o": {"p": 2.0}, "l": ["u", "v"], "z": None})
    at, took = timestamp_pb2.Timestamp(), duration_pb2.Duration()
    at.FromMilliseconds(1_700_000_000_500)
    took.FromMilliseconds(-1500)
    for name, value, expected in (
        ("Timestamp", at, 1_700_000_000.5),
        ("Duration", took, -1.5),
        ("Int64Value", wrappers_pb2.Int64Value(value=5), 5),
        ("StringValue", wrappers_pb2.StringValue(value=""), ""),
        ("BoolValue", wrappers_pb2.BoolValue(), False),
        ("Struct", struct, {"n": 1.5, "s": "t", "b": True, "o": {"p": 2.0}, "l": ["u", "v"]}),
        ("Value", struct.fields["s"], "t"),
    ):
        kind = well_known(name)
        message = kind()
        message.x.MergeFromString(value.SerializeToString())
        message.x.SetInParent()
        same(decoder(kind), [message.SerializeToString(), b""], [{"x": expected}, {}])


def test_timestamps_are_the_time() -> None:
    kind = well_known("Timestamp")
    message = kind()
    message.x.FromMilliseconds(1_700_000_000_500)
    events = read(decoder(kind, Fields(time="x", time_unit="ms")), [message.SerializeToString()])
    assert events.times.tolist() == [1_700_000_000.5]


def with_enum(syntax: str = "proto3") -> Any:
    file = file_of(syntax)
    enum = file.enum_type.add(name="Device")
    for number, name in enumerate(("UNKNOWN", "PHONE", "DESKTOP")):
        enum.value.add(name=name, number=number)
    add(file.message_type[0], "x", Proto.TYPE_ENUM, ONE, ".shop.Device")
    return message_of(file)


def test_enums_are_text_by_name() -> None:
    kind = with_enum()
    records = [kind(x=1).SerializeToString(), b"", b"\x08\x63"]
    same(decoder(kind), records, [{"x": "PHONE"}, {"x": "UNKNOWN"}, {"x": "99"}])
    same(decoder(with_enum("proto2")), [b""], [{}])


def test_a_zero_that_is_not_written_is_the_label_and_a_declared_field() -> None:
    kind = simple(("clicked", Proto.TYPE_BOOL), ("ad", Proto.TYPE_INT64), ("n", Proto.TYPE_DOUBLE))
    declared = {"ad": fields.Category(), "n": fields.Number(indicator=True)}
    reader = decoder(kind, Fields(label="clicked"), fields=declared)
    events = read(reader, [b"", kind(clicked=True, ad=3, n=2.0).SerializeToString()])
    assert events.labels.tolist() == [0.0, 1.0]
    names = reader.reader.names()
    assert [
        {names[slot] for slot, _ in events.row_of(k)} >= {one}
        for k, one in enumerate(("ad=0", "ad=3"))
    ] == [True, True]


def test_integers_of_64_bits_are_exact() -> None:
    kind = simple(("id", Proto.TYPE_UINT64), ("u", Proto.TYPE_FIXED64))
    big = (1 << 64) - 1
    reader = decoder(kind, Fields(id="id"), fields={"u": "category"})
    events = read(reader, [kind(id=big, u=big).SerializeToString()])
    assert [events.id_of(0), reader.reader.names()] == [str(big).encode(), [f"u={big}"]]


def test_bytes_are_no_features() -> None:
    kind = simple(("x", Proto.TYPE_BYTES), ("y", Proto.TYPE_INT32))
    encoded = kind(x=b"\xff", y=3).SerializeToString()
    same(decoder(kind), [encoded], [{"y": 3}])
    assert read(decoder(kind, Fields(id="x")), [encoded]).invalid[0].field == "x"


def test_unknown_fields_and_groups_are_skipped() -> None:
    kind = simple(("x", Proto.TYPE_INT32))
    unknown = b"\x4b\x08\x01\x53\x54\x4c" + b"\x50\x01\x59" + bytes(8) + b"\x65" + bytes(4)
    same(decoder(kind), [unknown + b"\x08\x02", b"\x0a\x01\x05"], [{"x": 2}, {}])


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x08",
        b"\x08" + b"\xff" * 10,
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x12\x02\xff\xfe",
        b"\x00\x01",
        b"\x0c",
        b"\x0b\x0b",
        b"\x0b" * 100,
        b"\x0f\x01",
    ],
    ids=lambda hostile: hostile[:8].hex(),
)
def test_hostile_bytes_are_invalid_records(hostile: bytes) -> None:
    kind = simple(("x", Proto.TYPE_INT32), ("s", Proto.TYPE_STRING))
    ((*_, message),) = read(decoder(kind), [hostile]).invalid
    assert "byte" in message


def test_messages_that_contain_themselves_are_bounded() -> None:
    kind = simple(("x", Proto.TYPE_INT32), ("next", Proto.TYPE_MESSAGE, ONE, ".shop.Event"))
    event: dict[str, Any] = {"x": 1}
    same(
        decoder(kind), [kind(x=1, next={"x": 2}).SerializeToString()], [{"x": 1, "next": {"x": 2}}]
    )
    for _ in range(80):
        event = {"x": 1, "next": event}
    assert len(read(decoder(kind), [kind(**event).SerializeToString()]).invalid) == 1


def test_the_message_of_a_path() -> None:
    file = file_of()
    file.message_type.add(name="Other").nested_type.add(name="Inner")
    data = {"event.proto": file.SerializeToString()}
    assert message_at(data, indexes_of(b"\x04\x02\x00")).full_name == "shop.Other.Inner"
    assert message_at(data, indexes_of(b"\x00")).full_name == "shop.Event"
    for path in ([5], [0, 1]):
        with pytest.raises(SchemaError):
            message_at(data, path)
    with pytest.raises(SchemaError):
        message_named([file], "shop.Missing")
    file.dependency.append("missing.proto")
    with pytest.raises(SchemaError):
        message_named([file], "shop.Event")
