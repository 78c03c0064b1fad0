"""Write checkpoints in the background, each as one file, atomically.

The loop copies its state at a batch boundary. A thread then takes these steps:

    flush the outputs | write | fsync | check the epoch | rename | fsync the directory | confirm

In an object store, the end of the upload takes the place of the rename. The checkpoint is durable
only after all of them. The loop then commits the source in its own thread, because a Kafka consumer
belongs to one thread. After a failure the loop retries with a fresh copy and exponential backoff.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.core.files import PART
from streamlearn.daemon.process.exits import Stop
from streamlearn.daemon.process.faults import fault_point
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.checkpoints import CheckpointId, epoch_name, lease_name
from streamlearn.storage import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamlearn.core.files import WriteStep
    from streamlearn.daemon.checkpointing.ownership import Ownership
    from streamlearn.storage import Location, Store
    from streamlearn.stream import Partition

BACKOFF_SECONDS = (0.5, 30.0)  # first and longest
FLUSH_SECONDS = 30.0  # in which all outputs are delivered


@dataclass(frozen=True, slots=True)
class WrittenCheckpoint:
    """A durable checkpoint."""

    checkpoint_id: CheckpointId
    bytes: int
    seconds: float
    positions: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class FailedCheckpoint:
    """A checkpoint that could not be written, and when to retry."""

    error: Exception
    seconds: float
    retry_in: float


class CheckpointWriter:
    """Write the checkpoints of one epoch.

    Parameters
    ----------
    ownership
        The owner of the epoch, checked again before each rename.
    keep
        The number of checkpoints to keep, at least 2.
    flush
        Deliver the published records within the given seconds, or raise.
    on_done
        Called in the background after each checkpoint.
    clock
        The clock for the backoff.
    """

    def __init__(
        self,
        ownership: Ownership,
        *,
        keep: int = 2,
        flush: Callable[[float], None],
        on_done: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ownership = ownership
        self.keep = max(keep, 2)
        self.flush = flush
        self.on_done = on_done
        self.clock = clock
        self.number = 0
        self.failures = 0  # since the start
        self._backoff = 0.0
        self._not_before = -1.0
        self._thread: threading.Thread | None = None
        self._result: WrittenCheckpoint | FailedCheckpoint | Stop | None = None

    # -- called by the loop ---------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written, or its result is not yet collected."""
        return self._thread is not None

    @property
    def ready(self) -> bool:
        """Whether the next checkpoint may start: none is in progress, and the backoff is over."""
        return not self.busy and self.clock() >= self._not_before

    def start(
        self,
        state: dict[str, Any],
        positions: Mapping[Partition, int],
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        """Start writing a state, which nobody may change until the result is collected."""
        self.number += 1  # also after a failure: an upload that seemed to fail may appear later
        checkpoint_id = CheckpointId(self.ownership.epoch, self.number)
        self._thread = threading.Thread(
            target=self._work,
            args=(checkpoint_id, state, dict(positions), flush_seconds),
            name="checkpoint",
            daemon=True,
        )
        self._thread.start()

    def collect(self, seconds: float = 0.0) -> WrittenCheckpoint | FailedCheckpoint | None:
        """Return the result of the current checkpoint, if known within `seconds`."""
        if self._thread is None:
            return None
        self._thread.join(seconds)
        if self._thread.is_alive():
            return None
        self._thread = None
        result, self._result = self._result, None
        if isinstance(result, Stop):
            raise result
        if isinstance(result, WrittenCheckpoint):
            self._backoff = 0.0
        elif isinstance(result, FailedCheckpoint):
            self.failures += 1
            self._backoff = result.retry_in
            self._not_before = self.clock() + result.retry_in
        return result

    # -- in the background ------------------------------------------------------------------------

    def _work(
        self,
        checkpoint_id: CheckpointId,
        state: dict[str, Any],
        positions: dict[Partition, int],
        flush_seconds: float,
    ) -> None:
        start = time.monotonic()
        try:
            self.ownership.check()
            fault_point("flush")
            self.flush(flush_seconds)
            data = {**state, "checkpoint": checkpoints.LAYOUT, "id": list(checkpoint_id)}
            store = self.ownership.store
            size = store.write(checkpoint_id.name, model_file.pieces(data), before=self._before)
            self.ownership.confirm()
            self._result = WrittenCheckpoint(
                checkpoint_id, size, time.monotonic() - start, positions
            )
            prune(store, self.keep)
            self.on_done()
        except Stop as stop:  # fenced, or the directory is gone
            self._result = stop
        except Exception as error:  # noqa: BLE001 - the loop decides
            if not isinstance(self._result, WrittenCheckpoint):
                first, longest = BACKOFF_SECONDS
                retry_in = min(max(2.0 * self._backoff, first), longest)
                self._result = FailedCheckpoint(error, time.monotonic() - start, retry_in)

    def _before(self, step: WriteStep) -> None:
        if step == "rename":
            self.ownership.check()
        fault_point(step)


def prune(location: Location, keep: int) -> None:
    """Remove older checkpoints, then older epochs, oldest first.

    A crash in between leaves more files than needed, never fewer.
    """
    store = open_store(location)
    names = store.names()
    chain = checkpoints.valid(store, names)
    kept = chain[:keep]
    if len(kept) < 2:
        return
    for checkpoint_id in checkpoints.ids_of(names):
        # including late files of fenced epochs; those of a newer epoch belong to its owner
        if checkpoint_id not in kept and checkpoint_id.epoch <= kept[0].epoch:
            store.delete(checkpoint_id.name)
    for number in sorted(checkpoints.epochs_of(names)):
        if number < kept[-1].epoch:
            if lease_name(number) in names:
                store.delete(lease_name(number))
            store.delete(epoch_name(number))


def remove_partial_files(store: Store, epoch: int) -> None:
    """Remove partial files that killed processes left."""
    for name in store.names():
        other = name.startswith(f".{epoch_name(epoch + 1)}")
        if name.endswith(PART) and not name.startswith(f"{epoch:08}-") and not other:
            store.delete(name)
