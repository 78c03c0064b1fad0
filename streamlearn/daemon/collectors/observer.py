"""The seam for whoever looks on: metrics, the live page, regret, an audit.

The loop tells its observers what happened, and keeps what they want to remember in the checkpoint;
it knows nothing else of them. An observer never changes what is learned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
    from streamlearn.daemon.learners import LearnerResult, Learners
    from streamlearn.engine.events import Events
    from streamlearn.estimators.frames import Array
    from streamlearn.stream import Partition, Records
    from streamlearn.stream.sources.polled import Polled


InvalidRecord = tuple[int, str | None, str]  # the place of a record, the field at fault, the reason


@dataclass(slots=True)
class PartitionBatch:
    """Consecutive records of one partition, and those of them that could not be read."""

    records: Records
    start: int  # the position before them
    invalid: list[InvalidRecord] = field(default_factory=list)
    tombstones: int = 0
    bytes: int = 0  # of the values


@dataclass(slots=True)
class Batch:
    """What became of records, in the order in which they came; valid until the call returns.

    Rows of `events` are predicted and learned at once, or each by itself where labels come late;
    `predicted` are those that were predicted.
    """

    parts: Sequence[PartitionBatch]
    polled: Polled  # the same records as they took turns
    events: Events
    results: Mapping[str, LearnerResult]  # by learner
    predicted: Array
    unlabeled: int = 0  # events that will not be learned: without a label, or of weight 0
    since_label: int | None = None  # events since the last label; None: labels are delayed
    seconds: dict[str, float] = field(default_factory=dict)  # by stage: decode, learn, publish


@dataclass(slots=True)
class Status:
    """What there is to see between batches."""

    state: str = "starting"  # standby, loading, active, stopping, stopped
    reason: str = ""
    ended: bool = False  # whether the source has given all there was
    exit: int | None = None  # the exit code, once the state is stopped
    epoch: int = 0
    restarts: int = 0
    positions: dict[Partition, int] = field(default_factory=dict)
    lag: dict[Partition, int | None] = field(default_factory=dict)
    lost: Mapping[Partition, int] = field(default_factory=dict)  # before they could be read
    checkpoint_time: float | None = None  # of the last durable one, seconds since 1970
    checkpoint_failures: int = 0


class Observer:
    """Looks on; every method may be left as it is."""

    name: str = ""  # under which the checkpoint keeps its state; "": nothing to keep

    def on_start(self, learners: Learners, status: Status) -> None:
        """The learners are loaded; the objects stay the same from now on."""

    def on_state(self, status: Status) -> None:
        """The daemon's state is another now."""

    def on_poll(self, seconds: float, records: int) -> None:
        """The source was asked."""

    def on_batch(self, batch: Batch) -> None:
        """A batch was learned."""

    def on_tick(self, status: Status) -> None:
        """Between two polls, at most a few times a second."""

    def on_checkpoint(self, result: WrittenCheckpoint | FailedCheckpoint) -> None:
        """A checkpoint is durable, or could not be written."""

    def on_end(self) -> None:
        """The loop is over: end threads, give everything back."""

    def state(self) -> Any:
        """What the checkpoint keeps: plain data, a copy."""
        return None

    def restore(self, state: Any) -> None:
        """Go on from what the checkpoint kept."""
