"""Snapshots: the file, the names beside it, and what the daemon writes."""

import itertools
import json
import math
import shutil
import threading
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon import loop as daemon_loop
from streamlearn.daemon.batch import Batch
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.status import Status
from streamlearn.serving import Snapshot, arrays, directory, snapshot_content
from streamlearn.serving import publisher as publisher_module
from streamlearn.serving.publisher import Publisher
from streamlearn.stream import Events, Fields, JSONDecoder
from streamlearn.stream.polled import Polled
from tests.support.loops import MemoryLog
from tests.support.streams import ShuffledSource, make_loop


def learned(features: Any = None, l1: float = 0.0) -> sl.FTRLClassifier:
    model = sl.FTRLClassifier(l1=l1, features=features)
    rng = np.random.default_rng(0)
    for _ in range(500):
        event = {f"f{int(j)}": 1.0 for j in rng.integers(0, 40, size=5)}
        model.learn_one(event, "f3" in event)
    return model


def test_sparse_model_holds_its_nonzeros_only(tmp_path: Path) -> None:
    model = learned(sl.Hashing(bits=20), l1=5.0)
    path = tmp_path / "sparse.safetensors"
    sl.serving.save(model, path)
    assert 0 < model.nonzero < 40
    assert path.stat().st_size < 4096
    header, content = arrays.read(path)
    assert header["slots"] == 1 << 20
    stored = content["stored"]
    assert stored.tolist() == np.flatnonzero(model.coefficients()[0]).tolist()
    np.testing.assert_array_equal(content["table"][:, 0], model.coefficients()[0][stored])


