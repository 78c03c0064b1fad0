"""Decode the same records of JSON, Avro and Protobuf to rows, from memory, as they come from Kafka.

python -m benchmarks.records [--events N] [--rounds N]

The records are those of `benchmarks.formats`: a label and eleven features, five of them text. The
Python baselines read a record into a dict: fastavro, and a class of protobuf. One row has 1,000
schema ids in random order, each with a plan of its own. "Predictions" are written, without a sink.
"""

from __future__ import annotations

import argparse
import io
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import msgspec
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.proto import serialize_length_prefixed

import streamlearn as sl
from benchmarks.formats import Record, make_records
from benchmarks.report import alternate, table, unprepared
from streamlearn.daemon.outputs.predictions import PublishedPrediction, encode
from streamlearn.daemon.outputs.written import writer_of
from streamlearn.stream import Events, Fields, Files, decoder_of
from streamlearn.stream.formats.protobuf_plan import message_named
from streamlearn.stream.formats.schemas import (
    AvroSchema,
    ContainedAvro,
    ProtobufMessage,
    Schemas,
)
from streamlearn.stream.sources.record_files import RecordFiles, opener_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.stream.formats.writers import Writer

BATCH = 2000
IDS = 1000
Proto = descriptor_pb2.FieldDescriptorProto
AVRO_TYPES = {str: "string", float: "double", int: "int"}
PROTOBUF_TYPES = {str: Proto.TYPE_STRING, float: Proto.TYPE_DOUBLE, int: Proto.TYPE_INT32}


class ManyIds(Schemas):
    """The plans of many ids, for records that begin with one; they are compiled before."""

    framed = True

    def __init__(self, schema: Any, count: int) -> None:
        self._plans = {header(i): AvroSchema(schema).plan(b"") for i in range(count)}

    def plan(self, header: bytes) -> Any:
        """Return the plan of an id."""
        return self._plans[header]


def header(number: int) -> bytes:
    """Return an id as records begin with it."""
    return b"\0" + number.to_bytes(4)


def avro_schema(record: Record) -> Any:
    """Return the schema of the records."""
    members = [{"name": name, "type": AVRO_TYPES[type(x)]} for name, x in record.items()]
    return fastavro.parse_schema({"type": "record", "name": "Event", "fields": members})


