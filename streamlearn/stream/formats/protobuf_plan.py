"""Protobuf messages as plans: lists of messages and their fields, which a decoder walks through.

Descriptors come in their serialized form, from a registry or a file of `protoc`; protobuf's own
pool resolves them, so that nothing is generated.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamlearn.core.varints import varint
from streamlearn.errors import SchemaError

try:
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        descriptor_pool,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
    from google.protobuf.message import DecodeError
except ImportError as error:
    raise ImportError(
        "Protobuf requires protobuf; run pip install 'streamlearn[registry]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.protobuf.descriptor import Descriptor, FieldDescriptor

# What a field's value is; the same numbers are in `protobuf.pyx`.
INT32, INT64, UINT32, UINT64, SINT32, SINT64, FIXED32, FIXED64, SFIXED32, SFIXED64 = range(10)
FLOAT, DOUBLE, BOOL, STRING, BYTES, ENUM, MESSAGE, GROUP = range(10, 18)

# What a message is.
ORDINARY, TIMESTAMP, DURATION, WRAPPER, STRUCT, VALUE, LIST_VALUE = range(7)

KINDS = {
    "TYPE_INT32": INT32,
    "TYPE_INT64": INT64,
    "TYPE_UINT32": UINT32,
    "TYPE_UINT64": UINT64,
    "TYPE_SINT32": SINT32,
    "TYPE_SINT64": SINT64,
    "TYPE_FIXED32": FIXED32,
    "TYPE_FIXED64": FIXED64,
    "TYPE_SFIXED32": SFIXED32,
    "TYPE_SFIXED64": SFIXED64,
    "TYPE_FLOAT": FLOAT,
    "TYPE_DOUBLE": DOUBLE,
    "TYPE_BOOL": BOOL,
    "TYPE_STRING": STRING,
    "TYPE_BYTES": BYTES,
    "TYPE_ENUM": ENUM,
    "TYPE_MESSAGE": MESSAGE,
    "TYPE_GROUP": GROUP,
}
TYPES: dict[int, int] = {
    number: KINDS[name] for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
}
WELL_KNOWN = {
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Struct": STRUCT,
    "google.protobuf.Value": VALUE,
    "google.protobuf.ListValue": LIST_VALUE,
    **{
        f"google.protobuf.{kind}Value": WRAPPER
        for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
    },
}
WITH_PROTOBUF = {
    module.DESCRIPTOR.name: module.DESCRIPTOR
    for module in (
        any_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
}


@dataclass
class MessageField:
    """A field of a message."""

    number: int
    name: str
    kind: int
    message: int = -1  # the number of its message
    repeated: bool = False
    is_map: bool = False
    implicit: bool = False  # not written where it is zero; not in a map
    oneof: int = -1
    symbols: dict[int, str] = field(default_factory=dict)  # of an enum


@dataclass
class Message:
    """A message and its fields, by number."""

    kind: int
    members: list[MessageField] = field(default_factory=list)


def message_at(files: Mapping[str, bytes], path: Sequence[int]) -> Descriptor:
    """Return the message at a path of indexes in the last of these serialized files."""
    parsed = {name: _parsed(name, data) for name, data in files.items()}
    file = list(parsed.values())[-1]
    message: Any = file
    names = [file.package] if file.package else []
    try:
        for depth, index in enumerate(path):
            inner = message.nested_type if depth else message.message_type
            message = inner[index if index >= 0 else len(inner)]
            names.append(message.name)
        name = ".".join(names)
    except IndexError:
        raise SchemaError(f"{file.name} has no message at {list(path)}") from None
    except TypeError:
        raise SchemaError(f"{file.name} has names that are not UTF-8") from None
    return message_named(parsed.values(), name)


def message_named(files: Iterable[descriptor_pb2.FileDescriptorProto], name: str) -> Descriptor:
    """Return a message by its full name; SchemaError if the files do not define it."""
    left = {one.name: one for one in files}
    pool = descriptor_pool.DescriptorPool()
    while left:
        _add(pool, left, next(iter(left)))
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        raise SchemaError(f"the descriptors have no message {name!r}") from None


def serialized(message: Descriptor) -> str:
    """Return the file of a message as registries take it: base64 of its descriptor."""
    return base64.b64encode(message.file.serialized_pb).decode()


def path_of(message: Descriptor) -> bytes:
    """Return a message's place in its file, as records have it: the indexes, as zigzag varints."""
    names = message.full_name.removeprefix(f"{message.file.package}.").split(".")
    found: Any = _parsed(message.file.name, message.file.serialized_pb).message_type
    path = []
    for name in names:
        path.append([one.name for one in found].index(name))
        found = found[path[-1]].nested_type
    if path == [0]:
        return bytes(1)
    return b"".join(varint(2 * number) for number in (len(path), *path))


