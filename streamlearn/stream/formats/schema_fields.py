"""The fields of schemas with their types, as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.stream.formats.protobuf_plan import KINDS, ORDINARY, WELL_KNOWN, WRAPPER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamlearn.stream.formats.protobuf_plan import Message, MessageField

PROTOBUF_TYPES = {kind: name.removeprefix("TYPE_").lower() for name, kind in KINDS.items()}
WELL_KNOWN_TYPES = {
    kind: name.removeprefix("google.protobuf.") for name, kind in WELL_KNOWN.items()
}
DEEPEST = 8  # a schema may contain itself


def avro_fields(schema: Any, named: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the fields of a parsed Avro schema; `named` has the types that it names.

    >>> ages = {"type": "record", "name": "U", "fields": [{"name": "age", "type": "int"}]}
    >>> fields = [{"name": "ad", "type": ["null", "string"]}, {"name": "user", "type": ages}]
    >>> list(avro_fields({"type": "record", "name": "C", "fields": fields}, {}))
    [('ad', 'string or null'), ('user.age', 'int')]
    """
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        if len(others) == 1 and is_record(others[0], named):
            yield from avro_fields(others[0], named, name)
            return
    if is_record(schema, named) and name.count(".") < DEEPEST:
        for field in schema["fields"]:
            yield from avro_fields(field["type"], named, joined(name, field["name"]))
        return
    yield name, avro_type(schema)


def is_record(schema: Any, named: Mapping[str, Any]) -> bool:
    """Whether an Avro schema is a record."""
    found = named.get(schema) if isinstance(schema, str) else schema
    return isinstance(found, dict) and found["type"] in {"record", "error"}


def avro_type(schema: Any) -> str:
    """Describe an Avro type.

    >>> avro_type(["null", {"type": "array", "items": "string"}])
    'list of string or null'
    """
    if isinstance(schema, list):
        kinds = sorted(schema, key=lambda one: one == "null")
        return " or ".join(avro_type(one) for one in kinds)
    if isinstance(schema, str):
        return schema
    if "logicalType" in schema:
        return str(schema["logicalType"])
    if schema["type"] == "array":
        return f"list of {avro_type(schema['items'])}"
    if schema["type"] == "map":
        return f"map of {avro_type(schema['values'])}"
    return str(schema["type"])


def protobuf_fields(
    messages: Sequence[Message], number: int = 0, name: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the fields of a message of a plan."""
    for member in messages[number].members:
        path = joined(name, member.name)
        ordinary = member.message >= 0 and messages[member.message].kind == ORDINARY
        if ordinary and not member.repeated and path.count(".") < DEEPEST:
            yield from protobuf_fields(messages, member.message, path)
        else:
            yield path, protobuf_type(messages, member)


def protobuf_type(messages: Sequence[Message], member: MessageField) -> str:
    """Describe the type of a field."""
    if member.is_map:
        return f"map of {protobuf_type(messages, messages[member.message].members[1])}"
    kind = PROTOBUF_TYPES[member.kind]
    inner = messages[member.message] if member.message >= 0 else None
    if inner is not None and inner.kind == WRAPPER:
        kind = PROTOBUF_TYPES[inner.members[0].kind]
    elif inner is not None and inner.kind != ORDINARY:
        kind = WELL_KNOWN_TYPES[inner.kind]
    return f"list of {kind}" if member.repeated else kind


def json_fields(schema: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the properties of a JSON Schema.

    >>> of_user = {"type": "object", "properties": {"age": {"type": ["integer", "null"]}}}
    >>> list(json_fields({"properties": {"ad": {"enum": ["a", "b"]}, "user": of_user}}))
    [('ad', 'enum'), ('user.age', 'integer or null')]
    """
    inner = schema.get("properties") if isinstance(schema, dict) else None
    if inner and name.count(".") < DEEPEST:
        for key, one in inner.items():
            yield from json_fields(one, joined(name, key))
        return
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind is None:
        kind = "enum" if isinstance(schema, dict) and "enum" in schema else "any"
    if name:
        yield name, " or ".join(kind) if isinstance(kind, list) else str(kind)


def joined(name: str, inner: str) -> str:
    """Return the name of a field inside another.

    >>> joined("user", "age"), joined("", "ad")
    ('user.age', 'ad')
    """
    return f"{name}.{inner}" if name else inner
