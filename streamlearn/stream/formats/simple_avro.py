"""Write records of simple Avro types fast: fastavro tries the branches of a union one by one."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from streamlearn.core.varints import varint
from streamlearn.errors import SchemaError
from streamlearn.stream.formats.writers import AvroWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    Encode = Callable[[Any], bytes]

DOUBLE = struct.Struct("<d").pack
TYPES: dict[str, type] = {
    "null": type(None),
    "boolean": bool,
    "long": int,
    "double": float,
    "string": str,
    "bytes": bytes,
}


class SimpleAvroWriter(AvroWriter):
    r"""Writes records whose fields are of simple types, maps or unions of them.

    >>> field = {"name": "id", "type": ["null", "string"], "default": None}
    >>> writer = SimpleAvroWriter({"type": "record", "name": "Click", "fields": [field]})
    >>> writer.write({"id": "hats"}), writer.write({})
    (b'\x02\x08hats', b'\x00')
    """

    def __init__(self, schema: Any) -> None:
        super().__init__(schema)
        self._fields = [(one["name"], encoder(one["type"])) for one in schema["fields"]]

    def write(self, value: dict[str, Any]) -> bytes:
        """Return a value as bytes."""
        found = value.get
        try:
            return self.prefix + b"".join([encode(found(name)) for name, encode in self._fields])
        except (KeyError, ValueError, TypeError, AttributeError, struct.error) as error:
            raise SchemaError(f"the value does not match the Avro schema: {error!r}") from error


def encoder(schema: Any) -> Encode:
    r"""Return what encodes the values of a type.

    >>> encoder({"type": "map", "values": "boolean"})({"a": True})
    b'\x02\x02a\x01\x00'
    """
    if isinstance(schema, list):
        return union_encoder(schema)
    if isinstance(schema, str):
        return ENCODERS[schema]
    return map_encoder(schema["values"]) if schema["type"] == "map" else encoder(schema["type"])


def union_encoder(schemas: list[str | dict[str, Any]]) -> Encode:
    """Return what encodes the values of a union, by their Python type."""
    branches: dict[type, tuple[bytes, Encode]] = {
        TYPES[one] if isinstance(one, str) else dict: (varint(2 * number), encoder(one))
        for number, one in enumerate(schemas)
    }
    if float in branches:
        branches.setdefault(int, branches[float])

    def encode(value: Any) -> bytes:
        number, encode_branch = branches[type(value)]
        return number + encode_branch(value)

    return encode


def map_encoder(schema: Any) -> Encode:
    """Return what encodes the values of a map."""
    encode_value = encoder(schema)

    def encode(value: dict[str, Any]) -> bytes:
        items = b"".join([encode_text(key) + encode_value(one) for key, one in value.items()])
        return varint(2 * len(value)) + items + b"\0" if value else b"\0"

    return encode


def encode_bytes(value: bytes) -> bytes:
    """Return bytes behind their length."""
    return varint(2 * len(value)) + value


def encode_text(value: str) -> bytes:
    """Return text behind the length of its UTF-8."""
    return encode_bytes(value.encode())


def encode_int(value: int) -> bytes:
    """Return an integer as a zigzag varint."""
    return varint(2 * value if value >= 0 else -2 * value - 1)


ENCODERS: dict[str, Encode] = {
    "null": lambda _: b"",
    "boolean": lambda value: b"\1" if value else b"\0",
    "int": encode_int,
    "long": encode_int,
    "double": DOUBLE,
    "string": encode_text,
    "bytes": encode_bytes,
}
