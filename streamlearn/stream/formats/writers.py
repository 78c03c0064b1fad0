"""Write values in Avro and Protobuf, with the id of their schema in front."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Protocol

from streamlearn.errors import SchemaError
from streamlearn.stream.formats import avro_plan, protobuf_plan

try:
    from fastavro import schemaless_reader, schemaless_writer
    from google.protobuf import json_format, message_factory
except ImportError as error:
    raise ImportError(
        "writing Avro and Protobuf requires pip install 'streamlearn[registry]'"
    ) from error

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

NUMBERED = b"\0"  # in front of the four bytes of an id


class Writer(Protocol):
    """Writes values as bytes, all with one schema."""

    kind: str  # as a registry calls it
    name: str  # of the record or message, in full
    schema: str  # as a registry takes it
    prefix: bytes  # of each record

    def write(self, value: dict[str, Any]) -> bytes:
        """Return a value as bytes; SchemaError if it does not match the schema."""

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the value of such bytes, without their prefix."""

    def use_id(self, schema_id: int) -> None:
        """Begin each record with this id."""


class AvroWriter(Writer):
    r"""Writes records of an Avro schema.

    >>> schema = {"type": "record", "name": "Click", "fields": [{"name": "ad", "type": "string"}]}
    >>> writer = AvroWriter(schema)
    >>> writer.write({"ad": "hats"}), writer.read(writer.write({"ad": "hats"}))
    (b'\x08hats', {'ad': 'hats'})
    """

    kind = "AVRO"

    def __init__(self, schema: Any) -> None:
        self._parsed = avro_plan.parse(schema)
        self.name = str(self._parsed["name"])
        self.schema = json.dumps(schema)
        self.prefix = b""

    def write(self, value: dict[str, Any]) -> bytes:
        """Return a value as bytes."""
        to = io.BytesIO()
        to.write(self.prefix)
        try:
            schemaless_writer(to, self._parsed, value, strict_allow_default=True)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise SchemaError(f"the value does not match the Avro schema: {error}") from error
        return to.getvalue()

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the value of such bytes, without their prefix."""
        found: Any = schemaless_reader(io.BytesIO(data), self._parsed, None)
        return dict(found)

    def use_id(self, schema_id: int) -> None:
        """Begin each record with this id."""
        self.prefix = NUMBERED + schema_id.to_bytes(4)


class ProtobufWriter(Writer):
    """Writes messages, of fields by name or of Protobuf's JSON."""

    kind = "PROTOBUF"

    def __init__(self, message: Descriptor) -> None:
        self._message = message_factory.GetMessageClass(message)
        self._path = protobuf_plan.path_of(message)
        self.name = message.full_name
        self.schema = protobuf_plan.serialized(message)
        self.prefix = b""

    def write(self, value: dict[str, Any]) -> bytes:
        """Return a value as bytes."""
        try:
            message = self._message(**value)
        except (TypeError, ValueError):
            message = self._of_json(value)
        return self.prefix + bytes(message.SerializeToString())

    def _of_json(self, value: dict[str, Any]) -> Message:
        """Return a message with what only Protobuf's JSON allows, such as times as text."""
        try:
            return json_format.ParseDict(value, self._message())
        except json_format.ParseError as error:
            raise SchemaError(f"the value does not match the message: {error}") from error

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the value of such bytes, without their prefix."""
        message = self._message()
        message.ParseFromString(data)
        return {field.name: value for field, value in message.ListFields()}

    def use_id(self, schema_id: int) -> None:
        """Begin each record with this id, and the message's place in its file."""
        self.prefix = NUMBERED + schema_id.to_bytes(4) + self._path
