"""Where binary formats get the plans of their records: one schema, or those of a registry."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from streamlearn.errors import RegistryError
from streamlearn.stream.formats import avro_plan, protobuf_plan
from streamlearn.stream.formats.avro import Plan as AvroPlan
from streamlearn.stream.formats.protobuf import Plan as ProtobufPlan

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from streamlearn.stream.schema_registry import SchemaRegistry


class Schemas(Protocol):
    """The schemas of a stream's records."""

    framed: bool  # records begin with a header that has the id of their schema

    def plan(self, header: bytes) -> Any:
        """Return the plan of records with this header."""


class AvroSchema:
    """One Avro schema, for records without a header."""

    framed = False

    def __init__(self, schema: Any, reader_schema: Any = None) -> None:
        self._plan = AvroPlan(avro_plan.plan(schema, reader_schema))

    def plan(self, header: bytes) -> AvroPlan:  # noqa: ARG002 - a registry's
        """Return the plan of the schema."""
        return self._plan


class RegisteredAvro:
    """The Avro schemas of a registry."""

    framed = True

    def __init__(self, registry: SchemaRegistry, reader_schema: Any = None) -> None:
        self._registry = registry
        self._reader_schema = reader_schema

    def plan(self, header: bytes) -> AvroPlan:
        """Return the plan of the schema with the header's id."""
        schema = self._registry.schema(id_of(header))
        *imported, text = [json.loads(one.text) for one in schema.with_imports().values()]
        return AvroPlan(avro_plan.plan(text, self._reader_schema, imported))


class ProtobufMessage:
    """One Protobuf message, for records without a header."""

    framed = False

    def __init__(self, message: Descriptor) -> None:
        self._plan = ProtobufPlan(protobuf_plan.plan(message))

    def plan(self, header: bytes) -> ProtobufPlan:  # noqa: ARG002 - a registry's
        """Return the plan of the message."""
        return self._plan


class RegisteredProtobuf:
    """The Protobuf schemas of a registry, which must serve their serialized descriptors."""

    framed = True

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry

    def plan(self, header: bytes) -> ProtobufPlan:
        """Return the plan of the message with the header's id and path."""
        schema_id = id_of(header)
        schema = self._registry.schema(schema_id, serialized=True)
        files = {}
        for name, one in schema.with_imports(f"schema-{schema_id}.proto").items():
            try:
                files[name] = base64.b64decode(one.text, validate=True)
            except binascii.Error as error:
                raise RegistryError(
                    f"{self._registry.url}: the registry serves Protobuf schema {schema_id} only as "
                    "text; set format.descriptors to a file of protoc --descriptor_set_out"
                ) from error
        path = indexes_of(header[5 if header[0] == 0 else 17 :])
        return ProtobufPlan(protobuf_plan.plan(protobuf_plan.message_at(files, path)))


def id_of(header: bytes) -> int | str:
    """Return the id in a header: a number, or a GUID.

    >>> id_of(bytes([0, 0, 0, 1, 2]))
    258
    """
    return int.from_bytes(header[1:5]) if header[0] == 0 else str(UUID(bytes=header[1:17]))


def indexes_of(path: bytes) -> list[int]:
    """Return the indexes of a message in its file and in the messages around it.

    >>> indexes_of(b"\\0"), indexes_of(bytes([4, 2, 0]))
    ([0], [1, 0])
    """
    numbers, shift, number = [], 0, 0
    for byte in path:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number >> 1)
            shift, number = 0, 0
    return numbers[1:] or [0]
