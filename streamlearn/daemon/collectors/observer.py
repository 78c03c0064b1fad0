"""The interface of observers: metrics, the live page, regret, the audit.

The loop notifies its observers of what happened, and keeps their state in the checkpoint. An
observer never changes what is learned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlearn.daemon.batch import Batch
    from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
    from streamlearn.daemon.learners import Learners
    from streamlearn.daemon.status import Status


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
