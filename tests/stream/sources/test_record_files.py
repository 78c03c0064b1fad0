"""Avro container files and delimited Protobuf, as fastavro and protobuf write them."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any, cast

import fastavro
import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.proto import serialize_length_prefixed

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.errors import SchemaError, SourceChangedError, SourceError
from streamlearn.stream import Clicks, Events, Fields, Partition, check_source
from streamlearn.stream.formats.decoder_factory import decoder_of
from streamlearn.stream.formats.protobuf_plan import message_named
from streamlearn.stream.formats.schemas import ContainedAvro
from streamlearn.stream.sources.record_files import RecordFiles, opener_of
from tests.support.formats import named
from tests.support.zstandard import compress

if TYPE_CHECKING:
    from pathlib import Path

Proto = descriptor_pb2.FieldDescriptorProto
CLICKS = [json.loads(value) for value in Clicks(seed=4).values(0, 300)]
AVRO = {str: "string", int: "long", float: "double", bool: "boolean"}
PROTOBUF = {
    str: Proto.TYPE_STRING,
    int: Proto.TYPE_INT64,
    float: Proto.TYPE_DOUBLE,
    bool: Proto.TYPE_BOOL,
}
SCHEMA = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": name, "type": AVRO[type(value)]} for name, value in CLICKS[0].items()],
}


def avro_file(path: Path, events: Any, schema: Any = SCHEMA, codec: str = "null") -> Path:
    with path.open("wb") as file:
        fastavro.writer(file, schema, events, codec=codec, sync_interval=2000)
    return path


def descriptors() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="click.proto", package="shop", syntax="proto2")
    message = file.message_type.add(name="Click")
    for number, (name, value) in enumerate(CLICKS[0].items(), 1):
        message.field.add(name=name, number=number, type=PROTOBUF[type(value)], label=1)
    return descriptor_pb2.FileDescriptorSet(file=[file])


def protobuf_file(path: Path, events: Any) -> Path:
    kind = message_factory.GetMessageClass(message_named(descriptors().file, "shop.Click"))
    with path.open("wb") as file:
        for event in events:
            message: Any = json_format.ParseDict(event, kind())
            serialize_length_prefixed(message, cast("io.BytesIO", file))
    return path


def read_all(*paths: Path, kind: str = "avro", batch: int = 64) -> list[Any]:
    open_file = opener_of(kind)
    assert open_file is not None
    source = RecordFiles(paths, open_file, batch=batch)
    found = []
    try:
        source.open({}, None)
        while not source.ended():
            found += source.poll(0.0)
    finally:
        source.close()
    return found


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_container_files_have_all_their_records(codec: str, tmp_path: Path) -> None:
    path = avro_file(tmp_path / "a.avro", CLICKS, codec=codec)
    batches = read_all(path)
    values = [value for one in batches for value in one.values]
    parsed = fastavro.parse_schema(SCHEMA)
    assert [fastavro.schemaless_reader(io.BytesIO(one), parsed, None) for one in values] == CLICKS
    assert max(len(one.values) for one in batches) <= 64


def test_files_of_several_schemas_become_what_json_becomes(tmp_path: Path) -> None:
    more = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "os", "type": "string"}]}
    events = [*CLICKS[:100], *({**event, "os": "linux"} for event in CLICKS[100:200])]
    paths = [
        avro_file(tmp_path / "a.avro", events[:100], codec="deflate"),
        avro_file(tmp_path / "b.avro", events[100:], more),
    ]
    rows = []
    for kind in ("avro", "json"):
        schemas = ContainedAvro() if kind == "avro" else None
        decoder = decoder_of(kind, sl.Names(), Fields(label="clicked"), schemas=schemas)
        found = []
        if kind == "avro":
            for one in read_all(*paths):
                rest = Events()
                decoder.decode(one.values, rest, headers=one.headers)
                assert not rest.invalid
                found += [named(decoder.reader, rest.row_of(k)) for k in range(len(rest))]
        else:
            rest = Events()
            decoder.decode([json.dumps(event).encode() for event in events], rest)
            found = [named(decoder.reader, rest.row_of(k)) for k in range(len(rest))]
        rows.append(found)
    assert rows[0] == rows[1]
    assert len(rows[0]) == 200


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_record_files_conform(kind: str, suffix: str, tmp_path: Path) -> None:
    for name, events in (("a", CLICKS[:40]), ("b", CLICKS[40:51]), ("c", [])):
        path = tmp_path / f"{name}.{kind}"
        avro_file(path, events) if kind == "avro" else protobuf_file(path, events)
        if suffix:
            data = path.read_bytes()
            path.with_name(path.name + suffix).write_bytes(
                gzip.compress(data) if suffix == ".gz" else compress(data)
            )
    open_file = opener_of(kind)
    assert open_file is not None
    check_source(lambda: RecordFiles([f"{tmp_path}/*.{kind}{suffix}"], open_file, batch=7))


def test_messages_longer_than_a_block(tmp_path: Path) -> None:
    events = [{"user": size * "x", "ad": str(size)} for size in (0, 3, 600_000, 2_000_000, 5)]
    path = protobuf_file(tmp_path / "a", events)
    values = [value for one in read_all(path, kind="protobuf") for value in one.values]
    assert [len(one) > 600_000 for one in values] == [False, False, True, True, False]


def test_null_records_take_no_bytes(tmp_path: Path) -> None:
    nothing = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "null"}]}
    path = avro_file(tmp_path / "n.avro", [{"n": None}] * 3000, nothing)
    assert sum(len(one.values) for one in read_all(path)) == 3000


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_damage_is_an_error_that_names_the_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    avro_file(path, CLICKS) if kind == "avro" else protobuf_file(path, CLICKS)
    data = path.read_bytes()
    for damaged in (data[:-30], b"\xff" * 9, data[:9]):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match="damaged") as error:
            read_all(path, kind=kind)
        assert str(path) in str(error.value)


def test_a_file_that_was_replaced_is_refused(tmp_path: Path) -> None:
    path = avro_file(tmp_path / "a.avro", CLICKS)
    open_file = opener_of("avro")
    assert open_file is not None
    source = RecordFiles([path], open_file)
    source.open({}, None)
    identity = dict(source.identity())
    avro_file(path, CLICKS[5:])
    with pytest.raises(SourceChangedError):
        source.open({Partition(str(path)): 10}, identity)


def test_train_reads_what_a_job_has_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, CLICKS)), encoding="utf-8")
    avro_file(tmp_path / "a.avro", CLICKS, codec="snappy")
    protobuf_file(tmp_path / "a.bin", CLICKS)
    (tmp_path / "a.pb").write_bytes(descriptors().SerializeToString())
    schema = [
        "--format",
        "protobuf",
        "--descriptors",
        f"{tmp_path}/a.pb",
        "--message",
        "shop.Click",
    ]
    found = []
    for name, options in (("a.jsonl", []), ("a.avro", []), ("a.bin", schema)):
        arguments = [str(tmp_path / name), *options, "--label", "clicked", "--json", "--no-guess"]
        assert main(["train", *arguments]) == 0, capsys.readouterr().err
        facts = json.loads(capsys.readouterr().out)
        found.append({name: facts[name] for name in ("events", "learned", "loss") if name in facts})
    assert found[0] == found[1] == found[2]
    assert found[0]["events"] == 300
    # a record that is invalid is named
    wrong = [*CLICKS[:3], {**CLICKS[3], "price": float("nan")}]
    avro_file(tmp_path / "a.avro", wrong)
    assert main(["train", str(tmp_path / "a.avro"), "--label", "clicked"]) == 2
    assert "a.avro: record 3" in capsys.readouterr().err


def test_a_schema_of_the_reader_is_checked_before_the_first_file() -> None:
    ContainedAvro({"type": "record", "name": "A", "fields": []})
    with pytest.raises(SchemaError):
        ContainedAvro({"type": "record", "name": "A", "fields": [{"name": "x", "type": "nothing"}]})
