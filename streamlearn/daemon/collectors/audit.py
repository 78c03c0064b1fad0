"""Audit the order in which records were learned, for tests of exactly-once learning.

The checkpoint keeps the ranges [start, end) of positions by partition, in order. Decoding and
learning the records of those ranges with the library must give bit-identical weights and scores.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.daemon.collectors.observer import Observer

if TYPE_CHECKING:
    from streamlearn.daemon.batch import Batch

VARIABLE = "STREAMLEARN_AUDIT"  # any text enables it


class Range(NamedTuple):
    """Consecutively learned records of one partition."""

    topic: str
    partition: int
    start: int
    end: int


def observers() -> list[Observer]:
    """Return the audit, if the environment enables it."""
    return [Audit()] if os.environ.get(VARIABLE) else []


class Audit(Observer):
    """Record the order in which records were learned."""

    name = "audit"

    def __init__(self) -> None:
        self.ranges: list[Range] = []

    def on_batch(self, batch: Batch) -> None:
        """Add ranges, or extend the last one."""
        at = {part.records.partition: part.start for part in reversed(batch.parts)}
        for partition, end in batch.polled.runs():
            new = Range(*partition, at[partition], end)
            at[partition] = end
            last = self.ranges[-1] if self.ranges else None
            if last is not None and (last[:2], last.end) == (new[:2], new.start):
                self.ranges[-1] = last._replace(end=new.end)
            else:
                self.ranges.append(new)

    def state(self) -> Any:
        """Return the ranges."""
        return [list(one) for one in self.ranges]

    def restore(self, state: Any) -> None:
        """Restore the ranges."""
        self.ranges = [Range(*one) for one in state]
