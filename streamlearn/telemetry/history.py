"""Curves over a model's lifetime in bounded memory.

A point is added every `stride` events. When there are too many, every second point is dropped and
the stride doubles, so the points always cover the whole lifetime evenly.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_POINTS = 600  # half of them remain after thinning
MAX_COLUMNS = 400  # series; further ones are not recorded
EVENTS, TIME = "events", "time"


def short(value: float | None) -> float | None:
    """Round to six digits, enough for a curve; None if not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def every_second(column: list[Any]) -> list[Any]:
    """Return every second point, or the next one where it is None.

    >>> every_second([1, 2, None, 4, 5])
    [1, 4, 5]
    """
    nexts = [*column[1::2], None]
    pairs = zip(column[::2], nexts, strict=False)
    return [after if value is None else value for value, after in pairs]


class History:
    """Points of many series at the same events.

    >>> history = History(max_points=4)
    >>> for events in range(1, 10):
    ...     _ = history.due(events) and history.add(events, 0.0, {"loss": 1.0 / events})
    >>> history.stride, history.columns["events"]
    (4, [1, 5, 9])
    """

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self.max_points = max_points
        self.stride = 1
        self.columns: dict[str, list[Any]] = {EVENTS: [], TIME: []}
        self._lock = threading.Lock()  # the HTTP thread reads

    def __len__(self) -> int:
        return len(self.columns[EVENTS])

    def due(self, events: int) -> bool:
        """Return whether a point is due."""
        past = self.columns[EVENTS]
        return not past or events >= past[-1] + self.stride

    def add(self, events: int, time: float, values: Mapping[str, float | None]) -> None:
        """Add a point."""
        with self._lock:
            self._add({EVENTS: events, TIME: round(time, 1)}, values)

    def _add(self, known: Mapping[str, Any], values: Mapping[str, float | None]) -> None:
        for name in values:
            if name not in self.columns and len(self.columns) < MAX_COLUMNS:
                self.columns[name] = [None] * len(self)
        for name, column in self.columns.items():
            column.append(known[name] if name in known else short(values.get(name)))
        while len(self) >= self.max_points:
            self._thin()

    def _thin(self) -> None:
        self.columns = {name: every_second(column) for name, column in self.columns.items()}
        past = self.columns[EVENTS]
        self.stride = max(2 * self.stride, 2 * (past[-1] - past[0]) // self.max_points)

    def snapshot(self, after: int = -1, stride: int = 0) -> dict[str, Any]:
        """Return the points after so many events, or all if the client's stride is outdated."""
        with self._lock:
            start = bisect_right(self.columns[EVENTS], after) if stride == self.stride else 0
            columns = {name: column[start:] for name, column in self.columns.items()}
            return {"stride": self.stride, "whole": start == 0, "life": columns}

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {
            "stride": self.stride,
            "columns": {
                name: np.array(column, dtype=float) for name, column in self.columns.items()
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a checkpoint's state."""
        columns = {name: column.tolist() for name, column in state["columns"].items()}
        if not {EVENTS, TIME} <= columns.keys() or len({len(c) for c in columns.values()}) != 1:
            raise ValueError("history: columns have different lengths or no events or time")
        with self._lock:
            self.stride = max(int(state["stride"]), 1)
            self.columns = {
                name: [None if math.isnan(value) else value for value in column]
                for name, column in columns.items()
            }
            self.columns[EVENTS] = [int(value) for value in columns[EVENTS]]
