"""Predictions and dead letters in Avro and Protobuf: their schemas, registered for their topics.

docs/reference/predictions.md shows the schemas to readers. Fields are only ever added, with a
default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from google.protobuf import descriptor_pb2

from streamlearn.stream.formats.protobuf_plan import message_named
from streamlearn.stream.formats.simple_avro import SimpleAvroWriter
from streamlearn.stream.formats.writers import ProtobufWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.stream.formats.writers import Writer
    from streamlearn.stream.schema_registry import SchemaRegistry

Proto = descriptor_pb2.FieldDescriptorProto
NAMESPACE = "streamlearn"
# the fields of a prediction that are one of several types: the label
CHOICES = {bool: "boolean", int: "integer", float: "number", str: "text"}
TIME = {"type": "long", "logicalType": "timestamp-millis"}
AVRO: dict[str, dict[str, Any]] = {
    "Prediction": {
        "id": ["null", "string"],
        "prediction": ["null", "boolean", "long", "double", "string"],
        "learner": "string",
        "step": "long",
        "probability": ["null", "double"],
        "probabilities": ["null", {"type": "map", "values": "double"}],
        "value": ["null", "double"],
    },
    "DeadLetter": {
        "topic": "string",
        "partition": "int",
        "offset": "long",
        "time": TIME,
        "code": "string",
        "reason": "string",
        "field": ["null", "string"],
        "value": ["null", "bytes"],
    },
}
PROTOBUF: dict[str, dict[str, int]] = {  # in the order of their numbers
    "Prediction": {
        "id": Proto.TYPE_STRING,
        "boolean": Proto.TYPE_BOOL,
        "integer": Proto.TYPE_INT64,
        "number": Proto.TYPE_DOUBLE,
        "text": Proto.TYPE_STRING,
        "learner": Proto.TYPE_STRING,
        "step": Proto.TYPE_INT64,
        "probability": Proto.TYPE_DOUBLE,
        "probabilities": Proto.TYPE_MESSAGE,
        "value": Proto.TYPE_DOUBLE,
    },
    "DeadLetter": {
        "topic": Proto.TYPE_STRING,
        "partition": Proto.TYPE_INT32,
        "offset": Proto.TYPE_INT64,
        "time": Proto.TYPE_INT64,
        "code": Proto.TYPE_STRING,
        "reason": Proto.TYPE_STRING,
        "field": Proto.TYPE_STRING,
        "value": Proto.TYPE_BYTES,
    },
}
OPTIONAL = {"id", "probability", "field", "value"}  # of proto3, whose other fields may be zero


def writer_of(kind: Literal["avro", "protobuf"], name: str) -> Writer:
    """Return the writer of "Prediction" or "DeadLetter".

    >>> writer_of("avro", "Prediction").name, writer_of("protobuf", "DeadLetter").name
    ('streamlearn.Prediction', 'streamlearn.DeadLetter')
    """
    if kind == "avro":
        return SimpleAvroWriter(avro_schema(name, AVRO[name]))
    return PredictionMessages(name) if name == "Prediction" else ProtobufWriter(message(name))


def avro_schema(name: str, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a record; fields that may be null are so by default."""
    fields = [
        {"name": field, "type": kind, **({"default": None} if isinstance(kind, list) else {})}
        for field, kind in types.items()
    ]
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


class PredictionMessages(ProtobufWriter):
    """Writes predictions; the label is in the field of its type."""

    def __init__(self, name: str) -> None:
        super().__init__(message(name))

    def write(self, value: dict[str, Any]) -> bytes:
        """Return a prediction as bytes."""
        fields = dict(value)
        label = fields.pop("prediction", None)
        if label is not None:
            fields[CHOICES.get(type(label), "text")] = label
        return super().write(fields)


def message(name: str) -> Any:
    """Return the descriptor of a message."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{NAMESPACE}/{name}.proto", package=NAMESPACE, syntax="proto3"
    )
    found = file.message_type.add(name=name)
    if name == "Prediction":
        found.oneof_decl.add(name="prediction")
    for number, (field, kind) in enumerate(PROTOBUF[name].items(), 1):
        one = found.field.add(name=field, number=number, type=kind, label=Proto.LABEL_OPTIONAL)
        if field in CHOICES.values():
            one.oneof_index = 0
        elif kind == Proto.TYPE_MESSAGE:
            one.label = Proto.LABEL_REPEATED
            one.type_name = f".{NAMESPACE}.{name}.ProbabilitiesEntry"
            entry = found.nested_type.add(name="ProbabilitiesEntry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=Proto.TYPE_STRING, label=1)
            entry.field.add(name="value", number=2, type=Proto.TYPE_DOUBLE, label=1)
    for one in found.field:  # those of the language's own come first
        if one.name in OPTIONAL:
            one.proto3_optional = True
            one.oneof_index = len(found.oneof_decl)
            found.oneof_decl.add(name=f"_{one.name}")
    return message_named([file], f"{NAMESPACE}.{name}")


def subject(strategy: str, topic: str, name: str) -> str:
    """Return the subject under which the schema of a topic's values is registered.

    >>> [subject(one, "scores", "shop.Score") for one in ("topic", "record", "topic-record")]
    ['scores-value', 'shop.Score', 'scores-shop.Score']
    """
    return {"topic": f"{topic}-value", "record": name, "topic-record": f"{topic}-{name}"}[strategy]


def register(
    writer: Writer, registry: SchemaRegistry, topic: str, strategy: str, *, allowed: bool = True
) -> None:
    """Let a writer begin its records with the id of its schema, registered if that is allowed."""
    where = subject(strategy, topic, writer.name)
    writer.use_id(registry.id_of(where, writer.schema, writer.kind, register=allowed))
