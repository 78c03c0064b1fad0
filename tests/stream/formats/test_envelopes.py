"""Events inside of records: below a root, and as CloudEvents."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np
import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn import config
from streamlearn.stream import CustomDecoder, Decoder, Events, Fields, JSONDecoder
from streamlearn.stream.formats.decoder_factory import decoder_of
from streamlearn.stream.formats.protobuf_plan import message_named
from streamlearn.stream.formats.schemas import AvroSchema, ProtobufMessage
from tests.support.formats import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.stream.records import Header

EVENT: dict[str, Any] = {"ad": "shoes", "id": "inner", "price": 2.5, "user": {"age": 41}, "y": 1}
FEATURES = {"ad=shoes": 1.0, "price": 2.5, "user.age": 41.0}
JUNK = {"id": "outer", "source": "web", "user": {"age": 3}, "ad": "hats", "before": {"y": 0}}


def rows(decoder: Decoder, values: Sequence[bytes], headers: Any = None) -> list[Any]:
    events = Events()
    decoder.decode(values, events, None, headers)
    assert not events.invalid, events.invalid
    reader = decoder.reader
    return [
        (named(reader, events.row_of(i)), events.label_of(i), events.id_texts(np.array([i]))[0])
        for i in range(len(events))
    ]


def json_decoders(fields: Fields) -> list[Decoder]:
    made = [sl.Names(), sl.Names(fields={"price": "number"})]
    found: list[Decoder] = [JSONDecoder(reader, fields) for reader in made]
    return [*found, CustomDecoder(json.loads, sl.Names(), fields)]


@pytest.mark.parametrize("root", ["data", "payload.after"])
def test_the_event_below_a_root(root: str) -> None:
    fields = Fields(label="y", id="id", root=root)
    record: dict[str, Any] = EVENT
    for name in reversed(root.split(".")):
        record = {**JUNK, name: record, "z": [1, 2], "more": {root: 5}}
    for decoder in json_decoders(fields):
        value = json.dumps(record).encode()
        assert rows(decoder, [value] * 3) == [(FEATURES, 1, "inner")] * 3


@pytest.mark.parametrize("wrong", ["{}", '{"data": null}', '{"data": 5}', '{"data": [{}]}', "5"])
def test_a_record_without_an_event_is_invalid(wrong: str) -> None:
    for decoder in json_decoders(Fields(root="data")):
        events = Events()
        decoder.decode([wrong.encode(), b'{"data": {"a": 1}}'], events)
        assert [bad.number for bad in events.invalid] == [0]
        assert len(events) == 1


def attributes(**more: str) -> list[Header]:
    given = {"specversion": "1.0", "id": "ce-1", "source": "web", "type": "click", **more}
    prefixed = ((f"ce_{name}", value.encode()) for name, value in given.items())
    return [("content-type", b"application/json"), *prefixed]


def test_cloud_events_in_both_modes() -> None:
    when = "2026-01-31T00:00:00Z"
    data = {**EVENT, "time": "not a time"}
    whole = {"specversion": "1.0", "id": "ce-1", "type": "click", "time": when, "data": data}
    values = [json.dumps(whole).encode(), json.dumps(data).encode()] * 2
    plain: list[Header] = [("content-type", b"application/cloudevents+json")]
    headers = [plain, attributes(time=when)] * 2
    for decoder in json_decoders(Fields(label="y", cloudevents=True)):
        assert decoder.reads_headers
        events = Events()
        decoder.decode(values, events, None, headers)
        assert not events.invalid, events.invalid
        assert events.id_texts(np.arange(4)) == ["ce-1"] * 4
        assert events.times.tolist() == [1769817600.0] * 4
        expected = {**FEATURES, "id=inner": 1.0, "time=not a time": 1.0}
        assert [named(decoder.reader, events.row_of(i)) for i in range(4)] == [expected] * 4
    # roles of the event's own fields take precedence
    for decoder in json_decoders(Fields(label="y", id="id", cloudevents=True)):
        assert [one[2] for one in rows(decoder, values, headers)] == ["inner"] * 4


def test_an_attribute_that_is_invalid() -> None:
    for decoder in json_decoders(Fields(label="y", cloudevents=True)):
        events = Events()
        decoder.decode([b"{}"], events, None, [attributes(time="noon")])
        assert [bad.number for bad in events.invalid] == [0]


def test_avro_and_protobuf_below_a_root_and_in_binary_mode() -> None:
    fields = [{"name": "ad", "type": "string"}, {"name": "y", "type": "int"}]
    click = {"type": "record", "name": "Click", "fields": fields}
    outer = [{"name": "ad", "type": "string"}, {"name": "data", "type": ["null", click]}]
    envelope = {"type": "record", "name": "Envelope", "fields": outer}
    event = {"ad": "shoes", "y": 1}

    def avro(schema: Any, value: Any) -> bytes:
        to = io.BytesIO()
        fastavro.schemaless_writer(to, fastavro.parse_schema(schema), value)
        return to.getvalue()

    file = descriptor_pb2.FileDescriptorProto(name="e.proto", syntax="proto2")
    inner = file.message_type.add(name="Click")
    inner.field.add(name="ad", number=1, type=9, label=1)
    inner.field.add(name="y", number=2, type=5, label=1)
    around = file.message_type.add(name="Envelope")
    around.field.add(name="ad", number=1, type=9, label=1)
    around.field.add(name="data", number=2, type=11, label=1, type_name=".Click")

    def protobuf(name: str, value: Any) -> bytes:
        kind = message_factory.GetMessageClass(message_named([file], name))
        return bytes(json_format.ParseDict(value, kind()).SerializeToString())

    whole = {"ad": "hats", "data": event}
    cases = [
        ("avro", AvroSchema(envelope), avro(envelope, whole), avro(envelope, {"ad": "x"})),
        (
            "protobuf",
            ProtobufMessage(message_named([file], "Envelope")),
            protobuf("Envelope", whole),
            protobuf("Envelope", {"ad": "x"}),
        ),
    ]
    for kind, schemas, value, empty in cases:
        decoder = decoder_of(kind, sl.Names(), Fields(label="y", root="data"), schemas=schemas)
        assert rows(decoder, [value]) == [({"ad=shoes": 1.0}, 1, None)]
        events = Events()
        decoder.decode([empty], events)
        assert [bad.number for bad in events.invalid] == [0]
    bare = [
        ("avro", AvroSchema(click), avro(click, event)),
        ("protobuf", ProtobufMessage(message_named([file], "Click")), protobuf("Click", event)),
    ]
    for kind, schemas, value in bare:
        binary = Fields(label="y", cloudevents=True)
        decoder = decoder_of(kind, sl.Names(), binary, schemas=schemas)
        assert rows(decoder, [value], [attributes()]) == [({"ad=shoes": 1.0}, 1, "ce-1")]


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text("ab", max_size=2)),
    lambda inner: st.one_of(
        st.lists(st.text("ab", max_size=2), max_size=2),
        st.dictionaries(st.sampled_from(["data", "a", "y", "id"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(derandomize=True, max_examples=300, deadline=None, database=None)
@given(
    st.lists(VALUES.filter(lambda one: one is not None), max_size=5),
    st.sampled_from(["data", "data.a"]),
)
def test_the_fast_path_is_the_slow_one(records: list[Any], root: str) -> None:
    fields = Fields(label="y", id="id", root=root)
    values = [json.dumps(one).encode() for one in records]
    found = []
    for decoder in (JSONDecoder(sl.Names(), fields), CustomDecoder(json.loads, sl.Names(), fields)):
        events = Events()
        decoder.decode(values, events)
        found.append(
            (
                [bad.number for bad in events.invalid],
                [named(decoder.reader, events.row_of(i)) for i in range(len(events))],
                [events.label_of(i) for i in range(len(events))],
            )
        )
    assert str(found[0]) == str(found[1])


def test_what_envelopes_need() -> None:
    text = '[source]\nkind = "file"\npaths = ["a"]\n[format]\nlabel = "y"\n'
    for change, path in (
        ({"format.root": "a", "format.kind": "csv"}, "format.root"),
        ({"format.cloudevents": True, "format.kind": "svmlight"}, "format.cloudevents"),
        ({"format.cloudevents": True, "format.root": "a"}, "format.root"),
        ({"format.root": "a..b"}, "format.root"),
    ):
        with pytest.raises(config.ConfigError) as error:
            config.parse(text, overrides=change)
        assert path in [problem.path for problem in error.value.problems]
