"""The interface of observers: metrics, the live page, regret, the audit.

The loop notifies its observers of what happened, and keeps their state in the checkpoint. An
observer never changes what is learned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
    from streamlearn.daemon.learners import LearnerResult, Learners
    from streamlearn.engine.events import Events
    from streamlearn.stream import Partition, Records
    from streamlearn.stream.polled import Polled


RecordError = tuple[int, str | None, str]  # index of the record, invalid field, reason


@dataclass(slots=True)
class PartitionBatch:
    """Consecutive records of one partition, and the invalid ones among them."""

    records: Records
    start: int  # the position before them
    invalid: list[RecordError] = field(default_factory=list)
    tombstones: int = 0
    bytes: int = 0  # of the values


@dataclass(slots=True)
class Batch:
    """A processed batch, in polled order; valid until the call returns.

    Each row of `events` is predicted and learned; with delayed labels it may be only one of both.
    `predicted` marks the rows that were predicted.
    """

    parts: Sequence[PartitionBatch]
    polled: Polled  # the same records, in polled order
    events: Events
    results: Mapping[str, LearnerResult]  # by learner
    predicted: Array
    unlabeled: int = 0  # events without a label or of weight 0, never learned
    since_label: int | None = None  # events since the last label; None: labels are delayed
    schemas: Mapping[int | str, int] = field(default_factory=dict)  # records by schema id
    seconds: dict[str, float] = field(default_factory=dict)  # by stage: decode, learn, publish


@dataclass(slots=True)
class Status:
    """The status of the daemon between two batches."""

    state: str = "starting"  # standby, loading, active, stopping, stopped
    reason: str = ""
    ended: bool = False  # whether the source has no more records
    exit: int | None = None  # the exit code, once the state is stopped
    epoch: int = 0
    restarts: int = 0
    positions: dict[Partition, int] = field(default_factory=dict)
    lag: dict[Partition, int | None] = field(default_factory=dict)
    lost: Mapping[Partition, int] = field(
        default_factory=dict
    )  # records deleted before they were read
    checkpoint_time: float | None = None  # of the last durable one, seconds since 1970
    checkpoint_failures: int = 0


class Observer:
    """Observe the daemon; override the methods of interest."""

    name: str = ""  # the key of its state in the checkpoint; "" for no state

    def on_start(self, learners: Learners, status: Status) -> None:
        """Handle the start: the learners are loaded, and stay the same objects."""

    def on_state(self, status: Status) -> None:
        """Handle a change of the daemon's state."""

    def on_poll(self, seconds: float, records: int) -> None:
        """Handle a poll of the source."""

    def on_batch(self, batch: Batch) -> None:
        """Handle a learned batch."""

    def on_tick(self, status: Status) -> None:
        """Handle a tick: between two polls, a few times a second at most."""

    def on_checkpoint(self, result: WrittenCheckpoint | FailedCheckpoint) -> None:
        """Handle a checkpoint that is durable, or that failed."""

    def on_end(self) -> None:
        """Handle the end of the loop: stop threads, release resources."""

    def state(self) -> Any:
        """Return the state for a checkpoint: a copy, of plain data."""
        return None

    def restore(self, state: Any) -> None:
        """Restore the state from a checkpoint."""
