"""History before a stream: which events are whose, and where the stream is read from."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.daemon.backfill_reader import BackfillReader
from streamlearn.daemon.builders import sources
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.estimators import checkpoints
from streamlearn.stream import CSVDecoder, Fields, JSONDecoder, Partition, Records
from streamlearn.stream.polled import Polled
from streamlearn.stream.sources.backfill import Backfill
from tests.support.memory_kafka import MemoryCluster
from tests.support.streams import ShuffledSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CUT = 100.0
ROLES = Fields(label="y", time="t", labels=("a", "b"))
CONFIG = """
[source]
kind = "kafka"
bootstrap = "nowhere:1"
topics = ["clicks"]
[format]
label = "y"
time = "t"
[checkpoint]
path = "nowhere"
"""
PAST = {"backfill.paths": ["a.csv"], "backfill.until": "2026-11-18T12:00:00Z"}


def reader(source: Any) -> BackfillReader:
    names = sl.Names()
    history = CSVDecoder(names, ROLES, columns=["y", "t", "x"], grow_always=True)
    stream = JSONDecoder(names, ROLES, grow_always=True)
    return BackfillReader(source, history, stream, CUT)


def polled(*values: bytes) -> Polled:
    return Polled([Records(Partition("a"), range(len(values)), list(values), len(values))])


def event(y: str, t: float) -> bytes:
    return json.dumps({"y": y, "t": t, "x": 1.0}).encode()


def labels(one: BackfillReader, *values: bytes) -> Sequence[Any]:
    """Return the labels of the events that are read from these records."""
    assert one.read(polled(*values)) == []
    return [one.rows.label_of(i) for i in range(len(one.rows))]


def test_events_before_the_cut_are_of_history_and_the_others_of_the_stream() -> None:
    source = SimpleNamespace(in_history=True)
    one = reader(source)
    rows = [b"b,%g,1" % t for t in (CUT - 1.0, CUT, CUT + 1.0)]
    assert labels(one, *rows) == ["b"]
    assert not one.publishes  # too late
    source.in_history = False
    events = [event("a", CUT - 1.0), event("b", CUT), event("a", CUT + 1.0)]
    assert labels(one, *events) == ["b", "a"]
    assert one.publishes


def test_history_and_stream_number_labels_alike_also_at_a_restart() -> None:
    roles = Fields(label="y", time="t", warmup=10)
    source: Any = SimpleNamespace(in_history=True)

    def started() -> BackfillReader:
        names = sl.Names()
        history = CSVDecoder(names, roles, columns=["y", "t", "x"], grow_always=True)
        return BackfillReader(source, history, JSONDecoder(names, roles, grow_always=True), CUT)

    one = started()
    assert labels(one, b"q,1,1", b"p,2,1") == ["q", "p"]
    again = started()
    again.restore(one.state())
    for restarted in (one, again):
        source.in_history = False
        assert labels(restarted, event("p", CUT), event("q", CUT)) == ["p", "q"]
        source.in_history = True
        assert labels(restarted, b"p,1,1") == ["p"]
    fresh = started()
    fresh.restore({"decoder": one.state()["decoder"]})  # of a daemon without history
    assert labels(fresh, b"p,1,1") == ["p"]


def test_the_stream_begins_before_the_cut() -> None:
    read = config.parse(CONFIG, overrides=PAST)
    assert isinstance(read.source, config.KafkaSourceConfig)
    found = sources.stream_source(read)
    assert isinstance(found, config.KafkaSourceConfig)
    assert found.start == "2026-11-18T11:00:00+00:00"
    assert found.topics == read.source.topics
    read = config.parse(CONFIG, overrides={**PAST, "backfill.overlap_seconds": 0})
    found = sources.stream_source(read)
    assert isinstance(found, config.KafkaSourceConfig)
    assert found.start == "2026-11-18T12:00:00+00:00"
    plain = config.parse(CONFIG)
    assert sources.stream_source(plain) is plain.source


@pytest.mark.parametrize(
    ("change", "topics"),
    [
        ({"labels.topic": "labels"}, ("clicks", "labels")),
        ({"labels.topic": "clicks"}, ("clicks",)),
        ({"labels": {}}, ("clicks",)),
        ({"labels.topic": "c2", "source.pattern": "c.*", "source.topics": []}, ()),
    ],
)
def test_the_topic_of_the_labels_is_read(change: dict[str, Any], topics: tuple[str, ...]) -> None:
    found = sources.stream_source(config.parse(CONFIG, overrides={"format.id": "id", **change}))
    assert isinstance(found, config.KafkaSourceConfig)
    assert found.topics == topics


def test_history_is_read_from_files_before_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    path.write_text("y;t;x\na;1;1\nb;2;2\n")
    read = config.parse(
        CONFIG,
        overrides={
            **PAST,
            "backfill.paths": [str(path)],
            "backfill.delimiter": ";",
            "backfill.offsets": {"clicks:1": 7, "a:b:0": 0},
        },
    )
    assert read.backfill is not None

    class Stream(ShuffledSource):
        opened: Any = None

        def open(self, positions: Any, identity: Any) -> None:
            self.opened = dict(positions)
            super().open({}, identity)

    stream = Stream(1, 10)
    found = sources.backfill(read, read.backfill, stream, 2, Log("json", "error"))
    assert isinstance(found, Backfill)
    assert found.cut == "2026-11-18T12:00:00+00:00"
    found.open({}, None)
    assert stream.opened == {Partition("clicks", 1): 7, Partition("a:b", 0): 0}
    values: list[Any] = []
    while found.in_history:
        values += [value for one in found.poll(0.1) for value in one.values]
    assert [value for value in values if value[:1] in {b"a", b"b"}] == [b"a;1;1", b"b;2;2"]
    found.close()


def test_each_event_is_learned_once_by_its_own_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """History and the stream overlap on both sides of the cut, and the daemon stops in each."""
    cluster = MemoryCluster()
    cluster.install(monkeypatch)
    cluster.create("clicks")
    history, stream = range(130), range(80, 200)
    rows = [json.dumps({"t": 1e6 + t, "x": t % 7, "y": "ab"[t % 5 > 1]}) for t in range(200)]
    (tmp_path / "history.jsonl").write_text("\n".join(rows[t] for t in history))
    cluster.write("clicks", [rows[t].encode() for t in stream])
    path = tmp_path / "daemon.toml"
    path.write_text(
        f"""
        [source]
        kind = "kafka"
        bootstrap = "nowhere:1"
        topics = ["clicks"]
        batch = 20
        [format]
        label = "y"
        time = "t"
        labels = ["a", "b"]
        [backfill]
        paths = ["{tmp_path}/history.jsonl"]
        until = "1970-01-12T13:48:20Z"
        offsets = {{"clicks:0" = 0}}
        [checkpoint]
        path = "{tmp_path}/models"
        [telemetry]
        enabled = false
        [log]
        format = "json"
        """
    )
    counts: dict[str, int] = {}
    for until in ("60", "150", "end"):
        assert main(["run", str(path), "--until", until]) == Exit.OK
        found = checkpoints.newest(tmp_path / "models")
        assert found is not None
        counts = found[1]["counts"]
        assert counts["records"] == counts["events"] + counts["outside"]
        assert counts["learned"] == counts["events"]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    ended = [line["until"] for line in lines if line["event"] == "history ended"]
    assert ended == ["1970-01-12T13:48:20Z"]
    assert (counts["learned"], counts["outside"]) == (200, len(history) + len(stream) - 200)
    model = sl.LinearClassifier()
    for t in range(200):
        model.learn_one({"x": t % 7}, "ab"[t % 5 > 1])
    learned = sl.LinearClassifier.load(tmp_path / "models", learner="default")
    assert learned.weights == model.weights
    assert learned.intercept == model.intercept
