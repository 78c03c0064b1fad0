"""Damaged records of binary formats: each is an event or invalid, and harms no other.

`STREAMLEARN_FUZZ` sets the number of records of each test.
"""

from __future__ import annotations

import io
import json
import os
import random
from typing import TYPE_CHECKING, Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2

import streamlearn as sl
from streamlearn.errors import InvalidEventError, SchemaError
from streamlearn.stream import Events, Fields
from streamlearn.stream.formats import avro_plan, protobuf_plan
from streamlearn.stream.formats.avro import AvroDecoder, AvroPlan
from streamlearn.stream.formats.json_schema import JSONSchemaDecoder
from streamlearn.stream.formats.protobuf import ProtobufDecoder, ProtobufPlan
from streamlearn.stream.formats.schemas import AvroSchema, ProtobufMessage, Schemas
from streamlearn.stream.sources.delimited_file import DelimitedFile
from tests.support.conformance import MESSAGES, cases, class_of
from tests.support.formats import named
from tests.support.mutations import mutated

if TYPE_CHECKING:
    from streamlearn.stream import Decoder

COUNT = int(os.environ.get("STREAMLEARN_FUZZ", "3000"))
BATCH = 100
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "count", "type": "long"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "nulls", "type": {"type": "array", "items": "null"}},
        {"name": "counts", "type": {"type": "map", "values": "float"}},
        {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 3}},
        {"name": "data", "type": "bytes"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "amount",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {
            "name": "key",
            "type": {"type": "fixed", "name": "Key", "size": 16, "logicalType": "uuid"},
        },
        {"name": "next", "type": ["null", "Click"]},
        {"name": "clicked", "type": "boolean"},
    ],
}
FIELDS = {"count": "category", "nulls": "list", "price": "number", "at": "time"}


class ById(Schemas):
    """The same plan for the ids below 4."""

    framed = True

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def plan(self, header: bytes) -> Any:
        """Return the plan of an id."""
        if header[4] < 4:
            return self._schemas.plan(header)
        raise InvalidEventError("the schema cannot be used")

    def id_of(self, header: bytes) -> int:
        """Return an id."""
        return header[4]


class AnyJSON(Schemas):
    """No schema."""

    framed = False

    def plan(self, header: bytes) -> Any:
        """Return nothing."""
        return header


def clicks(draw: random.Random) -> list[dict[str, Any]]:
    """Some events of the schema."""
    found: list[dict[str, Any]] = []
    for i in range(8):
        one = {
            "id": f"é{i}" * i,
            "price": draw.choice([None, 1.5]),
            "count": draw.choice([-(1 << 63), 7]),
            "tags": ["a", "b" * 30] * i,
            "nulls": [None] * i,
            "counts": {"x": 1.0, "y.z": 2.0},
            "raw": b"abc",
            "data": bytes(i),
            "kind": "B",
            "at": 1_700_000_000_000,
            "amount": b"\xff\x01",
            "key": bytes(16),
            "next": draw.choice([None, *found]),
            "clicked": i % 2 == 1,
        }
        found.append(one)
    return found


def avro_records(draw: random.Random) -> list[bytes]:
    plain = json.loads(json.dumps(SCHEMA).replace('"logicalType"', '"note"'))
    parsed, records = fastavro.parse_schema(plain, {}), []
    for one in clicks(draw):
        to = io.BytesIO()
        fastavro.schemaless_writer(to, parsed, one)
        records.append(to.getvalue())
    return records


def framed(records: list[bytes], path: bytes = b"") -> list[bytes]:
    return [b"\0" + (i % 4).to_bytes(4) + path + one for i, one in enumerate(records)]


