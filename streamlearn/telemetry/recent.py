"""Curves over the last minutes, in wall time, whether events arrive or not."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from streamlearn.telemetry.history import short

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 300


class LastMinutes:
    """One point per second.

    >>> recent = LastMinutes(seconds=2)
    >>> for second in (1.0, 2.0, 3.0):
    ...     recent.add(second, {"rate": 10.0 * second})
    >>> recent.since(2)
    [{'time': 3.0, 'rate': 30.0}]
    """

    def __init__(self, seconds: int = SECONDS) -> None:
        self._points: deque[dict[str, Any]] = deque(maxlen=seconds)

    def add(self, time: float, values: Mapping[str, float | None]) -> None:
        """Add a point."""
        self._points.append(
            {"time": round(time, 1), **{name: short(value) for name, value in values.items()}}
        )

    def since(self, time: float) -> list[dict[str, Any]]:
        """Return the points after this time."""
        return [point for point in list(self._points) if point["time"] > time]
