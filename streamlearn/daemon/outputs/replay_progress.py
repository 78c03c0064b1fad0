"""The progress of replays: a file beside the checkpoints, which one replay at a time may use.

In a directory a lock keeps others out. In an object store a replay owns the prefix `replay` below
the checkpoints by a lease, as a daemon owns its models.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.core.files import lock, make_directory
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.process.exits import Exit, Stop, exit_code
from streamlearn.daemon.process.faults import fault_point
from streamlearn.errors import SourceError, StoreError
from streamlearn.estimators import checkpoints
from streamlearn.storage import open_store
from streamlearn.storage.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn import config
    from streamlearn.storage import Store

PROGRESS_FILE = "replayed.json"
PREFIX = "replay"  # of the lease of a replay
TopicPositions = list[tuple[str, int, int]]  # topic, partition, position


class ReplayProgress(msgspec.Struct):
    """The progress saved between two runs."""

    source: str  # of the letters: the topic or file
    identity: dict[str, str] = {}
    positions: TopicPositions = []
    # end positions of the targets at the start of an unfinished run
    target_ends: TopicPositions | None = None


@dataclass(frozen=True)
class ProgressFile:
    """The file of the progress; `owner` if it is in an object store, and this replay may use it."""

    store: Store
    owner: Ownership | None = None

    def load(self, name: str) -> ReplayProgress:
        """Load the progress for a source of letters; start fresh for another source."""
        try:
            progress = msgspec.json.decode(self.store.read(PROGRESS_FILE), type=ReplayProgress)
        except FileNotFoundError:
            return ReplayProgress(name)
        except msgspec.DecodeError as error:
            raise SourceError(
                f"{self.store}/{PROGRESS_FILE} is damaged ({error}); --again replays all letters "
                "from the beginning"
            ) from None
        return progress if progress.source == name else ReplayProgress(name)

    def save(self, progress: ReplayProgress) -> None:
        """Save the progress, as a whole or not at all."""
        plain: Any = msgspec.to_builtins(progress)
        data = json.dumps(plain, indent=1).encode() + b"\n"
        self.store.write(PROGRESS_FILE, [data], before=fault_point)
        self.require_owner()

    def require_owner(self) -> None:
        """Raise `Stop` if another replay has taken over."""
        if self.owner is not None:
            self.owner.confirm()


def progress_file(checkpoint: config.CheckpointConfig) -> ProgressFile:
    """Return the file of the progress; without it letters would be sent again."""
    store = open_store(checkpoint.path)
    if checkpoint.required and not checkpoints.all_ids(store):
        raise Stop(
            Exit.NO_CHECKPOINT,
            f"{store} has no checkpoint, but checkpoint.required = true; mount its volume, which "
            "holds the progress of earlier replays",
        )
    return ProgressFile(store)


@contextmanager
def exclusive(checkpoint: config.CheckpointConfig) -> Iterator[ProgressFile]:
    """Yield the file of the progress, for this replay only."""
    found = progress_file(checkpoint)
    try:
        if isinstance(found.store, Directory):
            with locked(found.store):
                yield found
        else:
            with owned(found.store, checkpoint.lease_seconds) as owner:
                yield ProgressFile(found.store, owner)
    except StoreError as error:
        raise Stop(exit_code(error), str(error)) from error


@contextmanager
def locked(directory: Directory) -> Iterator[None]:
    """Lock a directory against a second replay."""
    make_directory(directory.path)
    handle = os.open(directory.path, os.O_RDONLY)
    try:
        lock(handle)
        yield
    except BlockingIOError:
        raise Stop(Exit.OWNED, f"another replay is using {directory}; wait until it ends") from None
    finally:
        os.close(handle)


@contextmanager
def owned(store: Store, lease_seconds: float) -> Iterator[Ownership]:
    """Own the prefix of replays; one that was killed holds it until its lease ends."""
    owner = Ownership(f"{store}/{PREFIX}", lease_seconds=lease_seconds)
    owner.acquire(lambda: None, wait=lambda: False)
    try:
        for number in checkpoints.epochs(owner.store):
            if number < owner.epoch:
                owner.store.delete(checkpoints.epoch_name(number))
        yield owner
    finally:
        owner.release()