def descriptor_set(data: bytes) -> Iterable[descriptor_pb2.FileDescriptorProto]:
    """Return the files of a descriptor set, as `protoc --descriptor_set_out` writes it."""
    found = descriptor_pb2.FileDescriptorSet()
    try:
        found.ParseFromString(data)
    except DecodeError as error:
        raise SchemaError(f"this is not a descriptor set: {error}") from error
    return found.file


def _parsed(name: str, data: bytes) -> descriptor_pb2.FileDescriptorProto:
    found = descriptor_pb2.FileDescriptorProto()
    try:
        found.ParseFromString(data)
    except DecodeError as error:
        raise SchemaError(f"{name} is not a serialized file descriptor: {error}") from error
    found.name = name
    return found


def _add(pool: Any, left: dict[str, descriptor_pb2.FileDescriptorProto], name: str) -> None:
    """Add a file to the pool, after those that it imports; some come with protobuf."""
    file = left.pop(name, None)
    if file is None:
        if name not in WITH_PROTOBUF:
            raise SchemaError(f"the imported file {name!r} is missing")
        file = descriptor_pb2.FileDescriptorProto()
        WITH_PROTOBUF[name].CopyToProto(file)
    for imported in file.dependency:
        try:
            pool.FindFileByName(imported)
        except KeyError:
            _add(pool, left, imported)
    try:
        pool.Add(file)
    except TypeError as error:
        raise SchemaError(f"{name}: {error}") from error


def plan(message: Descriptor) -> list[Message]:
    """Return a message and all that it contains; the first is the message."""
    planner = _ProtobufPlanner()
    planner.number_of(message)
    return planner.messages


class _ProtobufPlanner:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._numbers: dict[str, int] = {}

    def number_of(self, message: Descriptor) -> int:
        """Return the number of a message, added with what it contains."""
        name = message.full_name
        if name not in self._numbers:
            self._numbers[name] = len(self.messages)
            made = Message(WELL_KNOWN.get(name, ORDINARY))
            self.messages.append(made)
            proto = descriptor_pb2.DescriptorProto()
            message.CopyToProto(proto)
            lists = {one.number for one in proto.field if one.label == one.LABEL_REPEATED}
            made.members = [
                self._member(one, repeated=one.number in lists) for one in message.fields
            ]
            made.members.sort(key=lambda one: one.number)
        return self._numbers[name]

    def _member(self, one: FieldDescriptor, *, repeated: bool) -> MessageField:
        kind = TYPES[one.type]
        inner = one.message_type
        return MessageField(
            number=one.number,
            name=one.name,
            kind=kind,
            message=-1 if inner is None else self.number_of(inner),
            repeated=repeated,
            is_map=_is_entry(inner),
            implicit=not (repeated or one.has_presence or _is_entry(one.containing_type)),
            oneof=-1 if one.containing_oneof is None else one.containing_oneof.index,
            symbols={} if one.enum_type is None else _symbols(one.enum_type),
        )


def _is_entry(message: Descriptor | None) -> bool:
    """Whether a message is an entry of a map."""
    return message is not None and message.GetOptions().map_entry


def _symbols(enum: Any) -> dict[int, str]:
    """Return the first name of each number."""
    found: dict[int, str] = {}
    for value in enum.values:
        found.setdefault(value.number, value.name)
    return found
