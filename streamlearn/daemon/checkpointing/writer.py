"""Checkpoints: written in the background, each as one file that is there or is not.

The loop copies its state at a batch boundary and hands it over; a thread then takes the steps

    flush the outputs | write | fsync | is the epoch still ours? | rename | fsync the directory

and only when all of them are done is the checkpoint durable, and told to the source (`commit`, in
the loop's own thread: a Kafka consumer belongs to one). A step that fails is counted and the whole
is tried again, with a fresh copy, after a back-off that doubles.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.durable import PART, write_whole
from streamlearn.daemon.checkpointing.ownership import lease_path
from streamlearn.daemon.process.exits import Stop
from streamlearn.daemon.process.faults import fault_point
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.checkpoints import Place, epoch_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from streamlearn.daemon.checkpointing.ownership import Ownership
    from streamlearn.stream import Partition

BACKOFF_SECONDS = (0.5, 30.0)  # the first, and the longest


@dataclass(frozen=True, slots=True)
class WrittenCheckpoint:
    """A checkpoint that is durable."""

    place: Place
    bytes: int
    seconds: float
    positions: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class FailedCheckpoint:
    """A checkpoint that could not be written, and when it is tried again."""

    error: Exception
    seconds: float
    retry_in: float


class CheckpointWriter:
    """What writes the checkpoints of one epoch.

    Parameters
    ----------
    ownership
        The epoch; asked again before each rename.
    keep
        How many are kept, at least 2.
    flush
        Delivers what was published, within the seconds it is given, or raises.
    then
        Called when one is done with, in the background.
    clock
        Tells the time to wait by.
    """

    def __init__(
        self,
        ownership: Ownership,
        *,
        keep: int = 2,
        flush: Callable[[float], None],
        flush_seconds: float = 30.0,
        on_done: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ownership = ownership
        self.keep = max(keep, 2)
        self.flush = flush
        self.flush_seconds = flush_seconds
        self.on_done = on_done
        self.clock = clock
        self.number = 0
        self.failures = 0  # since the start
        self._backoff = 0.0
        self._not_before = -1.0
        self._thread: threading.Thread | None = None
        self._result: WrittenCheckpoint | FailedCheckpoint | Stop | None = None

    # -- in the loop's thread ---------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether one is being written, or waits to be collected."""
        return self._thread is not None

    @property
    def ready(self) -> bool:
        """Whether the next may begin: none is under way, and no back-off is left."""
        return not self.busy and self.clock() >= self._not_before

    def begin(
        self,
        state: dict[str, Any],
        positions: Mapping[Partition, int],
        flush_seconds: float | None = None,
    ) -> None:
        """Write this state, a copy that nobody changes until this checkpoint is collected."""
        place = Place(self.ownership.epoch, self.number + 1)
        seconds = self.flush_seconds if flush_seconds is None else flush_seconds
        self._thread = threading.Thread(
            target=self._work,
            args=(place, state, dict(positions), seconds),
            name="checkpoint",
            daemon=True,
        )
        self._thread.start()

    def collect(self, seconds: float = 0.0) -> WrittenCheckpoint | FailedCheckpoint | None:
        """What has become of the one under way, if that is known within this time."""
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
            self.number = result.place.number
            self._backoff = 0.0
        elif isinstance(result, FailedCheckpoint):
            self.failures += 1
            self._backoff = result.retry_in
            self._not_before = self.clock() + result.retry_in
        return result

    # -- in the background ------------------------------------------------------------------------

    def _work(
        self,
        place: Place,
        state: dict[str, Any],
        positions: dict[Partition, int],
        flush_seconds: float,
    ) -> None:
        start = time.monotonic()
        try:
            self.ownership.check()
            fault_point("flush")
            self.flush(flush_seconds)
            whole = {**state, "checkpoint": checkpoints.LAYOUT, "place": list(place)}
            directory = self.ownership.directory
            pieces = model_file.pieces(whole)
            size = write_whole(directory / place.name, pieces, self.ownership.check)
            self._result = WrittenCheckpoint(place, size, time.monotonic() - start, positions)
            prune(directory, self.keep)
            self.on_done()
        except Stop as stop:  # fenced, or the directory is gone
            self._result = stop
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop decides
            if not isinstance(self._result, WrittenCheckpoint):
                first, longest = BACKOFF_SECONDS
                again = min(max(2.0 * self._backoff, first), longest)
                self._result = FailedCheckpoint(error, time.monotonic() - start, again)


def prune(directory: Path, keep: int) -> None:
    """Remove what is no longer needed: older checkpoints, then epochs, those first that end first.

    A crash in between leaves a little more than is needed, never less.
    """
    chain = checkpoints.valid(directory)
    kept = chain[:keep]
    if len(kept) < 2:
        return
    for place in checkpoints.places(directory):
        # later files of overtaken epochs too; those of a newer epoch are not ours to judge
        if place not in kept and place.epoch <= kept[0].epoch:
            (directory / place.name).unlink(missing_ok=True)
    for number in sorted(checkpoints.epochs(directory)):
        if number < kept[-1].epoch:
            lease_path(directory, number).unlink(missing_ok=True)
            (directory / epoch_name(number)).unlink(missing_ok=True)


def remove_partial_files(directory: Path, epoch: int) -> None:
    """Remove what those who were killed in the middle of writing have left."""
    for name in checkpoints.names(directory):
        other = name.startswith(f".{epoch_name(epoch + 1)}")
        if name.endswith(PART) and not name.startswith(f"{epoch:08}-") and not other:
            (directory / name).unlink(missing_ok=True)
