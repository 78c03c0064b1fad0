"""Dates that are not in ISO 8601: what Python's strftime writes is the same time as in ISO 8601."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn.features.calendar import date_seconds

EXAMPLES = settings(derandomize=True, max_examples=200, deadline=None, database=None)
DATES = {
    "dmy": ["%d.%m.%Y", "%d/%m/%y", "%d-%m-%Y", "%d %b %Y", "%d-%B-%y", "%d %m %Y", "%d. %B %Y"],
    "mdy": ["%m/%d/%Y", "%m/%d/%y", "%b %d, %Y", "%B %d %Y", "%m-%d-%Y"],
    "ymd": ["%Y/%m/%d", "%Y.%m.%d", "%y/%m/%d", "%Y-%b-%d", "%Y-%m-%d"],
}
CLOCKS = ["", " %H:%M", "T%H:%M:%S", ", %I:%M %p", " %I:%M:%S%p", " %H:%M:%S.%f", " %H:%M%z"]
moments = st.datetimes(
    datetime(1969, 1, 2),  # noqa: DTZ001 - Hypothesis adds the zone
    datetime(2068, 12, 30),  # noqa: DTZ001 - the same
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))]),
)
orders = st.sampled_from(sorted(DATES))


def features(value: Any, **field: Any) -> list[str]:
    time = sl.fields.Time(hour=True, weekday=True, month=True, **field)
    names = sl.Names(fields={"t": time})
    return [str(names.names()[slot]) for slot, _ in names.read_event({"t": value})]


@EXAMPLES
@given(moments, orders, st.data(), st.booleans())
def test_what_python_writes_is_read(moment: datetime, order: str, data: Any, padded: bool) -> None:
    form = data.draw(st.sampled_from(DATES[order])), data.draw(st.sampled_from(CLOCKS))
    text = moment.strftime("".join(form))
    if not padded and "%y" not in form[0]:
        text = text.removeprefix("0").replace("/0", "/").replace(" 0", " ")
    if "%z" not in form[1]:
        moment = moment.replace(tzinfo=UTC)
    if not form[1]:
        moment = moment.replace(hour=0, minute=0, second=0)
    assert features(f" {text} ", order=order) == features(moment)
    assert features(moment.isoformat(), order=order) == features(moment)
    seconds = int(moment.replace(microsecond=0).timestamp())
    assert date_seconds(text, order) in {seconds, seconds - moment.second}


@EXAMPLES
@given(st.dates(datetime(1900, 1, 1).date(), datetime(2099, 12, 31).date()))  # noqa: DTZ001 - a day
def test_dates_that_are_numbers(day: Any) -> None:
    number = int(f"{day:%Y%m%d}")
    for value in (number, float(number), str(number)):
        assert features(value, order="ymd") == features(day)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("31.02.2026", "dmy"),
        ("1.13.2026", "dmy"),
        ("13/1/2026", "mdy"),
        ("0.1.2026", "dmy"),
        ("1.1.126", "dmy"),
        ("1.1.2026.1", "dmy"),
        ("1 Janus 2026", "dmy"),
        ("1 Ja 2026", "dmy"),
        ("Jan 1 2026", "dmy"),
        ("1.1.2026 24:00", "dmy"),
        ("1.1.2026 1:60", "dmy"),
        ("1.1.2026 13:00 PM", "dmy"),
        ("1.1.2026 0:30 AM", "dmy"),
        ("1.1.2026 noon", "dmy"),
        ("1.1.2026 1:00 +1", "dmy"),
        ("1.1.2026T", "dmy"),
        ("1.1.1899", "dmy"),
        ("1.1.2100", "dmy"),
        ("", "dmy"),
        ("2026/1/32", "ymd"),
        ("20261301", "ymd"),
        ("1700000000", "ymd"),
        ("31.12.2026", None),
    ],
)
def test_what_is_no_date_is_refused(text: str, order: Any) -> None:
    with pytest.raises(sl.InvalidEventError) as caught:
        features(text, order=order)
    assert caught.value.field == "t"


@pytest.mark.parametrize(
    "value",
    [
        pd.NaT,
        datetime(1899, 12, 31, tzinfo=UTC),
        date.min,
        date.max,
        pd.Timestamp.max,
        float("inf"),
    ],
    ids=str,
)
def test_a_time_that_is_none_or_out_of_range_is_refused(value: Any) -> None:
    with pytest.raises(sl.InvalidEventError) as caught:
        features(value)
    assert caught.value.field == "t"
    assert features(None) == []


@EXAMPLES
@given(st.text("0123456789./-, :APMTJanZ+", max_size=24), orders)
def test_any_text_is_read_or_not(text: str, order: Any) -> None:
    found = date_seconds(text, order)
    assert found is None or -62135596800 <= found < 253402300800 + 86400


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="dmy"):
        sl.fields.parse("time(order=dym)")
