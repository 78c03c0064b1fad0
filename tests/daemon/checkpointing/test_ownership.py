"""Ownership: one at a time, handed over when the owner is dead or frozen, never taken back."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.checkpointing import directory_claim
from streamlearn.daemon.checkpointing.directory_claim import DirectoryClaim
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.checkpointing.writer import prune
from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.checkpoints import CheckpointId
from streamlearn.storage.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OWNER = """
import sys, time
from streamlearn.estimators import checkpoints
from streamlearn.daemon.checkpointing.ownership import Ownership
owner = Ownership(
    sys.argv[1], lease_seconds=1.5, report=lambda stop: print(int(stop.code), flush=True)
)
owner.acquire(lambda: checkpoints.newest(owner.store), wait=lambda: False)
print(owner.epoch, flush=True)
time.sleep(60)
"""


def acquire(owner: Ownership, looks: int = 0, seconds: float = 0.0) -> Any:
    """Become the owner, or Stop after so many looks at the one there is."""
    left = iter(range(looks))

    def wait() -> bool:
        threading.Event().wait(seconds)
        return next(left, None) is not None

    return owner.acquire(lambda: checkpoints.newest(owner.store), wait=wait)


@pytest.fixture(params=["directory", "bucket"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    if request.param == "directory":
        return tmp_path
    bucket: str = request.getfixturevalue("bucket")
    return bucket


@pytest.fixture
def other(location: Path | str) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the location, in epoch 1."""
    command = [sys.executable, "-c", OWNER, str(location)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        yield process
        process.kill()


def reported(process: subprocess.Popen[str]) -> list[str]:
    """What it has reported."""
    assert process.stdout is not None
    return process.stdout.read().split()


def put(owner: Ownership, number: int) -> None:
    whole = {"checkpoint": checkpoints.LAYOUT, "number": number}
    owner.store.write(CheckpointId(owner.epoch, number).name, model_file.pieces(whole))


def test_ownership_is_handed_over(location: Path | str) -> None:
    first = Ownership(location, lease_seconds=2.0)
    assert acquire(first) is None
    put(first, 1)
    with pytest.raises(Stop) as caught:
        acquire(Ownership(location), looks=3)
    assert caught.value.code == Exit.OWNED
    assert first.instance in caught.value.reason
    first.check()
    first.release()
    first.release()
    second = Ownership(location)
    checkpoint_id, data = acquire(second)
    assert (second.epoch, checkpoint_id, data["number"]) == (2, CheckpointId(1, 1), 1)
    epoch = checkpoints.read_epoch(location, 2)
    assert epoch is not None
    assert (epoch.owner, epoch.base) == (second.instance, CheckpointId(1, 1))
    with pytest.raises(Fenced):
        first.check()
    second.release()


@pytest.mark.parametrize("location", ["directory"], indirect=True)
def test_dead_owner_is_replaced_immediately(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    standby = Ownership(tmp_path, lease_seconds=3600.0)
    with pytest.raises(Stop):
        acquire(standby, looks=3)
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert acquire(standby) is None
    assert standby.epoch == 2
    standby.release()


def test_frozen_owner_is_replaced_after_its_lease_and_exits_as_fenced(
    location: Path | str, other: subprocess.Popen[str]
) -> None:
    other.send_signal(signal.SIGSTOP)
    standby = Ownership(location, lease_seconds=0.6)
    assert acquire(standby, looks=1000, seconds=0.05) is None
    assert standby.epoch == 2
    assert other.poll() is None
    other.send_signal(signal.SIGCONT)
    # its loop sleeps and notices nothing, so the thread that renews ends the process
    assert other.wait(timeout=10) == Exit.FENCED
    assert reported(other) == [str(int(Exit.FENCED))]
    standby.check()
    standby.release()


def test_live_owner_is_not_replaced(location: Path | str, other: subprocess.Popen[str]) -> None:
    standby = Ownership(location, lease_seconds=1.5)
    with pytest.raises(Stop):
        acquire(standby, looks=50, seconds=0.05)
    assert other.poll() is None


def test_only_one_of_many_takes_over(location: Path | str) -> None:
    first = Ownership(location)
    acquire(first)
    first.release()
    contenders = [Ownership(location, lease_seconds=2.0) for _ in range(8)]
    start = threading.Barrier(len(contenders))
    results: list[int] = []

    def run(contender: Ownership) -> None:
        start.wait()
        try:
            acquire(contender, looks=5, seconds=0.02)
        except Stop as stop:
            results.append(-stop.code)
        else:
            results.append(contender.epoch)

    threads = [threading.Thread(target=run, args=(one,)) for one in contenders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for contender in contenders:
        contender.release()
    assert sorted(results) == [-Exit.OWNED] * 7 + [2]


def test_load_is_repeated_if_a_waking_owner_wrote_a_checkpoint(location: Path | str) -> None:
    first = Ownership(location)
    acquire(first)
    put(first, 1)
    first.claim.release()  # as if it were dead; but it writes once more
    late = iter([2])

    def load() -> Any:
        found = checkpoints.newest(location)
        for number in late:
            put(first, number)
        return found

    second = Ownership(location)
    found = second.acquire(load, wait=lambda: False)
    assert found is not None
    assert found[0] == CheckpointId(1, 2)
    second.release()
    first.release()


def test_lease_is_renewed_after_a_failed_renewal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = tmp_path / "gone" / "lease"
    monkeypatch.setattr(directory_claim, "lease_path", lambda *_: lease)
    owner = Ownership(tmp_path)
    acquire(owner)
    owner.check()
    lease.parent.mkdir()
    until(lease.is_file)
    owner.release()


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came")


def freeze(owner: Ownership) -> None:
    """As if its process were stopped: its lock is free, for it is the same one here."""
    assert owner._renewer is not None
    owner._renewer.stop()
    owner.claim.release()


def test_owner_frozen_through_two_takeovers_is_fenced(location: Path | str) -> None:
    frozen = Ownership(location)
    acquire(frozen)
    freeze(frozen)
    for epoch in (2, 3):
        owner = Ownership(location)
        acquire(owner)
        assert owner.epoch == epoch
        for number in (1, 2):
            put(owner, number)
        prune(location, keep=2)
        owner.release()
    assert checkpoints.epochs(location) == [3]  # neither its own nor the next is there
    with pytest.raises(Fenced):
        frozen.check()


def test_frozen_standby_does_not_count_unobserved_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Ownership(tmp_path)
    acquire(owner)
    assert owner._renewer is not None
    owner._renewer.stop()
    looks = [0.0, 0.375, 1000.0, 1000.125, 1000.25]  # after 1 s in all, the lease is not yet over
    clock = SimpleNamespace(monotonic=iter(looks).__next__)
    monkeypatch.setattr(directory_claim, "time", clock)
    watch = DirectoryClaim(Directory(tmp_path), lease_seconds=1.0)
    silent = [watch.holder() is None for _ in looks]
    assert silent == [False, False, False, False, True]
    watch.stop_watching()
    owner.release()


# -- a directory that goes ------------------------------------------------------------------------


def move(directory: Path) -> None:
    directory.rename(directory.with_name("elsewhere"))


def empty(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()


def replace(directory: Path) -> None:
    """Another instance has begun where the directory was, with an epoch of the same number."""
    move(directory)
    other = Ownership(directory)
    acquire(other)
    other.release()


def unmount(directory: Path) -> None:
    move(directory)
    directory.write_text("a file system that is no directory any more")


@pytest.mark.parametrize("go", [move, empty, replace, unmount])
def test_lost_directory_has_its_own_exit_code(tmp_path: Path, go: Callable[[Path], None]) -> None:
    directory = tmp_path / "models"
    owner = Ownership(directory)
    acquire(owner)
    freeze(owner)
    owner.check()
    go(directory)
    with pytest.raises(Stop) as caught:
        owner.check()
    assert caught.value.code == Exit.NO_CHECKPOINT


@pytest.mark.parametrize("location", ["directory"], indirect=True)
def test_lost_directory_ends_an_owner_that_does_not_check(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    tmp_path.rename(tmp_path.with_name(f"{tmp_path.name}-elsewhere"))
    assert other.wait(timeout=30) == Exit.NO_CHECKPOINT
    assert reported(other) == [str(int(Exit.NO_CHECKPOINT))]
    tmp_path.mkdir()


def test_standby_does_not_start_in_a_lost_directory(tmp_path: Path) -> None:
    directory = tmp_path / "models"
    owner = Ownership(directory)
    acquire(owner)

    def wait() -> bool:
        freeze(owner)
        move(directory)
        return True

    with pytest.raises(Stop) as caught:
        Ownership(directory).acquire(lambda: None, wait=wait)
    assert caught.value.code == Exit.NO_CHECKPOINT
    assert not directory.exists()
