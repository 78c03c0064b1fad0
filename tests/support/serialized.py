"""The events of `tests.support.streams` as Confluent's own serializers write them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, json_format, message_factory

from streamlearn.stream.formats.protobuf_plan import message_named

if TYPE_CHECKING:
    from collections.abc import Callable

CONTEXT = SerializationContext("clicks", MessageField.VALUE)
TYPES = {"id": "string", "user": "string", "ad": "string", "hour": "int", "w": "int"}
Proto = descriptor_pb2.FieldDescriptorProto
PROTOBUF_TYPES = {
    "string": Proto.TYPE_STRING,
    "int": Proto.TYPE_INT32,
    "boolean": Proto.TYPE_BOOL,
    "double": Proto.TYPE_DOUBLE,
}


def serializer(kind: str, url: str, added: str = "") -> Callable[[bytes], bytes]:
    """Return what writes an event, given as JSON; schemas differ by a field that is `added`."""
    client = SchemaRegistryClient({"url": url})
    types = {**TYPES, **({added: "double"} if added else {}), "click": "boolean"}
    write = avro(client, types) if kind == "avro" else protobuf(client, types)
    return lambda event: write(json.loads(event))


def avro(client: Any, types: dict[str, str]) -> Callable[[Any], bytes]:
    members = [{"name": name, "type": ["null", kind]} for name, kind in types.items()]
    schema = {"type": "record", "name": "Click", "namespace": "shop", "fields": members}
    to = AvroSerializer(client, json.dumps(schema))
    return lambda event: bytes(to(event, CONTEXT))


def protobuf(client: Any, types: dict[str, str]) -> Callable[[Any], bytes]:
    file = descriptor_pb2.FileDescriptorProto(name="click.proto", package="shop", syntax="proto2")
    message = file.message_type.add(name="Click")
    for number, (name, kind) in enumerate(types.items(), 1):
        message.field.add(
            name=name, number=number, type=PROTOBUF_TYPES[kind], label=Proto.LABEL_OPTIONAL
        )
    click = message_factory.GetMessageClass(message_named([file], "shop.Click"))
    to = ProtobufSerializer(click, client, {"use.deprecated.format": False})
    return lambda event: bytes(to(json_format.ParseDict(event, click()), CONTEXT))
