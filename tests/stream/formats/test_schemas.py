"""Records of Confluent's own serializers, read by the schemas of a registry."""

import base64
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, message_factory

import streamlearn as sl
from streamlearn.errors import RegistryError, SchemaError
from streamlearn.stream import Decoder, Events, Fields
from streamlearn.stream.formats.decoder_factory import decoder_of
from streamlearn.stream.formats.protobuf_plan import message_named
from streamlearn.stream.formats.schemas import (
    AvroSchema,
    RegisteredAvro,
    RegisteredJSON,
    RegisteredProtobuf,
    Schemas,
    avro_schemas,
    protobuf_schemas,
)
from streamlearn.stream.records import Header
from streamlearn.stream.schema_registry import SchemaRegistry
from tests.support.formats import read, same
from tests.support.schema_registry import FakeRegistry

CONTEXT = SerializationContext("clicks", MessageField.VALUE)
Proto = descriptor_pb2.FieldDescriptorProto
V1: dict[str, Any] = {
    "type": "record",
    "name": "Click",
    "namespace": "shop",
    "fields": [{"name": "ad", "type": "string"}, {"name": "price", "type": "double"}],
}
V2 = {**V1, "fields": [*V1["fields"], {"name": "country", "type": ["null", "string"]}]}
V3 = {**V1, "fields": [V1["fields"][1]]}
EVENTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (V1, {"ad": "shoes", "price": 2.5}),
    (V2, {"ad": "hats", "price": 1.0, "country": "ch"}),
    (V2, {"ad": "hats", "price": 3.0, "country": None}),
    (V3, {"price": 7.0}),
    (V1, {"ad": "shoes", "price": 4.0}),
]


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with FakeRegistry() as registry:
        yield registry


def registry_of(server: FakeRegistry) -> SchemaRegistry:
    return SchemaRegistry(server.url, wait_seconds=0.0)


def decoder(kind: str, schemas: Schemas, roles: Fields | None = None) -> Decoder:
    return decoder_of(kind, sl.Names(), roles, grow_always=True, schemas=schemas)


def avro_records(server: FakeRegistry) -> list[bytes]:
    client = SchemaRegistryClient({"url": server.url})
    serializers = {
        id(schema): AvroSerializer(client, json.dumps(schema)) for schema in (V1, V2, V3)
    }
    return [serializers[id(schema)](event, CONTEXT) for schema, event in EVENTS]


def click(*names: str) -> tuple[Any, Any]:
    """A message with a message inside and a timestamp, and others before it in its file."""
    file = descriptor_pb2.FileDescriptorProto(
        name="shop/click.proto", package="shop", syntax="proto3"
    )
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other")
    outer = file.message_type.add(name="Outer")
    outer.nested_type.add(name="First")
    message = outer.nested_type.add(name="Click")
    for number, name in enumerate(names, 1):
        message.field.add(name=name, number=number, type=Proto.TYPE_STRING, label=1)
    message.field.add(name="price", number=9, type=Proto.TYPE_DOUBLE, label=1)
    message.field.add(
        name="at",
        number=10,
        type=Proto.TYPE_MESSAGE,
        label=1,
        type_name=".google.protobuf.Timestamp",
    )
    found = message_factory.GetMessageClass(message_named([file], "shop.Outer.Click"))
    return descriptor_pb2.FileDescriptorSet(file=[file]), found


def test_avro_of_several_schemas(server: FakeRegistry) -> None:
    records = avro_records(server)
    expected = [
        {name: value for name, value in event.items() if value is not None} for _, event in EVENTS
    ]
    schemas = RegisteredAvro(registry_of(server))
    server.calls.clear()
    same(decoder("avro", schemas), records, expected)
    assert sorted(call.path for call in server.calls) == [f"/schemas/ids/{k}" for k in (1, 2, 3)]


def test_avro_as_a_reader_wants_it(server: FakeRegistry) -> None:
    records = avro_records(server)
    ad = {"name": "banner", "aliases": ["ad"], "type": "string", "default": "none"}
    schemas = RegisteredAvro(registry_of(server), {**V1, "fields": [ad]})
    expected = [{"banner": event.get("ad", "none")} for _, event in EVENTS]
    same(decoder("avro", schemas), records, expected)


def test_protobuf_of_a_nested_message(server: FakeRegistry) -> None:
    records = []
    for names in (["ad"], ["ad", "country"]):
        _, kind = click(*names)
        client = SchemaRegistryClient({"url": server.url})
        serializer = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
        message = kind(price=2.5, **dict.fromkeys(names, "x"))
        message.at.seconds = 7
        records.append(serializer(message, CONTEXT))
    schemas = RegisteredProtobuf(registry_of(server))
    events = [{"ad": "x", "price": 2.5}, {"ad": "x", "country": "x", "price": 2.5}]
    found = decoder("protobuf", schemas, Fields(time="at", label=None))
    same(found, records, events)
    assert read(found, records).times.tolist() == [7.0, 7.0]


