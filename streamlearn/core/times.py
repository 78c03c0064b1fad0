"""Times in ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(time: str | datetime) -> float:
    """Return the seconds since 1970; a time without a zone is in UTC.

    >>> timestamp("1970-01-01T00:00:02Z"), timestamp("1970-01-01 02:00:02+02:00")
    (2.0, 2.0)
    """
    moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
