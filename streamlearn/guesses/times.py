"""Times: which parts of the calendar are features."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.times import timestamp
from streamlearn.features.calendar import date_seconds
from streamlearn.features.fields import Time
from streamlearn.features.fields.time import ORDERS

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
DATE = re.compile(  # at least one part must show that the numbers are a date
    r"\s*(?:(?:\d{1,2}[./ -]+(?:\d{1,2}|[A-Za-z]{3,9})|[A-Za-z]{3,9} +\d{1,2})[.,/ -]+\d{4}"
    r"|\d{1,2}/\d{1,2}/\d\d|\d{1,2}-[A-Za-z]{3}-\d\d|\d{4}[./-]\d{1,2}[./-]\d{1,2})(?!\d)"
)
CHECKED = 500  # times that are parsed


def parts_of(seconds: Array, unit: Any = "s", order: Any = None) -> Time:
    """Return the field of times with the parts that recur in them."""
    days = not (seconds % DAY).any()
    month = float(np.ptp(seconds)) >= SEASONS
    return Time(hour=not days, weekday=True, month=month, unit=unit, order=order, invalid="missing")


def seconds_of(values: Sequence[Any]) -> Array | None:
    """Return the seconds since 1970 of some of these values; None unless they are times.

    >>> seconds_of(["1970-01-01", "1970-01-02 00:00:01"]), seconds_of(["1970-01"])
    (array([    0., 86401.]), None)
    """
    some = sample(values)
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


def sample(values: Sequence[Any]) -> Sequence[Any]:
    """Return some values, the first and the last one too.

    They are drawn at random, because times at equal distances may all be at midnight.
    """
    if len(values) <= CHECKED:
        return values
    drawn = np.random.default_rng(0).choice(len(values) - 2, CHECKED - 2, replace=False) + 1
    return [values[k] for k in [0, *sorted(drawn.tolist()), len(values) - 1]]


def ordered_dates(values: Sequence[Any]) -> tuple[Array, list[str]] | None:
    """Return the seconds since 1970 of dates that are not in ISO 8601, and their possible orders.

    Days come before months if there are points between them.

    >>> ordered_dates(["1.2.1970", "28.2.1970"]), ordered_dates(["1/2/1970"])[1]
    ((array([2678400., 5011200.]), ['dmy']), ['dmy', 'mdy'])
    """
    enough = 0.99 * len(values)
    if sum(isinstance(value, str) and DATE.match(value) is not None for value in values) < enough:
        return None
    found = {}
    for order in ORDERS:
        seconds = [date_seconds(value, order) for value in values]
        found[order] = np.array([one for one in seconds if one is not None], dtype=float)
    most = max(map(len, found.values()))
    if most < enough:
        return None
    orders = [order for order, read in found.items() if len(read) == most]
    return found[orders[0]], orders[:1] if "." in values[0] else orders
