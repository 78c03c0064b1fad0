"""Where binary formats get the plans of their records: one schema, or those of a registry."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from streamlearn.errors import InvalidEventError, RegistryError, SchemaError
from streamlearn.stream.formats import avro_plan, protobuf_plan
from streamlearn.stream.formats.avro import AvroPlan
from streamlearn.stream.formats.protobuf import ProtobufPlan
from streamlearn.stream.formats.schema_fields import avro_fields, json_fields, protobuf_fields

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from streamlearn.stream.schema_registry import RegisteredSchema, SchemaRegistry


CONTAINER_HEADER = "avro.schema"  # of the records of container files: their schema
SCHEMA_ID_HEADER = "__value_schema_id"  # of Confluent's serializers, if ids are not in values
# a schema may be no JSON, of unknown types, or nested too deeply to be parsed
UNUSABLE = (SchemaError, json.JSONDecodeError, RecursionError)


class Schemas(Protocol):
    """The schemas of a stream's records."""

    framed: bool  # records begin with a header that has the id of their schema
    header_name: str | None = None  # of a header of records that may have this instead

    def plan(self, header: bytes) -> Any:
        """Return the plan of records with this header; InvalidEventError if there is none."""

    def id_of(self, header: bytes) -> int | str | None:
        """Return the id by which such records are counted; None if they are not."""
        del header
        return None

    def fields(self, topic: str) -> dict[str, str]:
        """Return the types of a topic's fields by name, as far as they are known beforehand."""
        del topic
        return {}


class AvroSchema(Schemas):
    """One Avro schema, for records without a header."""

    framed = False

    def __init__(self, schema: Any, reader_schema: Any = None) -> None:
        self._plan = AvroPlan(avro_plan.plan(schema, reader_schema))
        self._schema = schema if reader_schema is None else reader_schema

    def fields(self, topic: str) -> dict[str, str]:  # noqa: ARG002 - a registry's
        """Return the types of the fields by name."""
        return fields_of_avro(self._schema)

    def plan(self, header: bytes) -> AvroPlan:  # noqa: ARG002 - a registry's
        """Return the plan of the schema."""
        return self._plan


class ProtobufMessage(Schemas):
    """One Protobuf message, for all records; `framed`: skip the headers of a registry."""

    def __init__(self, message: Descriptor, *, framed: bool = False) -> None:
        self._messages = protobuf_plan.plan(message)
        self._plan = ProtobufPlan(self._messages)
        self.framed = framed
        self.header_name = SCHEMA_ID_HEADER if framed else None

    def plan(self, header: bytes) -> ProtobufPlan:  # noqa: ARG002 - a registry's
        """Return the plan of the message."""
        return self._plan

    def fields(self, topic: str) -> dict[str, str]:  # noqa: ARG002 - a registry's
        """Return the types of the fields by name."""
        return dict(protobuf_fields(self._messages))


class RegisteredSchemas(Schemas):
    """The schemas of a registry, of one kind."""

    framed = True
    header_name = SCHEMA_ID_HEADER
    kind: str  # as the registry calls it

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry

    def plan(self, header: bytes) -> Any:
        """Return the plan of the schema with the header's id."""
        schema_id = self.id_of(header)
        try:
            schema = self._registry.schema(schema_id, self.kind)
            return self._plan(schema, header)
        except UNUSABLE as error:
            raise InvalidEventError(
                f"the schema {schema_id} cannot be used: {error}", code="schema"
            ) from error

    def id_of(self, header: bytes) -> int | str:
        """Return the id in a header: a number, or a GUID."""
        return int.from_bytes(header[1:5]) if header[0] == 0 else str(UUID(bytes=header[1:17]))

    def fields(self, topic: str) -> dict[str, str]:
        """Return the types of the fields of the newest schema under the topic's subject."""
        found = self._registry.latest(f"{topic}-value", self.kind)
        return {} if found is None else self._fields(found)

    def _plan(self, schema: RegisteredSchema, header: bytes) -> Any:
        raise NotImplementedError

    def _fields(self, schema: RegisteredSchema) -> dict[str, str]:
        raise NotImplementedError


class ContainedAvro(Schemas):
    """The Avro schemas of container files, which their records have in a header."""

    framed = False
    header_name = CONTAINER_HEADER

    def __init__(self, reader_schema: Any = None) -> None:
        if reader_schema is not None:
            avro_plan.plan(reader_schema)
        self._reader_schema = reader_schema
        self._latest: Any = None

    def plan(self, header: bytes) -> AvroPlan:
        """Return the plan of a schema."""
        if not header:
            raise InvalidEventError("the record has no schema: it is not of an Avro file")
        try:
            self._latest = json.loads(header)
            return AvroPlan(avro_plan.plan(self._latest, self._reader_schema))
        except UNUSABLE as error:
            raise InvalidEventError(
                f"the schema of the file cannot be used: {error}", code="schema"
            ) from error

    def fields(self, topic: str) -> dict[str, str]:  # noqa: ARG002 - a registry's
        """Return the types of the fields of the file that was read last."""
        schema = self._reader_schema or self._latest
        return {} if schema is None else fields_of_avro(schema)


