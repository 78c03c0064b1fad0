"""Times with one character changed: read as Python and a plain grammar read them, or refused."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import streamlearn as sl
from streamlearn.core.times import timestamp
from streamlearn.features.calendar import date_seconds
from tests.reference import csv_text

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST, LAST = timestamp("1900-01-01"), timestamp("2100-01-01")
# fmt: off
MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
]
# fmt: on


def damaged(text: str, signs: str) -> Iterator[str]:
    """The text, and the text with a character inserted, replaced or removed, at each place."""
    yield text
    for i in range(len(text) + 1):
        yield text[:i] + text[i + 1 :]
        for sign in signs:
            yield text[:i] + sign + text[i:]
            yield text[:i] + sign + text[i + 1 :]


# ISO 8601, of which the usual forms are read without Python


def parts(seconds: float) -> set[str]:
    moment = datetime.fromtimestamp(seconds, UTC)
    return {f"t.hour={moment.hour}", f"t.weekday={moment:%a}".lower(), f"t.month={moment.month}"}


def of_python(text: str) -> set[str] | None:
    """A number of seconds, or what `datetime.fromisoformat` reads; it may end in a small z, too."""
    text = text.strip()
    text = f"{text[:-1]}Z" if text.endswith("z") else text
    seconds = csv_text.number(text)
    try:
        seconds = math.floor(timestamp(text) if seconds is None else seconds)
    except (ValueError, OverflowError):
        return None
    return parts(seconds) if FIRST <= seconds < LAST else None


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31",
        "2026-01-31T13:05",
        "2026-02-28 23:59:59",
        "2024-02-29T00:00:00.123456Z",
        "1999-12-31T23:30:09+01:00",
        "2000-03-01t05:06:07.5-0530",
        "2099-11-30T05:06+23",
        "1700000000",
        "-1.5e9",
    ],
)
def test_times_are_those_of_python(text: str) -> None:
    names = sl.Names(fields={"t": "time(hour, weekday, month)"})
    for one in damaged(text, "0123459-+:.eTtZz ,x/"):
        try:
            found = {str(names.name_of(slot)) for slot, _ in names.read_event({"t": one})}
        except sl.InvalidEventError:
            assert of_python(one) is None, one
        else:
            assert found == of_python(one), one


# Other orders of a date's parts

SPELLED = "|".join(name[:n] for name in MONTHS for n in range(len(name), 2, -1))
PART = {
    "d": r"(?P<d>\d{1,2})",
    "m": rf"(?P<m>\d{{1,2}}|(?:{SPELLED})(?![a-z]))",
    "y": r"(?P<y>\d{4}|\d\d)",
}
CLOCK = re.compile(
    r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(?=.)\d*)?)? *"
    r"(?:([AP])M|(Z|[+-]\d\d(?::?\d\d)?))?",
    re.IGNORECASE | re.ASCII,
)


def of_grammar(text: str, order: str) -> int | None:
    """The seconds of a date whose parts have this order."""
    date = r"[./\-, ]+".join(PART[part] for part in order)
    form = rf"{date}(?:(?:T|[ ,]+)(?P<clock>.*))?"
    found = re.fullmatch(form, text, re.IGNORECASE | re.ASCII)
    if found is None:
        return None
    month, year = found["m"].lower(), int(found["y"])
    if not month.isdigit():
        month = 1 + next(k for k, name in enumerate(MONTHS) if name.startswith(month))
    if len(found["y"]) == 2:
        year += 2000 if year < 69 else 1900
    try:
        day = datetime(year, int(month), int(found["d"]), tzinfo=UTC)
    except ValueError:
        return None
    clock = 0 if found["clock"] is None else of_clock(found["clock"])
    return None if clock is None else int(day.timestamp()) + clock


def of_clock(text: str) -> int | None:
    found = CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.group(1, 2, 3))
    if found[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[4] in "pP" else 0)
    zone = (found[5] or "+00").upper().replace(":", "").replace("Z", "+00")
    hours, minutes = int(zone[1:3]), int(zone[3:] or 0)
    if max(hour, hours) > 23 or max(minute, second, minutes) > 59:
        return None
    ahead = 3600 * hours + 60 * minutes
    return 3600 * hour + 60 * minute + second - (ahead if zone[0] == "+" else -ahead)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("31.1.2026", "dmy"),
        ("1/12/68 1:05 PM", "dmy"),
        ("29 Feb 2024, 13:05:59.5+01:00", "dmy"),
        ("3-september-69T23:59", "dmy"),
        ("12/31/2026 12:00 AM", "mdy"),
        ("Sept 9, 2026 9:5:7", "mdy"),
        ("2-28-99 00:00Z", "mdy"),
        ("2026/1/31", "ymd"),
        ("1999.12.31 05:06:07 -0530", "ymd"),
        ("2000 Dec 1T1:2", "ymd"),
    ],
)
def test_dates_follow_the_grammar(text: str, order: str) -> None:
    for one in damaged(text, "0123456789-+:.TPMaZz ,x/"):
        assert date_seconds(one, order) == of_grammar(one.strip(), order), one