def targets(draw: random.Random) -> dict[str, tuple[Decoder, list[bytes]]]:
    """Decoders with valid records of theirs."""
    suite = cases()
    roles = Fields(label="clicked", id="id", time="at")
    avro, avro_own = avro_records(draw), AvroSchema(SCHEMA)
    found: dict[str, tuple[Decoder, list[bytes]]] = {
        "avro": (AvroDecoder(avro_own, reader(), roles, grow_always=True), avro),
        "framed avro": (AvroDecoder(ById(avro_own), reader(), roles), framed(avro)),
        "json-schema": (
            JSONSchemaDecoder(ById(AnyJSON()), reader(), roles),
            framed([b'{"id":"a","count":1,"clicked":true,"tags":["b"]}']),
        ),
    }
    for name in MESSAGES:
        message = ProtobufMessage(class_of(suite.descriptors, name).DESCRIPTOR)
        own = [payload for one, payload in suite.payloads if one == name]
        names = sl.Names(max_bytes=1 << 24)
        found[name] = ProtobufDecoder(message, names, Fields(label=None), grow_always=True), own
        found[f"framed {name}"] = (
            ProtobufDecoder(ById(message), sl.Hashing(12), Fields(label=None), grow_always=True),
            framed(own, b"\0"),
        )
    return found


def reader() -> sl.Names:
    return sl.Names(fields=FIELDS, max_bytes=1 << 24)


NAMES = [
    kind + name for name in ("avro", *MESSAGES) for kind in ("", "framed ")
] + ["json-schema"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_damaged_records_harm_no_other(name: str) -> None:
    draw = random.Random(name)
    decoder, records = targets(draw)[name]
    events = Events()
    decoder.decode(records, events)
    whole = rows(decoder, events)
    for _ in range(0, COUNT, BATCH):
        damaged = [mutated(draw, records) for _ in range(BATCH)]
        events.clear()
        decoder.decode(damaged, events)
        assert events.records == BATCH
        assert len(events) + len(events.invalid) == BATCH
    events.clear()
    decoder.decode(records, events)
    assert rows(decoder, events) == whole


def rows(decoder: Decoder, events: Events) -> list[Any]:
    found: list[Any] = [events.row_of(k) for k in range(len(events))]
    if isinstance(decoder.reader, sl.Names):
        found = [named(decoder.reader, row) for row in found]
    return [found, str(events.labels)]


def test_damaged_blocks_of_avro() -> None:
    draw = random.Random(1)
    splitter, records = AvroDecoder(AvroSchema(SCHEMA), sl.Names()), avro_records(draw)
    blocks = [b"".join(records[:k]) for k in range(1, len(records) + 1)]
    for _ in range(COUNT):
        count = draw.choice([*range(10), -1, 1 << 40, (1 << 63) - 1])
        block = mutated(draw, blocks)
        try:
            found = splitter.split(block, count)
        except InvalidEventError:
            continue
        assert b"".join(found) == block
        assert len(found) == count
    assert splitter.split(blocks[-1], len(records)) == records


def test_damaged_files_of_messages() -> None:
    draw = random.Random(2)
    files = [b"".join(bytes([k]) + bytes(k) for k in range(n)) for n in (1, 5, 120)]
    for _ in range(COUNT):
        content = mutated(draw, files)
        found: list[bytes] = []
        file = DelimitedFile(io.BytesIO(content))
        try:
            while taken := file.take(7):
                found += taken
        except ValueError:
            pass
        assert sum(len(one) + 1 for one in found) <= len(content)


def test_damaged_schemas() -> None:
    draw = random.Random(3)
    text = [json.dumps(SCHEMA).encode()]
    for _ in range(COUNT // 10):
        try:
            AvroPlan(avro_plan.plan(json.loads(mutated(draw, text))))
        except (SchemaError, json.JSONDecodeError, UnicodeDecodeError):
            continue


def test_damaged_descriptors() -> None:
    draw = random.Random(4)
    file = descriptor_pb2.FileDescriptorProto()
    kind = class_of(cases().descriptors, MESSAGES[0])
    kind.DESCRIPTOR.file.CopyToProto(file)
    del file.message_type[3:], file.extension[:]
    data = [file.SerializeToString()]
    for _ in range(COUNT // 10):
        try:
            message = protobuf_plan.message_at({"a.proto": mutated(draw, data)}, [0])
        except SchemaError:
            continue
        ProtobufPlan(protobuf_plan.plan(message))
