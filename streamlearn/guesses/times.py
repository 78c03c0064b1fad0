"""Times: which parts of the calendar are features."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.times import timestamp
from streamlearn.features.fields import Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.core.arrays import Array

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SECONDS = (
    datetime(1990, 1, 1, tzinfo=UTC).timestamp(),
    datetime(2060, 1, 1, tzinfo=UTC).timestamp(),
)
DAY = 86_400.0
SEASONS = 400 * DAY  # in a shorter time a month stands for a date, which does not come back
ISO = re.compile(r"\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?\s*")
CHECKED = 500  # times that are parsed


def parts_of(seconds: Array, unit: Any = "s") -> Time:
    """Return the field of times with the parts that recur in them."""
    days = not (seconds % DAY).any()
    month = float(np.ptp(seconds)) >= SEASONS
    return Time(hour=not days, weekday=True, month=month, unit=unit, invalid="missing")


def seconds_of(values: Sequence[Any]) -> Array | None:
    """Return the seconds since 1970 of some of these values; None unless they are times.

    >>> seconds_of(["1970-01-01", "1970-01-02 00:00:01"]), seconds_of(["1970-01"])
    (array([    0., 86401.]), None)
    """
    some = values[:: max(len(values) // CHECKED, 1)]
    found = []
    for value in some:
        try:
            if isinstance(value, date) and not isinstance(value, datetime):
                found.append(datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp())
            elif isinstance(value, datetime) or ISO.fullmatch(value):
                found.append(timestamp(value.strip() if isinstance(value, str) else value))
        except (TypeError, ValueError, OverflowError):
            continue
    return np.array(found) if found and len(found) >= 0.99 * len(some) else None