def test_protobuf_by_descriptors_behind_the_header_of_a_registry(
    server: FakeRegistry, tmp_path: Any
) -> None:
    data, kind = click("ad")
    path = tmp_path / "click.pb"
    path.write_bytes(data.SerializeToString())
    serializer = ProtobufSerializer(
        kind, SchemaRegistryClient({"url": server.url}), {"use.deprecated.format": False}
    )
    message = kind(ad="x", price=2.5)
    framed, bare = serializer(message, CONTEXT), message.SerializeToString()
    server.calls.clear()
    for registry, record in ((registry_of(server), framed), (None, bare)):
        schemas = protobuf_schemas(str(path), "shop.Outer.Click", registry)
        same(decoder("protobuf", schemas), [record], [{"ad": "x", "price": 2.5}])
    assert not server.calls


def in_header(serializer: Any, *events: Any) -> tuple[list[bytes], list[list[Header]]]:
    """What a serializer writes, and the header in which it names the schema."""
    values, headers = [], []
    for event in events:
        context = SerializationContext("clicks", MessageField.VALUE, [])
        values.append(serializer(event, context))
        headers.append([("other", b"\1"), *(context.headers or ())])
    return values, headers


def test_the_id_in_a_header(server: FakeRegistry) -> None:
    client, with_id = (
        SchemaRegistryClient({"url": server.url}),
        {"schema.id.serializer": header_schema_id_serializer},
    )
    avro = AvroSerializer(client, json.dumps(V1), conf=with_id)
    later = AvroSerializer(client, json.dumps(V2), conf=with_id)
    _, kind = click("ad")
    protobuf = ProtobufSerializer(kind, client, {"use.deprecated.format": False, **with_id})
    text = json.dumps({"type": "object", "title": "Click"})
    as_json = JSONSerializer(text, client, conf=with_id)
    event = {"ad": "x", "price": 2.5}
    cases: list[tuple[str, Schemas, tuple[list[bytes], list[list[Header]]]]] = [
        ("avro", RegisteredAvro(registry_of(server)), in_header(avro, event, event)),
        ("protobuf", RegisteredProtobuf(registry_of(server)), in_header(protobuf, kind(**event))),
        ("json-schema", RegisteredJSON(registry_of(server)), in_header(as_json, event)),
    ]
    values, headers = in_header(later, {**event, "country": None})
    cases[0][2][0].extend(values)
    cases[0][2][1].extend(headers)
    for name, schemas, (values, headers) in cases:
        found = decoder(name, schemas, Fields(label=None))
        assert found.reads_headers
        events = Events()
        found.decode(values, events, None, headers)
        assert not events.invalid
        reader = found.reader
        assert [
            {reader.name_of(slot): value for slot, value in events.row_of(k)}
            for k in range(len(events))
        ] == [{"ad=x": 1.0, "price": 2.5}] * len(values)
        counts = found.take_schema_counts()
        assert sum(counts.values()) == len(values)
        assert all(UUID(str(one)) for one in counts)
        assert len(counts) == (2 if name == "avro" else 1)
        assert found.take_schema_counts() == {}
        # without the header the record has no schema
        events.clear()
        found.decode(values[:1], events)
        assert len(events.invalid) == 1


def test_a_damaged_header_makes_its_record_invalid(server: FakeRegistry) -> None:
    found = decoder("avro", RegisteredAvro(registry_of(server)))
    events = Events()
    wrong = [b"", b"\0\0", b"\1abc", b"\7" * 20]
    headers: list[list[Header]] = [[("__value_schema_id", one)] for one in wrong]
    found.decode([b"\0"] * len(wrong), events, None, headers)
    assert [bad.number for bad in events.invalid] == [0, 1, 2, 3]


def test_a_schema_that_is_nested_too_deeply_makes_its_records_invalid(server: FakeRegistry) -> None:
    for depth in (300, 100_000):
        before = '{"type": "record", "name": "Deep", "fields": [{"name": "x", "type": '
        inner = '{"type": "array", "items": ' * depth + '"int"' + "}" * depth
        text = before + inner + "}]}"
        schema_id = server.add("deep-value", text)
        record = b"\0" + schema_id.to_bytes(4) + b"\2" * depth
        found = decoder("avro", RegisteredAvro(registry_of(server)))
        assert len(read(found, [record]).invalid) == 1


def test_records_are_counted_by_schema(server: FakeRegistry) -> None:
    records = avro_records(server)
    found = decoder("avro", RegisteredAvro(registry_of(server)))
    read(found, records)
    assert found.take_schema_counts() == {1: 2, 2: 2, 3: 1}
    read(found, [records[0], b"{}", records[0][:7]])  # one has no id, one is cut
    assert found.take_schema_counts() == {1: 2}


