"""The offsets of a time zone from UTC, as arrays that compiled code can search."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

FIRST = datetime(1900, 1, 1, tzinfo=UTC)
LAST = datetime(2100, 1, 1, tzinfo=UTC)
STEP = 5 * 86400  # less than between any two changes of an offset


@lru_cache(maxsize=64)
def offsets(name: str) -> tuple[Array, Array]:
    """Return the seconds since 1970 from which each offset holds, and the offsets in seconds.

    >>> starts, seconds = offsets("Europe/Berlin")
    >>> seconds[np.searchsorted(starts, 1_780_000_000, side="right") - 1]  # in summer
    np.int64(7200)
    """
    first, last = int(FIRST.timestamp()), int(LAST.timestamp())
    if name == "UTC":
        return np.array([first]), np.array([0])
    zone = ZoneInfo(name)

    def offset(second: int) -> timedelta | None:
        return datetime.fromtimestamp(second, zone).utcoffset()

    starts, found = [first], [offset(first)]
    for second in range(first + STEP, last + STEP, STEP):
        now = offset(second)
        if now != found[-1]:
            before = range(second - STEP, second)
            at = bisect_left(before, True, key=lambda second: offset(second) == now)
            starts.append(before.start + at)
            found.append(now)
    seconds = [0 if one is None else int(one.total_seconds()) for one in found]
    return np.array(starts, dtype=np.int64), np.array(seconds, dtype=np.int64)