class RegisteredAvro(RegisteredSchemas):
    """The Avro schemas of a registry; records are read as the reader's schema, if there is one."""

    kind = "AVRO"

    def __init__(self, registry: SchemaRegistry, reader_schema: Any = None) -> None:
        super().__init__(registry)
        if reader_schema is not None:
            avro_plan.plan(reader_schema)  # or every record would be invalid
        self._reader_schema = reader_schema

    def _plan(self, schema: RegisteredSchema, header: bytes) -> AvroPlan:  # noqa: ARG002 - Protobuf's
        *imported, text = texts_of(schema)
        return AvroPlan(avro_plan.plan(text, self._reader_schema, imported))

    def _fields(self, schema: RegisteredSchema) -> dict[str, str]:
        return fields_of_avro(*reversed(texts_of(schema)))


class RegisteredJSON(RegisteredSchemas):
    """The JSON schemas of a registry."""

    kind = "JSON"

    def _plan(self, schema: RegisteredSchema, header: bytes) -> Any:  # noqa: ARG002 - Protobuf's
        return json.loads(schema.text)

    def _fields(self, schema: RegisteredSchema) -> dict[str, str]:
        return dict(json_fields(json.loads(schema.text)))


class RegisteredProtobuf(RegisteredSchemas):
    """The Protobuf schemas of a registry, which must serve their serialized descriptors."""

    kind = "PROTOBUF"

    def _plan(self, schema: RegisteredSchema, header: bytes) -> ProtobufPlan:
        return ProtobufPlan(self._messages(schema, header[5 if header[0] == 0 else 17 :]))

    def _fields(self, schema: RegisteredSchema) -> dict[str, str]:
        return dict(protobuf_fields(self._messages(schema, b"")))

    def _messages(self, schema: RegisteredSchema, path: bytes) -> list[protobuf_plan.Message]:
        files = {}
        for name, one in schema.with_imports("schema.proto").items():
            try:
                files[name] = base64.b64decode(one.text, validate=True)
            except binascii.Error as error:
                raise RegistryError(
                    f"{self._registry.url}: the registry serves Protobuf schemas only as text; set "
                    "format.descriptors to a file of protoc --descriptor_set_out"
                ) from error
        return protobuf_plan.plan(protobuf_plan.message_at(files, indexes_of(path)))


def texts_of(schema: RegisteredSchema) -> list[Any]:
    """Return an Avro schema after those that it refers to."""
    return [json.loads(one.text) for one in schema.with_imports().values()]


def fields_of_avro(schema: Any, *references: Any) -> dict[str, str]:
    """Return the types of an Avro schema's fields by name; it may refer to others."""
    named: dict[str, Any] = {}
    for other in reversed(references):
        avro_plan.parse(other, named)
    return dict(avro_fields(avro_plan.parse(schema, named), named))


def schemas_of(
    kind: str,
    *,
    schema: str | None = None,
    descriptors: str | None = None,
    message: str | None = None,
    registry: SchemaRegistry | None = None,
    in_files: bool = False,
) -> Schemas:
    """Return the schemas of a format's records: those of a registry, of a file, or of both.

    `in_files`: the records are those of files, where no registry is needed.
    """
    if kind == "avro" and in_files:
        return ContainedAvro(None if schema is None else json_of(schema))
    if kind == "avro":
        return avro_schemas(schema, registry)
    if kind == "protobuf":
        return protobuf_schemas(descriptors, message, None if in_files else registry)
    if registry is None:
        raise SchemaError(f"format {kind!r} requires a registry")
    return RegisteredJSON(registry)


def avro_schemas(path: str | None, registry: SchemaRegistry | None) -> Schemas:
    """Return the schemas of Avro records: that of a file, a registry's, or both.

    The file is then the schema of the reader.
    """
    given = None if path is None else json_of(path)
    return AvroSchema(given) if registry is None else RegisteredAvro(registry, given)


def protobuf_schemas(
    path: str | None, message: str | None, registry: SchemaRegistry | None
) -> Schemas:
    """Return the schemas of Protobuf records: a message of a descriptor set, or a registry's."""
    if path is None and registry is not None:
        return RegisteredProtobuf(registry)
    files = protobuf_plan.descriptor_set(content(path or ""))
    found = protobuf_plan.message_named(files, message or "")
    return ProtobufMessage(found, framed=registry is not None)


def json_of(path: str) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(content(path))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path} is not JSON, which an Avro schema is: {error}") from error


def content(path: str) -> bytes:
    """Return the bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror}") from error


def indexes_of(path: bytes) -> list[int]:
    r"""Return the indexes of a message in its file and in the messages around it.

    >>> indexes_of(b"\0"), indexes_of(bytes([4, 2, 0]))
    ([0], [1, 0])
    """
    numbers, shift, number = [], 0, 0
    for byte in path:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append((number >> 1) ^ -(number & 1))  # zigzag
            shift, number = 0, 0
    return numbers[1:] or [0]
