"""Write JSON records in Avro or Protobuf, by a schema that is given, or inferred from the first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
from google.protobuf import descriptor_pb2

from streamlearn.daemon.outputs.written import register
from streamlearn.errors import SchemaError
from streamlearn.stream.formats.protobuf_plan import descriptor_set, message_named
from streamlearn.stream.formats.schemas import content, json_of
from streamlearn.stream.formats.writers import AvroWriter, ProtobufWriter
from streamlearn.stream.schema_registry import SchemaRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streamlearn.cli.parsing import Options
    from streamlearn.stream.formats.writers import Writer

SAMPLE = 1000  # records from which a schema is inferred
Proto = descriptor_pb2.FieldDescriptorProto
NAMES = {bool: "boolean", int: "long", float: "double", str: "string"}
PROTOBUF = {
    "boolean": Proto.TYPE_BOOL,
    "long": Proto.TYPE_INT64,
    "double": Proto.TYPE_DOUBLE,
    "string": Proto.TYPE_STRING,
}


def serialized(values: Iterable[bytes], options: Options) -> Iterator[bytes]:
    """Yield JSON records in the format of --as."""
    events = map(decoded, values)
    first = list(itertools.islice(events, SAMPLE))
    writer = writer_of(options, first)
    if options.registry is not None:
        register(writer, SchemaRegistry(options.registry), options.topic, "topic")
    for number, event in enumerate(itertools.chain(first, events), 1):
        try:
            yield writer.write(event)
        except SchemaError as error:
            raise ValueError(f"record {number}: {error}; give a --schema") from error


def decoded(value: bytes) -> dict[str, Any]:
    """Return the fields of a record."""
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ValueError(f"--as requires JSON objects: {error}") from error


def writer_of(options: Options, events: Sequence[dict[str, Any]]) -> Writer:
    """Return what writes the records, by the schema of the options or of these events."""
    if options.kind == "avro":
        given = None if options.schema is None else json_of(options.schema)
        return AvroWriter(given or avro_schema(events))
    if options.descriptors is not None:
        files = descriptor_set(content(options.descriptors))
        return ProtobufWriter(message_named(files, options.message or ""))
    return ProtobufWriter(message_of(events))


def types_of(events: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the type of each field: the one that has room for all of its values.

    >>> types_of([{"a": 1, "b": "x"}, {"a": 2.5, "b": None, "c": True}])
    {'a': 'double', 'b': 'string', 'c': 'boolean'}
    """
    found: dict[str, set[str]] = {}
    for event in events:
        for name, value in event.items():
            if value is None:
                continue
            if type(value) not in NAMES:
                raise ValueError(
                    f"field {name!r} is nested or a list: give a schema (--schema, --descriptors)"
                )
            found.setdefault(name, set()).add(NAMES[type(value)])
    for name, kinds in found.items():
        if len(kinds) > 1 and kinds != {"long", "double"}:
            raise ValueError(f"field {name!r} has values of types {', '.join(sorted(kinds))}")
    return {name: min(kinds) for name, kinds in found.items()}


def avro_schema(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a record with the fields of these events, which may be missing."""
    fields = [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in types_of(events).items()
    ]
    return {"type": "record", "name": "Event", "fields": fields}


def message_of(events: Sequence[dict[str, Any]]) -> Any:
    """Return the descriptor of a message with the fields of these events."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", syntax="proto2")
    message = file.message_type.add(name="Event")
    for number, (name, kind) in enumerate(types_of(events).items(), 1):
        message.field.add(name=name, number=number, type=PROTOBUF[kind], label=1)
    return message_named([file], "Event")
