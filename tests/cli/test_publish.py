"""Lines of files become records of a topic; tests/broker has the real one."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.daemon.process.exits import Exit
from streamlearn.errors import SinkError
from streamlearn.kafka import Connection
from streamlearn.stream import Clicks
from streamlearn.stream.formats.decoder_factory import decoder_of
from streamlearn.stream.formats.schemas import RegisteredAvro, RegisteredProtobuf, Schemas
from streamlearn.stream.schema_registry import SchemaRegistry
from streamlearn.stream.sinks.sink import Sink
from tests.support.formats import same
from tests.support.schema_registry import FakeRegistry

if TYPE_CHECKING:
    from pathlib import Path


class Topic(Sink):
    """A topic in memory."""

    def __init__(self) -> None:
        self.waiting: list[bytes | None] = []
        self.there: list[bytes | None] = []
        self.interrupt = -1

    def send(self, value: bytes | None, **_: Any) -> None:
        if len(self.waiting) == self.interrupt:
            raise KeyboardInterrupt
        self.waiting.append(value)

    def flush(self, seconds: float) -> None:
        assert seconds > 0
        self.there += self.waiting
        self.waiting = []

    def close(self) -> None:
        pass


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    asked: list[tuple[str, str]] = []

    def sink(self: Connection, name: str) -> Topic:
        asked.append((self.bootstrap, name))
        return made

    monkeypatch.setattr(Connection, "sink", sink)
    monkeypatch.setattr(made, "asked", asked, raising=False)
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    return made


def test_lines_become_records(
    topic: Topic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, before in (("a", b"\xef\xbb\xbf"), ("b", b"\n")):
        text = b"%sx,y\n1,%s\n\n2,%s" % (before, name.encode(), b"\xff")
        (tmp_path / f"{name}.csv").write_bytes(text)
    command = ["publish", str(tmp_path / "*.csv"), "--topic", "prices"]
    assert main([*command, "--header"]) == 0
    assert topic.there == [b"1,a", b"2,\xff", b"1,b", b"2,\xff"]
    assert capsys.readouterr().out == "4 records written to prices\n"
    assert main([*command, "--bootstrap", "far:9"]) == 0
    assert topic.there[4:6] == [b"x,y", b"1,a"]
    assert topic.__dict__["asked"] == [("localhost:9092", "prices"), ("far:9", "prices")]


def test_rows_with_line_breaks(
    topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'x;"y\nz"\n1;"a\n\nb"\n2;c\n')
    rows = [b'1;"a\n\nb"', b"2;c"]
    assert main(["publish", str(path), "--topic", "t", "--header", "--delimiter", ";"]) == 0
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["publish", "-", "--topic", "t", "--header", "--delimiter", ";"]) == 0
    assert topic.there == 2 * rows
    assert main(["publish", str(path), "--topic", "t", "--delimiter", ""]) == 2


def test_standard_input(topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").write_bytes(b"one\ntwo\n")
    with (tmp_path / "in").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["publish", "-", "--topic", "t"]) == 0
    assert topic.there == [b"one", b"two"]


def test_a_made_up_stream(topic: Topic, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["publish", "--synthetic", "spam", "--seed", "3", "--topic", "mails"]
    assert main([*command, "--events", "2500"]) == 0
    assert topic.there == Clicks("spam", 3).values(0, 2500)
    assert "2,500 records" in capsys.readouterr().out
    topic.there.clear()
    topic.interrupt = 20
    assert main([*command, "--rate", "5000"]) == 130  # without end, until somebody ends it
    assert topic.there == Clicks("spam", 3).values(0, 20)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--synthetic clicks"),
        (["a.csv", "--rate", "5"], "--rate"),
        (["a.csv", "--synthetic", "clicks"], "files"),
        (["--synthetic", "clicks", "--header"], "--header"),
        (["--synthetic", "clicks", "--rate", "0"], ">= 1"),
        (["--synthetic", "click"], "did you mean clicks"),
        (["--synthetic", "clicks", "--seed", "-1"], "seed"),
    ],
)
def test_files_or_a_made_up_stream(
    topic: Topic, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["publish", "--topic", "t", *options])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == Exit.USAGE
    assert said in capsys.readouterr().err
    assert not topic.there


def test_an_interruption_says_how_far_it_came(
    topic: Topic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    topic.interrupt = 2
    assert main(["publish", str(tmp_path / "a.txt"), "--topic", "t"]) == 130
    assert topic.there == [b"one", b"two"]
    assert "the first 2 records" in capsys.readouterr().err


def test_what_is_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\n")
    (tmp_path / "c.toml").write_text('source = { kind = "synthetic" }\n')
    options = ["publish", str(file), "--topic", "t"]
    assert main([*options, "--config", str(tmp_path / "c.toml")]) == Exit.USAGE
    assert 'source.kind: expected "kafka"' in capsys.readouterr().err
    assert main([*options, "--config", "c.toml", "--bootstrap", "a:1"]) == Exit.USAGE
    assert "not both" in capsys.readouterr().err

    def none(self: Connection, name: str) -> Topic:
        raise SinkError(f"no topic {name} at {self.bootstrap}")

    monkeypatch.setattr(Connection, "sink", none)
    assert main(options) == Exit.SOURCE
    assert capsys.readouterr().err.startswith("streamlearn publish: no topic t at ")


def test_records_are_written_with_a_schema_that_is_inferred(topic: Topic, tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"ad": "x", "n": 1}, {"n": 2.5}, {"ad": None, "hit": True}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    command = ["publish", str(tmp_path / "a.jsonl"), "--topic", "clicks"]
    expected = [
        {name: value for name, value in event.items() if value is not None} for event in events
    ]
    with FakeRegistry() as server:
        for kind in ("avro", "protobuf"):
            topic.there.clear()
            assert main([*command, "--as", kind, "--registry", server.url]) == 0
            schemas: Schemas = RegisteredAvro(SchemaRegistry(server.url))
            if kind == "protobuf":
                schemas = RegisteredProtobuf(SchemaRegistry(server.url))
            decoder = decoder_of(kind, sl.Names(), grow_always=True, schemas=schemas)
            values = [value for value in topic.there if value is not None]
            same(decoder, values, expected)
            assert decoder.schema_fields("clicks").keys() == {"ad", "n", "hit"}
        assert list(server.subjects) == ["clicks-value"]


def test_what_cannot_be_written_with_a_schema(
    topic: Topic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    command = ["publish", str(path), "--topic", "clicks"]
    cases = [
        (["--schema", "a.avsc"], "{}", "--as"),
        (["--as", "avro"], '{"a": [1]}', "'a'"),
        (["--as", "avro"], '{"a": 1}\n{"a": "x"}', "'a'"),
        (["--as", "avro"], "1,2", "JSON"),
        (["--as", "avro", "--schema", str(tmp_path / "none")], "{}", "none"),
    ]
    for options, text, word in cases:
        path.write_text(text, encoding="utf-8")
        assert main([*command, *options]) == Exit.USAGE
        assert word in capsys.readouterr().err
    schema = tmp_path / "a.avsc"
    fields = [{"name": "a", "type": "int"}]
    schema.write_text(json.dumps({"type": "record", "name": "A", "fields": fields}), "utf-8")
    path.write_text('{"a": 1}\n{"a": "x"}', encoding="utf-8")
    assert main([*command, "--as", "avro", "--schema", str(schema)]) == Exit.USAGE
    assert "record 2" in capsys.readouterr().err
    assert not topic.there
