"""Times of events are seconds since 1970, in each format and unit, wherever the field is."""

from __future__ import annotations

import json
from typing import Any

import pytest

import streamlearn as sl
from streamlearn.features.fields.time import UNITS
from streamlearn.stream import Fields, decoder_of
from tests.support.formats import read

SECONDS = 1_767_619_800.5
ISO = "2026-01-05T13:30:00.5Z"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["at", "meta.at"])
@pytest.mark.parametrize("more", [{}, {"root": "data"}])
def test_times_of_json(unit: str, name: str, more: dict[str, Any]) -> None:
    number = round(SECONDS / UNITS[unit]) if unit != "s" else SECONDS
    records = []
    for value in (number, ISO, number):
        event: Any = {"at": value} if name == "at" else {"meta": {"at": value}}
        event = {"y": 1.0, **event, "x": 2.0}
        records.append(json.dumps({"data": event} if more else event).encode())
    fields = Fields(label="y", time=name, time_unit=unit, **more)
    events = read(decoder_of("json", sl.Names(), fields), records)
    assert not events.invalid
    assert events.times.tolist() == pytest.approx([SECONDS] * 3, abs=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_times_of_csv(unit: str) -> None:
    number = round(SECONDS / UNITS[unit]) if unit != "s" else SECONDS
    fields = Fields(label="y", time="at", time_unit=unit)
    made = decoder_of("csv", sl.Names(), fields, columns=["y", "at", "x"])
    records = [f"1,{value},2".encode() for value in (number, ISO, number)]
    events = read(made, records)
    assert not events.invalid
    assert events.times.tolist() == pytest.approx([SECONDS] * 3, abs=1e-6)


@pytest.mark.parametrize(("kind", "name"), [("json", "at"), ("json", "meta.at"), ("csv", "at")])
def test_a_time_of_another_unit_is_no_date(kind: str, name: str) -> None:
    fields = Fields(label="y", time=name)  # in seconds
    options: Any = {"columns": ["y", "at"]} if kind == "csv" else {}
    made = decoder_of(kind, sl.Names(), fields, **options)
    last = 253_402_300_799  # of the year 9999
    records = []
    for value in (SECONDS, 1000.0 * SECONDS, last, last + 1, -last, -1e15):
        event: Any = {"y": 1.0, **({"at": value} if name == "at" else {"meta": {"at": value}})}
        records.append(f"1,{value}".encode() if kind == "csv" else json.dumps(event).encode())
    events = read(made, records)
    assert [(bad.number, bad.code) for bad in events.invalid] == [(k, "time") for k in (1, 3, 5)]
    assert events.times.tolist() == pytest.approx([SECONDS, last, -last], abs=1e-6)
