"""The audit: in which order records were learned, kept in the checkpoint; for tests of the promise.

What it holds are ranges [start, end) of positions by partition, in their order. To decode and learn
the records of those ranges with the library must give the same weights and scores, to the bit.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.daemon.collectors.observer import Observer

if TYPE_CHECKING:
    from streamlearn.daemon.collectors.observer import Batch

VARIABLE = "STREAMLEARN_AUDIT"  # any text switches it on


class Range(NamedTuple):
    """Records of one partition that were learned one after the other."""

    topic: str
    partition: int
    start: int
    end: int


def wanted() -> list[Observer]:
    """An audit, if the environment asks for one."""
    return [Audit()] if os.environ.get(VARIABLE) else []


class Audit(Observer):
    """Records the order."""

    name = "audit"

    def __init__(self) -> None:
        self.ranges: list[Range] = []

    def on_batch(self, batch: Batch) -> None:
        """More ranges, or the last one goes on."""
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
        """The ranges as plain data."""
        return [list(one) for one in self.ranges]

    def restore(self, state: Any) -> None:
        """Go on from them."""
        self.ranges = [Range(*one) for one in state]
