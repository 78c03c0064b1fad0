"""Wherever the power goes, the daemon resumes from what it committed, exact to the bit."""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.checkpointing import directory_claim
from streamlearn.daemon.process.exits import Exit
from streamlearn.estimators import checkpoints, model_file
from streamlearn.stream import Partition
from streamlearn.stream.sinks.json_lines import FileSink
from streamlearn.stream.sinks.sink import Sink
from tests.support.disks import Disk, Recorder, restore
from tests.support.streams import TOPIC, ShuffledSource, make_loop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamlearn.stream import Records

CLICKS = Partition(TOPIC, 0)
MODELS = Path("state", "models")


class Watched(ShuffledSource):
    """A source that notes commits, and gives no record while a checkpoint is being written."""

    def __init__(self, recorder: Recorder | None = None, *, seed: int = 0) -> None:
        super().__init__(1, 120, batch=30, seed=seed)
        self.recorder = recorder

    def poll(self, seconds: float) -> list[Records]:
        for thread in threading.enumerate():
            if thread.name == "checkpoint":
                thread.join()
        return super().poll(seconds)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        super().commit(positions)
        if self.recorder is not None:
            self.recorder.note("commit", positions[CLICKS])


def run(root: Path, source: ShuffledSource, **options: Any) -> None:
    """A daemon with its state and its outputs below a directory."""
    sinks = {
        "predictions": FileSink(root / "out" / "predictions.jsonl"),
        "dead_letters": FileSink(root / "out" / "dead.jsonl", binary=True),
    }
    given = {"every_events": 40, "every_seconds": 1e9, **options}
    assert make_loop(root / MODELS, source, sinks=sinks, **given).run() == Exit.OK


def learned(root: Path) -> bytes:
    found = checkpoints.newest(root / MODELS)
    assert found is not None
    return model_file.pack({name: found[1][name] for name in ("learners", "features")})


def position(root: Path) -> int:
    """Where a daemon would resume."""
    found = checkpoints.newest(root / MODELS)
    return 0 if found is None else {n: at for _, n, at in found[1]["positions"]}[0]


def predicted(root: Path) -> set[int]:
    """The offsets of which there is a prediction."""
    path = root / "out" / "predictions.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return {
        int(json.loads(line)["headers"]["offset"])
        for line in lines
        if line.startswith(b"{") and line.endswith(b"}}")  # else a torn one
    }


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory_claim, "write_lease", lambda *_: None)  # a lease is for the living
        patch.setattr(os, "fsync", lambda _: None)  # the power cuts here are made up
        yield patch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "out").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    """What is learned where nothing happens."""
    (tmp_path / "whole" / "out").mkdir(parents=True)
    run(tmp_path / "whole", Watched())
    return learned(tmp_path / "whole")


def assert_nothing_lost(root: Path, committed: int) -> None:
    at = position(root)
    assert at >= committed
    assert predicted(root) >= set(range(at)), "predictions are delivered before the checkpoint"


def assert_resumes(root: Path, whole: bytes) -> None:
    run(root, Watched(seed=1))
    assert learned(root) == whole
    assert predicted(root) == set(range(120))


def test_resume_from_every_state_of_the_disk(
    root: Path, whole: bytes, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    with patch.context() as watched:
        recorder = Recorder(root, watched)
        run(root, Watched(recorder), until="70")
        run(root, Watched(recorder))
    disk, committed, seen = Disk(), 0, set()
    for count, step in enumerate(recorder.steps, 1):
        disk.take(step)
        if step[0] == "commit":
            committed = step[1]
        for state in disk.states() if count >= recorder.begun else ():
            key = (committed, frozenset(state.items()))
            if key in seen:
                continue
            seen.add(key)
            left = tmp_path / str(len(seen))
            restore(state, left)
            assert_nothing_lost(left, committed)
            assert_resumes(left, whole)
    assert len(seen) > 50


def test_removed_learner_is_never_lost(
    root: Path, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    run(root, Watched(), until="70")
    with patch.context() as watched:
        recorder = Recorder(root, watched)
        run(root, Watched(), names="default")
    disk, archived = Disk(), 0
    for count, step in enumerate(recorder.steps, 1):
        disk.take(step)
        for n, state in enumerate(disk.states() if count >= recorder.begun else ()):
            left = tmp_path / f"{count}-{n}"
            restore(state, left)
            found = checkpoints.newest(left / MODELS)
            assert found is not None
            if "sparse" not in found[1]["learners"]:
                (path,) = (left / MODELS / "archive").glob("sparse-*.model")
                assert model_file.read(path)["estimator"] == "LinearClassifier"
                archived += 1
    assert archived


def test_power_cut_after_power_cut(
    root: Path, whole: bytes, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    """One daemon after the other, each from what the one before has left."""
    for seed in range(10):
        draw = random.Random(seed)
        state: Mapping[Path, bytes | None] = {Path("out"): None}
        committed = 0
        for cut in range(4):
            root = tmp_path / f"{seed}-{cut}"
            restore(state, root)
            with patch.context() as watched:
                recorder = Recorder(root, watched)
                run(root, Watched(recorder, seed=seed), every_events=draw.randint(5, 60))
            disk = Disk()
            for step in recorder.steps[: draw.randint(recorder.begun, len(recorder.steps))]:
                disk.take(step)
                if step[0] == "commit":
                    committed = step[1]
            state = draw.choice(list(itertools.islice(disk.states(), 2000)))
        left = tmp_path / f"{seed}-end"
        restore(state, left)
        assert_nothing_lost(left, committed)
        assert_resumes(left, whole)


class Noting(Sink):
    """A sink that notes when it is flushed."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def send(self, *_: object, **__: object) -> None:
        pass

    def flush(self, seconds: float) -> None:  # noqa: ARG002 - it takes none
        self.recorder.note("flush")

    def close(self) -> None:
        pass


def test_order_of_the_steps_of_a_checkpoint(root: Path, patch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(root, patch)
    loop = make_loop(
        root / MODELS,
        Watched(recorder),
        sinks={"predictions": Noting(recorder)},
        every_events=40,
        every_seconds=1e9,
    )
    assert loop.run() == Exit.OK
    steps = [what for what, *_ in recorder.steps[recorder.begun :]]
    made_directories, claim = ["name", "fsync directory"] * 2, ["name", "write", "fsync"]
    claimed = ["name", "unlink", "fsync directory"]
    checkpoint = ["flush", "name", "write", "fsync", "rename", "fsync directory"]
    start = [*made_directories, *claim, *claimed]
    assert steps[: len(start)] == start
    whole = [step for step in steps[len(start) :] if step != "unlink"]  # older checkpoints
    count = whole.count("commit")
    assert count > 2
    assert whole == [*checkpoint, "commit"] * count
