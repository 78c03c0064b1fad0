"""Protobuf's conformance suite: what its own library reads is what becomes an event."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from google.protobuf.message import DecodeError

import streamlearn as sl
from streamlearn.stream import Fields
from streamlearn.stream.formats.protobuf import ProtobufDecoder
from streamlearn.stream.formats.schemas import ProtobufMessage
from tests.support.conformance import MESSAGES, Cases, cases, class_of
from tests.support.formats import read, same

WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
WRAPPED = {f"google.protobuf.{kind}Value" for kind in WRAPPERS}


@cache
def recorded() -> Cases:
    return cases()


def event_of(message: Any) -> dict[str, Any]:
    """A message that protobuf has read, as an event."""
    event: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            of_value = field.message_type.fields_by_name["value"]
            event[field.name] = {text_of(key): value_of(of_value, value[key]) for key in value}
        elif field.is_repeated:
            event[field.name] = [value_of(field, one) for one in value]
        elif message.HasField(field.name) if field.has_presence else value != "":
            event[field.name] = value_of(field, value)  # zeros that are not written count
    return event


def text_of(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def value_of(field: Any, value: Any) -> Any:
    if field.type == field.TYPE_BYTES:
        return None
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value if field.message_type is None else message_value(value)


def message_value(message: Any) -> Any:
    name = message.DESCRIPTOR.full_name
    if name in {"google.protobuf.Timestamp", "google.protobuf.Duration"}:
        return message.seconds + 1e-9 * message.nanos
    if name in WRAPPED:
        return message.value
    if name == "google.protobuf.Value":
        kind = message.WhichOneof("kind")
        return None if kind == "null_value" else as_is_or_message(getattr(message, kind))
    if name == "google.protobuf.Struct":
        return {key: message_value(message.fields[key]) for key in message.fields}
    return event_of(message)


def as_is_or_message(value: Any) -> Any:
    if isinstance(value, str | bool | float):
        return value
    if value.DESCRIPTOR.name == "ListValue":
        return [message_value(one) for one in value.values]
    return message_value(value)


def decoder(name: str) -> tuple[Any, ProtobufDecoder]:
    """The class of a message, and our decoder: lists have to be declared or ignored."""
    kind = class_of(recorded().descriptors, name)
    kinds = {}
    for field in kind.DESCRIPTOR.fields:
        inner = field.message_type
        if field.is_repeated and not (inner is not None and inner.GetOptions().map_entry):
            listed = inner is None or inner.full_name in WRAPPED
            listed = listed and field.type != field.TYPE_BYTES
            kinds[field.name] = "list" if listed else "ignore"
    schemas = ProtobufMessage(kind.DESCRIPTOR)
    return kind, ProtobufDecoder(
        schemas, sl.Names(fields=kinds), Fields(label=None), grow_always=True
    )


@pytest.mark.parametrize("name", MESSAGES)
def test_cases_of_the_conformance_suite(name: str) -> None:
    kind, own = decoder(name)
    valid, events, invalid = [], [], []
    for message, payload in recorded().payloads:
        if message != name:
            continue
        try:
            found = kind.FromString(payload)
        except DecodeError:
            invalid.append(payload)
        else:
            valid.append(payload)
            events.append(event_of(found))
    assert valid
    same(own, valid, events)
    refused = read(own, invalid).invalid
    assert [bad.number for bad in refused] == list(range(len(invalid)))