def test_json_with_a_schema(server: FakeRegistry) -> None:
    client = SchemaRegistryClient({"url": server.url})
    text = json.dumps({"type": "object", "title": "Click"})
    events: list[dict[str, Any]] = [{"ad": "é", "user": {"age": 3}}, {"ad": "hats", "tags": ["a"]}]
    records = [JSONSerializer(text, client)(event, CONTEXT) for event in events]
    same(decoder("json-schema", RegisteredJSON(registry_of(server))), records, events)
    found = decoder("json-schema", RegisteredJSON(registry_of(server)))
    for wrong in (b'{"ad": "x"}', b"\0\0\0\0\x63{}", b"", records[0][:-1]):
        assert len(read(found, [wrong]).invalid) == 1
    server.add("clicks-value", json.dumps(V1))
    of_avro = b"\0\0\0\0\2" + b"{}"
    assert "AVRO" in read(found, [of_avro]).invalid[0].reason


def test_avro_of_a_file(tmp_path: Any) -> None:
    path = tmp_path / "click.avsc"
    path.write_text(json.dumps(V1), encoding="utf-8")
    same(
        decoder("avro", avro_schemas(str(path), None)),
        [b"\x02x" + bytes(8)],
        [{"ad": "x", "price": 0.0}],
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '"string"', '{"type": "record"}'])
def test_files_that_are_no_schema(tmp_path: Any, text: str) -> None:
    path = tmp_path / "click.avsc"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError):
        avro_schemas(str(path), None)
    path.write_bytes(b"\xff" + text.encode())
    with pytest.raises(SchemaError):
        protobuf_schemas(str(path), "shop.Click", None)
    with pytest.raises(SchemaError, match=r"missing\.avsc"):
        avro_schemas(str(tmp_path / "missing.avsc"), None)


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        ("avro", b"\0\0\0\0\x09"),  # unknown
        ("avro", b"\0\0\0\0\x01"),  # not a record
        ("avro", b"\0\0\0\0\x02"),  # Protobuf
        ("avro", b"\0\0\0\0\x03"),  # not JSON
        ("protobuf", b"\0\0\0\0\x04\0"),  # Avro
        ("protobuf", b"\0\0\0\0\x02\x02\x0a"),  # has no sixth message
        ("protobuf", b"\0\0\0\0\x02\x02\x01"),  # nor a message before the first
        ("protobuf", b"\0\0\0\0\x05\0"),  # no descriptor
    ],
)
def test_schemas_that_cannot_be_used_make_records_invalid(
    server: FakeRegistry, kind: str, header: bytes
) -> None:
    data, _ = click("ad")
    file = base64.b64encode(data.file[0].SerializeToString()).decode()
    server.add("a", '"string"')
    server.add("b", file, "PROTOBUF")
    server.add("c", "{")
    server.add("d", json.dumps(V1))
    server.add("e", "eHh4eA==", "PROTOBUF")
    schemas = RegisteredAvro if kind == "avro" else RegisteredProtobuf
    found = decoder(kind, schemas(registry_of(server)))
    [(_, field, _, reason)] = read(found, [header]).invalid
    assert field is None
    assert reason.startswith(f"the schema {header[4]} ")


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
@pytest.mark.parametrize(
    "record", [b"", b"{}", b"\0\0\0", b"\x01" + bytes(15), b"\x02" + bytes(20)]
)
def test_records_without_an_id(server: FakeRegistry, kind: str, record: bytes) -> None:
    schemas = RegisteredAvro if kind == "avro" else RegisteredProtobuf
    events = read(decoder(kind, schemas(registry_of(server))), [record])
    assert [bad.number for bad in events.invalid] == [0]
    assert not server.calls


def test_an_outage_makes_no_record_invalid(server: FakeRegistry) -> None:
    records = avro_records(server)
    found = decoder("avro", RegisteredAvro(registry_of(server)))
    server.fault = (503, b"")
    with pytest.raises(RegistryError):
        read(found, records)
    server.fault = None
    assert len(read(found, records)) == len(records)


def test_protobuf_that_is_only_served_as_text(server: FakeRegistry) -> None:
    server.add("a", 'syntax = "proto3"; message Click { string ad = 1; }', "PROTOBUF")
    found = decoder("protobuf", RegisteredProtobuf(registry_of(server)))
    with pytest.raises(RegistryError, match=r"format\.descriptors"):
        read(found, [b"\0\0\0\0\x01\0"])


def test_decoders_share_a_schema() -> None:
    schemas = AvroSchema(V1)
    records = [b"\x02x" + bytes(8)]
    first, second = (decoder("avro", schemas, Fields(label=None, ignored=("ad",))) for _ in "ab")
    whole = decoder("avro", schemas)
    for _ in range(2):
        same(whole, records, [{"ad": "x", "price": 0.0}])
        for one in (first, second):
            same(one, records, [{"price": 0.0}])
            assert sorted(one.field_names()) == ["ad", "price"]
