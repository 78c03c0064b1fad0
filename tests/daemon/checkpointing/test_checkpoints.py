"""Checkpoints: whole or not there, and only those that count are gone on from."""

from __future__ import annotations

import errno
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.checkpointing.writer import (
    CheckpointWriter,
    FailedCheckpoint,
    WrittenCheckpoint,
    prune,
    remove_partial_files,
)
from streamlearn.daemon.process import faults
from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.checkpoints import CheckpointId, Epoch, epoch_name
from streamlearn.rules.copy_buffer import CopyBuffer
from streamlearn.storage import open_store
from streamlearn.stream import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from streamlearn.storage import Location

CLICKS = Partition("clicks", 0)


def undisturbed(_: float) -> None:
    """Nothing was published, so nothing is to be flushed."""


@pytest.fixture(params=["directory", "bucket"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    if request.param == "directory":
        return tmp_path / "models"
    bucket: str = request.getfixturevalue("bucket")
    return bucket


@pytest.fixture
def owner(location: Path | str) -> Iterator[Ownership]:
    owner = Ownership(location)
    owner.acquire(lambda: checkpoints.newest(owner.store), wait=lambda: False)
    yield owner
    owner.release()


def state(events: int) -> dict[str, Any]:
    return {"events": events, "weights": np.arange(3.0) * events}


def write(writer: CheckpointWriter, events: int) -> WrittenCheckpoint | FailedCheckpoint | None:
    writer.start(state(events), {CLICKS: events})
    return writer.collect(10.0)


def put(location: Location, checkpoint_id: CheckpointId, events: int = 0) -> None:
    data = {"checkpoint": checkpoints.LAYOUT, "events": events}
    open_store(location).write(checkpoint_id.name, model_file.pieces(data))


def own(location: Location, number: int, base: CheckpointId | None) -> None:
    open_store(location).write(epoch_name(number), [Epoch(number, "me", base).packed()])


def test_checkpoint_round_trip(owner: Ownership) -> None:
    writer = CheckpointWriter(owner, flush=undisturbed)
    assert checkpoints.newest(owner.store) is None
    for events in (10, 20, 30):
        written = write(writer, events)
        assert isinstance(written, WrittenCheckpoint)
        assert written.positions == {CLICKS: events}
    found = checkpoints.newest(owner.store)
    assert found is not None
    assert found[0] == CheckpointId(1, 3)
    assert found[1]["events"] == 30
    assert np.array_equal(found[1]["weights"], np.arange(3.0) * 30)
    assert checkpoints.all_ids(owner.store) == [
        CheckpointId(1, 3),
        CheckpointId(1, 2),
    ]  # one before is kept


@pytest.mark.parametrize("damage", ["flipped", "short", "empty", "other"])
def test_damaged_checkpoint_falls_back_to_the_previous_one(owner: Ownership, damage: str) -> None:
    writer = CheckpointWriter(owner, flush=undisturbed)
    for events in (10, 20):
        write(writer, events)
    name = CheckpointId(1, 2).name
    data = bytearray(owner.store.read(name))
    if damage == "flipped":
        data[len(data) // 2] ^= 1
    elif damage == "other":
        data = bytearray(model_file.pack({"no": "checkpoint"}))
    length = {"short": len(data) // 2, "empty": 0}.get(damage, len(data))
    owner.store.write(name, [bytes(data[:length])])
    damaged: list[CheckpointId] = []
    found = checkpoints.newest(owner.store, lambda checkpoint_id, _: damaged.append(checkpoint_id))
    assert found is not None
    assert (found[0], found[1]["events"], damaged) == (CheckpointId(1, 1), 10, [CheckpointId(1, 2)])


def test_all_checkpoints_damaged_is_an_error(owner: Ownership) -> None:
    write(CheckpointWriter(owner, flush=undisturbed), 10)
    owner.store.write(CheckpointId(1, 1).name, [b""])
    with pytest.raises(sl.ModelFileError, match="checkpoints are damaged"):
        checkpoints.newest(owner.store)


def test_checkpoint_of_a_newer_layout_is_an_error(owner: Ownership) -> None:
    write(CheckpointWriter(owner, flush=undisturbed), 10)
    newer = {"checkpoint": checkpoints.LAYOUT + 1}
    owner.store.write(CheckpointId(1, 2).name, model_file.pieces(newer))
    with pytest.raises(model_file.NewerFormatError, match="upgrade"):
        checkpoints.newest(owner.store)


def test_late_files_of_fenced_epochs_are_ignored(tmp_path: Path) -> None:
    own(tmp_path, 1, None)
    own(tmp_path, 2, CheckpointId(1, 2))
    own(tmp_path, 3, CheckpointId(1, 2))  # epoch 2 wrote none in time
    own(tmp_path, 4, CheckpointId(3, 1))
    for checkpoint_id in [
        CheckpointId(1, 1),
        CheckpointId(1, 2),
        CheckpointId(1, 3),
        CheckpointId(2, 1),
        CheckpointId(3, 1),
        CheckpointId(3, 2),
    ]:
        put(tmp_path, checkpoint_id)
    assert checkpoints.valid(tmp_path) == [
        CheckpointId(3, 1),
        CheckpointId(1, 2),
        CheckpointId(1, 1),
    ]
    put(tmp_path, CheckpointId(4, 1))
    assert checkpoints.valid(tmp_path)[0] == CheckpointId(4, 1)
    prune(tmp_path, keep=3)
    assert checkpoints.all_ids(tmp_path) == [
        CheckpointId(4, 1),
        CheckpointId(3, 1),
        CheckpointId(1, 2),
    ]
    prune(tmp_path, keep=2)
    assert checkpoints.valid(tmp_path) == [CheckpointId(4, 1), CheckpointId(3, 1)]
    assert checkpoints.epochs(tmp_path) == [4, 3]


def test_prune_keeps_what_may_be_needed(tmp_path: Path) -> None:
    own(tmp_path, 1, None)
    own(tmp_path, 2, CheckpointId(1, 1))
    put(tmp_path, CheckpointId(1, 1))
    prune(tmp_path, keep=2)
    assert checkpoints.valid(tmp_path) == [CheckpointId(1, 1)]
    put(tmp_path, CheckpointId(3, 1))  # of an epoch that is being created
    put(tmp_path, CheckpointId(2, 1))
    prune(tmp_path, keep=2)
    assert checkpoints.all_ids(tmp_path) == [
        CheckpointId(3, 1),
        CheckpointId(2, 1),
        CheckpointId(1, 1),
    ]


def test_partial_files_of_killed_processes_are_removed(owner: Ownership) -> None:
    for name in ("00000000-00000009.checkpoint.part", ".epoch-00000001.aa.part"):
        owner.store.write(name, [b""])
    owner.store.write(".epoch-00000002.bb.part", [b""])  # a standby, about to claim
    remove_partial_files(owner.store, owner.epoch)
    left = [name for name in checkpoints.names(owner.store) if name.endswith(".part")]
    assert left == [".epoch-00000002.bb.part"]


@pytest.mark.parametrize("step", ["flush", "write", "fsync", "rename", "fsync-directory"])
def test_failed_step_keeps_the_old_checkpoint_and_is_retried(
    owner: Ownership, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    writer = CheckpointWriter(owner, flush=undisturbed, clock=lambda: now)
    write(writer, 10)
    monkeypatch.setattr(faults, "_counts", Counter[str]())
    monkeypatch.setenv(faults.VARIABLE, f"{step}:1-3:error")
    waits: list[float] = []
    for failures in (1, 2, 3):
        assert writer.ready
        failed = write(writer, 20)
        assert isinstance(failed, FailedCheckpoint)
        assert isinstance(failed.error, OSError)
        assert failed.error.errno == errno.ENOSPC
        assert writer.failures == failures
        assert not writer.ready
        waits.append(failed.retry_in)
        now += failed.retry_in
        found = checkpoints.newest(owner.store)
        assert found is not None
        # renamed, but not yet durable: it may be there
        assert found[1]["events"] == (20 if step == "fsync-directory" else 10)
    assert waits == [0.5, 1.0, 2.0]
    assert isinstance(write(writer, 30), WrittenCheckpoint)
    found = checkpoints.newest(owner.store)
    assert found is not None
    assert found[1]["events"] == 30
    assert not [name for name in checkpoints.names(owner.store) if name.endswith(".part")]


def test_failed_flush_prevents_the_checkpoint(owner: Ownership) -> None:
    def unreachable(_: float) -> None:
        raise TimeoutError("3 records were not delivered")

    failed = write(CheckpointWriter(owner, flush=unreachable), 10)
    assert isinstance(failed, FailedCheckpoint)
    assert checkpoints.newest(owner.store) is None


def test_state_that_cannot_be_packed_is_a_failure(owner: Ownership) -> None:
    writer = CheckpointWriter(owner, flush=undisturbed)
    writer.start({"set": {1}}, {})
    failed = writer.collect(10.0)
    assert isinstance(failed, FailedCheckpoint)
    assert isinstance(failed.error, sl.ModelFileError)


@pytest.mark.parametrize("location", ["directory"], indirect=True)
def test_writer_of_an_old_epoch_is_fenced(owner: Ownership) -> None:
    writer = CheckpointWriter(owner, flush=lambda _: own(owner.store, 2, None))
    with pytest.raises(Fenced):
        write(writer, 10)
    assert checkpoints.all_ids(owner.store) == []


def test_path_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Stop, match="cannot hold checkpoints") as caught:
        Ownership(tmp_path / "file").acquire(lambda: None, wait=lambda: False)
    assert caught.value.code == Exit.CHECKPOINT


def test_loading_one_learner_by_name(tmp_path: Path) -> None:
    with pytest.raises(sl.ModelFileError, match="directory"):
        sl.LinearClassifier.load(tmp_path)
    model = sl.LinearClassifier(sl.rules.AdaGrad(0.1))
    for i in range(20):
        model.learn_one({"hour": i % 5, "user": f"u{i % 3}"}, i % 2 == 0)
    model.save(tmp_path / "m")
    saved = model_file.read(tmp_path / "m")
    features = saved["state"].pop("features")
    own(tmp_path, 1, None)
    whole = {
        "checkpoint": checkpoints.LAYOUT,
        "features": {"state": features},
        "learners": {"ads": {"model": saved}},
    }
    model_file.write(tmp_path / CheckpointId(1, 1).name, whole)
    for learner in (None, "ads"):
        loaded = sl.LinearClassifier.load(tmp_path, learner=learner)
        assert model_file.pack(loaded.state()) == model_file.pack(model.state())
    with pytest.raises(sl.ModelFileError, match="learner=NAME"):
        sl.LinearClassifier.load(tmp_path, learner="adverts")
    with pytest.raises(sl.ModelFileError, match=r"LinearClassifier\.load"):
        sl.LinearRegressor.load(tmp_path)


def test_reused_copies_in_memory_are_independent() -> None:
    models = [sl.LinearClassifier(), sl.FTRLClassifier(l1=0.1, average="tail", batch=3)]
    copies, cells = CopyBuffer(), []
    for i in range(60):
        for model in models:
            for k in range(i):  # more names with every round
                model.learn_one({"hour": i % 5, f"user{k}": k % 3 + 1.0}, (i + k) % 2 == 0)
        with copies:
            states = [model.state(features=False) for model in models]
        copies.reserve()
        before = model_file.pack([model.state(features=False) for model in models])
        for model in models:
            model.learn_one({"hour": 3, "user0": 9.0}, True)
        assert model_file.pack(states) == before, "learning changes no copy"
        after = model_file.pack([model.state(features=False) for model in models])
        states[0]["learner"]["weights"]["rule"]["cells"][:] = np.nan
        assert model_file.pack([model.state(features=False) for model in models]) == after, (
            "nor the other way"
        )
        cells.append(states[0]["learner"]["weights"]["rule"]["cells"])
    again = sum(np.shares_memory(a, b) for a, b in itertools.pairwise(cells))
    assert 30 < again < 59, "most in the memory of the one before, and none where it had grown"


def test_reader_retries_if_a_checkpoint_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(tmp_path, 1, None)
    for number in (1, 2):
        put(tmp_path, CheckpointId(1, number), number)
    read = checkpoints.read

    def slow(directory: Path, checkpoint_id: CheckpointId) -> Any:
        if checkpoint_id == CheckpointId(1, 2):  # meanwhile the daemon goes on
            put(tmp_path, CheckpointId(1, 3), 3)
            (tmp_path / checkpoint_id.name).unlink()
        return read(directory, checkpoint_id)

    monkeypatch.setattr(checkpoints, "read", slow)
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert (found[0], found[1]["events"]) == (CheckpointId(1, 3), 3)