def test_file_is_readable_without_streamlearn(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    model = learned(l1=1e-3)
    path = tmp_path / "model.safetensors"
    sl.serving.save(model, path)
    tensors = safetensors.load_file(path)
    names = [json.loads(line) for line in Path(f"{path}.names.jsonl").read_text().splitlines()]
    rows = tensors["stored"].tolist() if "stored" in tensors else range(len(names))
    weights = {names[slot]: row[0] for slot, row in zip(rows, tensors["table"], strict=True)}
    assert {name: w for name, w in weights.items() if w} == model.weights


@pytest.mark.parametrize("length", range(0, arrays.ALIGNED, 3))
def test_arrays_begin_at_a_cache_line(length: int) -> None:
    for shorter in (0, 1, 2):
        given = {"name": "é" * (length - shorter)}
        [head, body] = map(bytes, arrays.pieces(given, {"a": np.arange(3.0)}))
        assert len(head) % arrays.ALIGNED == 0
        size = arrays.LENGTH.unpack_from(head)[0]
        header = json.loads(head[arrays.LENGTH.size :])
        assert (size, len(body)) == (len(head) - arrays.LENGTH.size, 24)
        assert json.loads(header["__metadata__"]["streamlearn"]) == given
        assert len(head) < arrays.ALIGNED + len(json.dumps(header))  # no more than is needed


@pytest.mark.parametrize("cut", [0, 7, 100, 1000])
def test_truncated_file(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    sl.serving.save(learned(), path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(sl.ModelFileError):
        Snapshot(path)


def test_truncated_names(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    sl.serving.save(learned(), path)
    names = Path(f"{path}.names.jsonl")
    names.write_text("".join(names.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(sl.ModelFileError):
        Snapshot(path)


def test_full_table(tmp_path: Path) -> None:
    model = learned(sl.Names(max_names=20))
    sl.serving.save(model, tmp_path / "full.safetensors")
    snapshot = Snapshot(tmp_path / "full.safetensors")
    for j in range(60):
        event = {f"f{j}": 2.0, "f1": 1.0}
        assert snapshot.score(event) == model.score_one(event)


def test_threads(tmp_path: Path) -> None:
    model = learned()
    sl.serving.save(model, tmp_path / "model.safetensors")
    snapshot = Snapshot(tmp_path / "model.safetensors")
    events = [{f"f{j}": 1.0, f"f{j + 1}": 2.0} for j in range(40)]
    expected = [model.score_one(event) for event in events]
    wrong: list[float] = []

    def score() -> None:
        for _ in range(50):
            found = [snapshot.score(event) for event in events]
            wrong.extend(a for a, b in zip(found, expected, strict=True) if a != b)

    threads = [threading.Thread(target=score) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Immediately(Executor):
    """Runs what is submitted before it returns."""

    def submit(self, function: Any, /, *given: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*given, **options))
        except OSError as error:
            done.set_exception(error)
        return done


def test_daemon_publishes(tmp_path: Path) -> None:
    """The last snapshot equals the daemon's model; earlier ones are pruned."""
    snapshots = tmp_path / "serving"
    log = Log("json", "error")
    settings = config.ServeConfig(every_seconds=1e-3, keep=3)
    for epoch in (1, 2):
        publisher = Publisher(snapshots, settings, Fields(label="click"), log)
        loop = make_loop(tmp_path / "checkpoints", ShuffledSource(3, 2000))
        loop.pipeline.observers.append(publisher)
        loop.run()
        found = directory.entries(snapshots)
        for learner in loop.pipeline.learners:
            mine = [entry for entry in found if entry.learner == learner.name]
            assert len(mine) <= 3
            snapshot = Snapshot(snapshots, learner.name)
            assert snapshot.version.epoch == epoch
            assert snapshot.version.events >= learner.learned
            for slot, name in enumerate(learner.model.feature_names()[:50]):
                event = {name: 1.0}
                assert snapshot.score(event) == learner.model.score_one(event), slot
        epochs = {entry.epoch for entry in found}
        names = {f"names-{number:010}.jsonl" for number in epochs}
        assert {path.name for path in snapshots.glob("names-*")} == names


def test_nothing_is_published_of_what_learned_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "ThreadPoolExecutor", lambda *_, **__: Immediately())
    reader = sl.Names()
    learners = Learners({"one": sl.LinearClassifier()}, reader)
    decoder = JSONDecoder(reader, Fields(label="click"), list(learners))
    settings = config.ServeConfig(every_seconds=1e-9, keep=100)
    publisher = Publisher(tmp_path, settings, Fields(label="click"), MemoryLog())
    status = Status(epoch=1, state="active")
    publisher.on_start(learners, status)
    for values in ([b'{"a": 1}'], [b'{"a": 1, "click": true}'], [b'{"b": 1}'], [b""]):
        decoder.decode(values, events := Events())
        results = learners.learn(events)
        publisher.on_batch(Batch([], Polled([]), events, results, np.zeros(len(events))))
        publisher.on_tick(status)
    publisher.on_end()
    assert sorted(entry.events for entry in directory.entries(tmp_path)) == [0, 1]


def test_versions_are_published_while_it_learns(tmp_path: Path) -> None:
    loop, status = make_loop(None, ShuffledSource(1, 2000)), Status("active", epoch=1)
    publisher = Publisher(
        tmp_path, config.ServeConfig(keep=9), Fields(label="click"), Log("json", "error")
    )
    publisher._pool = Immediately()  # type: ignore[assignment]
    publisher.on_start(loop.pipeline.learners, status)
    loop.pipeline.observers = [publisher]
    for count in (2, 3, 4):  # after that of the start
        loop.pipeline.process(loop.source.poll(1.0))
        publisher._copied_at, written = -math.inf, publisher._writing  # due
        publisher._writing = Future()  # but the one before is still being written
        publisher.on_tick(status)
        assert len(directory.entries(tmp_path)) == 2 * (count - 1)
        publisher._writing = written
        publisher.on_tick(status)
        publisher.on_tick(status)  # nothing was learned since
        found = [one for one in directory.entries(tmp_path) if one.learner == "sparse"]
        assert len(found) == count


def test_next_version_takes_over_the_names(tmp_path: Path) -> None:
    model = learned()
    publish(tmp_path, model, 1)
    first = Snapshot(tmp_path)
    before = first.score({"f3": 1.0, "new": 1.0})
    for _ in range(20):
        model.learn_one({"new": 1.0, "f3": 1.0}, False)
    publish(tmp_path, model, 2)
    second = Snapshot(tmp_path, before=first)
    assert second.reader is first.reader
    event = {"new": 1.0, "f3": 1.0}
    assert second.score(event) == model.score_one(event)
    assert first.score(event) == before  # the names of later versions are not known to it


def publish(path: Path, model: sl.FTRLClassifier, version: int) -> None:
    header, content = snapshot_content.copy(model, model.reader).content()
    assert isinstance(model.reader, sl.Names)
    directory.append_names(path / "names-0000000001.jsonl", model.reader.saved_names(), start=True)
    name = directory.SnapshotFile(1, version, "one").name
    directory.write(
        path / name, header, content, learner="one", version=(1, version),
        names_file="names-0000000001.jsonl",
    )  # fmt: skip


@pytest.mark.parametrize(
    "fault", ["names", "torn names", "no names", "gone names", "gone", "snapshot"]
)
def test_a_snapshot_that_cannot_be_written_is_made_up_for(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon learns on; the next snapshot has all names, each once."""
    snapshots, calls = tmp_path / "serving", itertools.count()
    append, write = directory.append_names, directory.write

    def failing(path: Path, *given: Any, **options: Any) -> None:
        call = next(calls)
        if call == 4 and fault == "gone names":
            path.unlink()
        if call == 4 and fault == "gone":
            shutil.rmtree(snapshots)
        if call == (0 if fault == "snapshot" else 1) and "gone" not in fault:  # the first snapshot
            if fault == "torn names":
                append(path, *given, **options)
                path.write_bytes(path.read_bytes()[:-3])
            if fault == "no names":
                path.unlink()
            raise OSError("no space left on device")
        (write if fault == "snapshot" else append)(path, *given, **options)

    snapshots.mkdir()  # with names of other models, whose epochs had the same number
    append(snapshots / "names-0000000001.jsonl", ["old"], start=True)
    monkeypatch.setattr(directory, "write" if fault == "snapshot" else "append_names", failing)
    monkeypatch.setattr(publisher_module, "ThreadPoolExecutor", lambda *_, **__: Immediately())
    monkeypatch.setattr(daemon_loop, "TICK_SECONDS", 0.0)
    log = MemoryLog()
    publisher = Publisher(
        snapshots, config.ServeConfig(every_seconds=1e-6), Fields(label="click"), log
    )
    loop = make_loop(tmp_path / "checkpoints", ShuffledSource(3, 2000), names="default")
    loop.pipeline.observers.append(publisher)
    assert loop.run() == 0
    monkeypatch.undo()
    expected = "No such file" if "gone" in fault else "no space"
    assert expected in log.lines("snapshot failed")[0]["error"]
    learner = loop.pipeline.learners["default"]
    snapshot = Snapshot(snapshots)
    names = learner.model.feature_names()
    lines = (snapshots / publisher.names_file).read_text().splitlines()
    assert [json.loads(line) for line in lines] == names
    for name in names[:: len(names) // 50]:
        assert snapshot.score({name: 1.0}) == learner.model.score_one({name: 1.0})


def test_snapshots_of_other_models_are_deleted(tmp_path: Path) -> None:
    """Without its checkpoints, a daemon begins at epoch 1 again."""
    snapshots = tmp_path / "serving"
    for checkpoints, records in (("first", 2000), ("second", 100)):
        fields, log = Fields(label="click"), Log("json", "error")
        publisher = Publisher(snapshots, config.ServeConfig(), fields, log)
        loop = make_loop(tmp_path / checkpoints, ShuffledSource(3, records), names="default")
        loop.pipeline.observers.append(publisher)
        loop.run()
        learner = loop.pipeline.learners["default"]
        snapshot = Snapshot(snapshots)
        assert snapshot.version == (1, learner.learned)
        name = learner.model.feature_names()[3]
        assert snapshot.score({name: 1.0}) == learner.model.score_one({name: 1.0})