def message_class(record: Record) -> Any:
    """Return the class of the records, as protoc would generate it."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", syntax="proto3")
    message = file.message_type.add(name="Event")
    for number, (name, x) in enumerate(record.items(), 1):
        message.field.add(
            name=name, number=number, type=PROTOBUF_TYPES[type(x)], label=Proto.LABEL_OPTIONAL
        )
    return message_factory.GetMessageClass(message_named([file], "Event"))


def avro_bytes(schema: Any, record: Record) -> bytes:
    """Return a record in Avro."""
    to = io.BytesIO()
    fastavro.schemaless_writer(to, schema, record)
    return to.getvalue()


def decode(kind: str, values: list[bytes], schemas: Schemas | None = None) -> int:
    """Decode records in batches; return the number of events."""
    decoder = decoder_of(kind, sl.Hashing(20), Fields(label="label"), schemas=schemas)
    events, count = Events(), 0
    for start in range(0, len(values), BATCH):
        events.clear()
        decoder.decode(values[start : start + BATCH], events)
        count += len(events)
    return count


def read_file(kind: str, path: Path, schemas: Schemas | None = None) -> int:
    """Read and decode a file; return the number of events."""
    decoder = decoder_of(kind, sl.Hashing(20), Fields(label="label"), schemas=schemas)
    open_file = opener_of(kind)
    source = Files([path]) if open_file is None else RecordFiles([path], open_file)
    events, count = Events(), 0
    source.open({}, None)
    while not source.ended():
        for records in source.poll(0.0):
            events.clear()
            decoder.decode(records.values, events, headers=records.headers)
            count += len(events)
    source.close()
    return count


def files(directory: Path, records: list[Record], schema: Any, kind: Any) -> dict[str, Path]:
    """Write the records to files of each format."""
    paths = {name: directory / name for name in ("json", "avro", "protobuf")}
    paths["json"].write_bytes(b"\n".join(map(msgspec.json.encode, records)) + b"\n")
    with paths["avro"].open("wb") as avro:
        fastavro.writer(avro, schema, records)
    with paths["protobuf"].open("wb") as protobuf:
        for record in records:
            serialize_length_prefixed(kind(**record), protobuf)  # type: ignore[arg-type]
    return paths


def write_predictions(writer: Writer | None, count: int) -> int:
    """Write predictions; return their number."""
    written = 0
    for start in range(0, count, BATCH):
        some = [
            PublishedPrediction(f"event-{i}", i % 3 == 0, "default", i, i / count)
            for i in range(start, min(start + BATCH, count))
        ]
        written += len(encode(some, writer))
    return written


def fastavro_dicts(schema: Any, values: list[bytes]) -> int:
    """Read records into dicts by fastavro."""
    count = 0
    for value in values:
        count += isinstance(fastavro.schemaless_reader(io.BytesIO(value), schema, None), dict)
    return count


def message_dicts(kind: Any, values: list[bytes]) -> int:
    """Read records into dicts by the class of their message."""
    names = [field.name for field in kind.DESCRIPTOR.fields]
    count = 0
    for value in values:
        message = kind.FromString(value)
        count += isinstance({name: getattr(message, name) for name in names}, dict)
    return count


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    records = list(make_records(args.events))
    schema, kind = avro_schema(records[0]), message_class(records[0])
    avro = [avro_bytes(schema, record) for record in records]
    protobuf = [kind(**record).SerializeToString() for record in records]
    draw = random.Random(0)
    one_id = [header(0) + value for value in avro]
    many_ids = [header(draw.randrange(IDS)) + value for value in avro]
    runs: dict[str, Callable[[], int]] = {
        "JSON": partial(decode, "json", [msgspec.json.encode(record) for record in records]),
        "Avro": partial(decode, "avro", avro, AvroSchema(schema)),
        "fastavro and a dict": partial(fastavro_dicts, schema, avro),
        "Protobuf": partial(decode, "protobuf", protobuf, ProtobufMessage(kind.DESCRIPTOR)),
        "a generated class and a dict": partial(message_dicts, kind, protobuf),
        "Avro, one id": partial(decode, "avro", one_id, ManyIds(schema, 1)),
        f"Avro, {IDS:,} ids": partial(decode, "avro", many_ids, ManyIds(schema, IDS)),
    }
    writers = {
        "JSON": None,
        "Avro": writer_of("avro", "Prediction"),
        "Protobuf": writer_of("protobuf", "Prediction"),
    }
    for name, writer in writers.items():
        runs[f"predictions, {name}"] = partial(write_predictions, writer, args.events)
    with tempfile.TemporaryDirectory() as directory:
        paths = files(Path(directory), records, schema, kind)
        runs["file, JSON"] = partial(read_file, "json", paths["json"])
        runs["file, Avro"] = partial(read_file, "avro", paths["avro"], ContainedAvro())
        runs["file, Protobuf"] = partial(
            read_file, "protobuf", paths["protobuf"], ProtobufMessage(kind.DESCRIPTOR)
        )
        for name, run in runs.items():
            if (count := run()) != args.events:
                raise AssertionError(f"{name}: {count} of {args.events} records")
        prepared = {name: partial(unprepared, run) for name, run in runs.items()}
        timings = alternate(prepared, args.rounds)
    print(f"{args.events:,} records of 12 fields, 5 of text; median of {args.rounds} rounds\n")
    ratio = "{:.2f} ({:.2f} to {:.2f})"
    lines = [
        [name, timing.per_event(args.events), ratio.format(*timings["JSON"].ratio(timing))]
        for name, timing in timings.items()
    ]
    print(table(["records", "us/record", "time, JSON = 1"], lines))


if __name__ == "__main__":
    main()
