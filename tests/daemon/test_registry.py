"""The daemon on records whose schemas are in a registry."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon import build, preflight
from streamlearn.daemon.collectors.audit import VARIABLE as AUDIT
from streamlearn.daemon.collectors.counts import CountsCollector
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.estimators import checkpoints, model_file
from streamlearn.stream import Partition, Records
from streamlearn.stream.polled import Polled
from streamlearn.telemetry.board import Board
from tests.support.schema_registry import FakeRegistry
from tests.support.serialized import serializer
from tests.support.streams import ShuffledSource, replay_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from streamlearn.daemon.batch import Batch

CONFIG = """
[source]
kind = "kafka"
bootstrap = "localhost:1"
topics = ["clicks"]
[format]
kind = "{kind}"
label = "click"
weight = "w"
id = "id"
[registry]
url = "{url}"
wait_seconds = 0
[[learner]]
name = "default"
[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"
penalty = "L1(1e-3)"
[checkpoint]
path = "{path}"
every_events = 100
[dead_letters]
path = "{path}/dead.jsonl"
[regret]
enabled = false
[telemetry]
enabled = false
[run]
until = "end"
"""


class Serialized(ShuffledSource):
    """The records of a topic, of which the later ones have another schema."""

    def __init__(self, writers: list[Callable[[bytes], bytes]], garbage: dict[int, bytes]) -> None:
        super().__init__(1, 600, batch=50)
        self.writers = writers
        self.replaced = garbage  # values by offset

    def next(self, where: Partition) -> Records:
        records = super().next(where)
        values: list[bytes | None] = [
            self.replaced.get(i) or self.writers[i * len(self.writers) // self.length](value or b"")
            for i, value in zip(records.offsets, records.values, strict=True)
        ]
        return Records(where, records.offsets, values, records.end)


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with FakeRegistry() as registry:
        yield registry


def run(
    directory: Path,
    server: FakeRegistry,
    kind: str,
    garbage: dict[int, bytes] | None = None,
    observers: Sequence[Observer] = (),
    level: str = "error",
) -> tuple[Exit, dict[str, Any]]:
    """Run the daemon to the end of the stream; return the code and the checkpoint."""
    fault, server.fault = server.fault, None
    source = Serialized(
        [serializer(kind, server.url, added) for added in ("", "price")], garbage or {}
    )
    for write in source.writers:
        write(b"{}")  # registers the schema
    server.fault = fault
    settings = config.parse(CONFIG.format(kind=kind, url=server.url, path=directory))
    assert not [*preflight.formats(settings)]
    loop = build.loop(settings, Log("json", level), observers=observers)
    loop.source = source
    code = loop.run()
    found = checkpoints.newest(directory)
    return code, {} if found is None else found[1]


def assert_learned_once(directory: Path, data: dict[str, Any]) -> None:
    """Assert that the models are what the library makes of the records."""
    reader = sl.Names(max_bytes=config.FeaturesConfig().max_bytes)
    for name, model in replay_models(data["observers"]["audit"], reader=reader).items():
        state = checkpoints.model(directory, name)["state"]
        assert model_file.pack(state) == model_file.pack(model.state()), name


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_an_outage_loses_nothing(
    kind: str, server: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AUDIT, "1")
    server.fault = (503, b"")
    code, _ = run(tmp_path, server, kind)
    assert code == Exit.REGISTRY
    server.fault = None
    answer = server.answer

    def fails_for_the_second(path: str, body: Any) -> tuple[int, Any]:
        return (500, {}) if path == "/schemas/ids/2" else answer(path, body)

    monkeypatch.setattr(server, "answer", fails_for_the_second)
    code, before = run(tmp_path, server, kind)
    assert code == Exit.REGISTRY
    assert before.get("counts", {"records": 0})["records"] <= 300
    monkeypatch.setattr(server, "answer", answer)
    code, data = run(tmp_path, server, kind)
    assert code == Exit.OK
    assert data["counts"]["records"] == 600
    assert data["counts"]["invalid"] == 0
    assert_learned_once(tmp_path, data)


def test_records_are_counted_by_schema_and_each_schema_is_logged_once(
    server: FakeRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collector = CountsCollector(Board(), time.monotonic)

    class Counting(Observer):
        def on_batch(self, batch: Batch) -> None:
            collector.add(batch)

    code, _ = run(tmp_path, server, "avro", observers=[Counting()], level="info")
    assert code == Exit.OK
    counts = collector.board.values("schema_records_total")
    assert counts == {("1",): 300, ("2",): 300}
    logged = map(json.loads, capsys.readouterr().err.splitlines())
    assert [one["schema"] for one in logged if one["event"] == "schema in use"] == [1, 2]


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_an_unknown_schema_makes_its_records_invalid(
    kind: str, server: FakeRegistry, tmp_path: Path
) -> None:
    unknown = b"\0\0\0\0\x63\0"
    code, data = run(tmp_path, server, kind, {5: unknown, 77: b"{}", 400: unknown})
    assert code == Exit.OK
    assert data["counts"]["invalid"] == 3
    letters = (tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()
    assert [one.count('"schema"') for one in letters] == [1, 0, 1], letters


def test_labels_in_another_format_than_events(server: FakeRegistry, tmp_path: Path) -> None:
    text = CONFIG.format(kind="json", url=server.url, path=tmp_path)
    text += """
    [labels]
    topic = "labels"
    [labels.format]
    kind = "protobuf"
    """
    settings = config.parse(text)
    assert not [*preflight.formats(settings)]
    reader = sl.Names()
    found = build.event_reader(settings, reader, [])
    write = serializer("protobuf", server.url)
    events = [b'{"id": "a", "user": "ann"}', b'{"id": "b", "user": "bob"}']
    labels = [write(json.dumps({"id": one, "click": one == "b"}).encode()) for one in "ba"]
    polled = Polled(
        [
            Records(Partition("clicks"), [0, 1], events, 2),
            Records(Partition("labels"), [0, 1], labels, 2),
        ]
    )
    assert found.read(polled) == []
    assert found.take_schema_counts() == {1: 2}
    learned = found.weights > 0
    assert int(learned.sum()) == 2
    assert {
        (reader.name_of(found.rows.row_of(i)[0][0]), found.rows.label_of(i))
        for i in range(len(found.rows))
        if learned[i]
    } == {("user=ann", False), ("user=bob", True)}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"labels": {"format": {"kind": "avro"}}}, "labels.format"),
        ({"labels": {"topic": "l", "format": {"kind": "csv"}}}, "labels.format.kind"),
        ({"labels": {"topic": "l", "format": {"kind": "jsn"}}}, "labels.format.kind"),
        ({"labels": {"topic": "l", "format": {"schema": "a.avsc"}}}, "labels.format.schema"),
        ({"predictions": {"format": "avro"}}, "predictions.format"),
        ({"source": {"kind": "stdin"}}, "format.kind"),
        ({"source": {"kind": "file", "paths": ["a"], "follow": True}}, "source.follow"),
    ],
)
def test_what_formats_need(change: dict[str, Any], path: str, tmp_path: Path) -> None:
    text = CONFIG.format(kind="avro", url="http://a", path=tmp_path)
    with pytest.raises(config.ConfigError) as error:
        config.parse(text, overrides=change)
    assert path in [problem.path for problem in error.value.problems]
