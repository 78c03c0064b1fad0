"""Events made up here: the same from any offset on, with the truth that they say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

import streamlearn as sl
from streamlearn.errors import SourceError
from streamlearn.stream import Clicks, Events, Fields, JSONDecoder, Partition, Synthetic
from streamlearn.stream.sources.clicks import COUNTRIES, DEVICES, KINDS, NUMERIC, delayed_clicks
from streamlearn.stream.sources.synthetic import PARTITION, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_is_its_number(kind: str) -> None:
    stream, again = Clicks(kind, seed=5), Clicks(kind, seed=5)
    values = stream.values(0, 200)
    assert [again.value(n) for n in reversed(range(200))] == values[::-1]
    assert len(set(values)) == 200
    assert values != Clicks(kind, seed=6).values(0, 200)
    assert stream.value((1 << 62) + 1)
    for value in values:
        assert isinstance(msgspec.json.decode(value), dict)
    assert 100 < sum(map(len, values)) / 200 < 250


def test_drift_changes_the_truth_and_nothing_before() -> None:
    still, moving = Clicks(seed=2), Clicks(seed=2, drift_at=1000)
    assert moving.values(0, 1000) == still.values(0, 1000)
    assert moving.truth(999) == still.truth() == still.truth(10**6)
    assert moving.truth(1000) != still.truth()
    after = [msgspec.json.decode(value)["clicked"] for value in moving.values(1000, 2000)]
    assert after != [msgspec.json.decode(value)["clicked"] for value in still.values(1000, 2000)]


@pytest.mark.parametrize("seed", range(4))
def test_drift_changes_what_matters_and_not_how_hard_it_is(seed: int) -> None:
    n = 200_000
    stream = Clicks(seed=seed, drift_at=n)
    before, after = stream.chances(0, n), stream.chances(n, n)
    noise = 5.0 / math.sqrt(n)
    assert after.mean() == pytest.approx(before.mean(), abs=noise)  # positives
    errors = [float(np.minimum(p, 1.0 - p).mean()) for p in (before, after)]  # nobody errs less
    assert errors[0] == pytest.approx(errors[1], abs=noise)
    truths = stream.truth(0), stream.truth(n)
    assert sorted(map(abs, truths[0].values())) == sorted(map(abs, truths[1].values()))
    same = [name for name, weight in truths[0].items() if truths[1].get(name) == weight]
    assert len(same) < 0.2 * len(truths[0])


def test_the_drift_is_a_symmetry_of_the_events() -> None:
    """Each name trades places with one of its range, which is as frequent; numbers are mirrored."""
    stream = Clicks(seed=7, drift_at=1)
    before, after = stream.truth(0), stream.truth(1)
    for name, weight in before.items():
        field, _, value = name.partition("=")
        if not value:
            assert after[name] == -weight
            continue
        letter = {"country": COUNTRIES, "device": DEVICES}.get(field)
        rank = letter.index(value) if letter else int(value[1:])
        start = 1 << (rank + 1).bit_length() - 1
        other = (rank + 1 - start + start // 2) % start + start - 1
        assert after[f"{field}={letter[other] if letter else value[0] + str(other)}"] == weight
    centers = {field: center for field, _, center in NUMERIC}
    moved = sum(after[name] * center for name, center in centers.items() if name in after)
    assert stream.intercept(1) == pytest.approx(stream.intercept(0) - 2.0 * moved)


def test_chances_are_those_of_truth_and_clicks() -> None:
    stream, n = Clicks(seed=3), 40_000
    chances = stream.chances(100, n)
    events = [msgspec.json.decode(value) for value in stream.values(100, n)]
    truth, clicks = stream.truth(), [event.pop("clicked") for event in events]
    for event, chance in zip(events[:200], chances, strict=False):
        score = stream.intercept()
        for name, value in event.items():
            is_text = isinstance(value, str)
            score += truth.get(f"{name}={value}" if is_text else name, 0.0) * (
                1.0 if is_text else value
            )
        assert chance == pytest.approx(1.0 / (1.0 + math.exp(-score)))
    spread = np.sqrt(np.sum(chances * (1.0 - chances)))
    assert abs(sum(clicks) - chances.sum()) < 4.0 * spread
    with pytest.raises(ValueError, match="spam"):
        Clicks("spam").chances(0, 1)


@pytest.mark.parametrize("kind", ["clicks", "spending", "spam"])
def test_the_truth_can_be_learned(kind: str) -> None:
    stream = Clicks(kind, seed=4)
    model = sl.LinearRegressor() if kind == "spending" else sl.LinearClassifier()
    events = Events()
    fields = Fields(label=stream.label, positive=("spam",) if kind == "spam" else None)
    decoder = JSONDecoder(model.reader, fields, [model])
    for start in range(0, 20_000, 5000):
        events.clear()
        decoder.decode(stream.values(start, 5000), events)
        assert not events.invalid
        model.progressive_events(events)
    truth = stream.truth()
    known = [(w, model.weights.get(name, 0.0)) for name, w in truth.items() if abs(w) > 0.4]
    agree = sum(math.copysign(1, w) == math.copysign(1, got) for w, got in known if got)
    assert agree > 0.85 * len(known)


def test_delayed_clicks_come_after_their_impressions() -> None:
    log = delayed_clicks(Clicks("impressions", seed=3), 5000, scale=1.0)
    assert log == sorted(log)
    seen, delays = {}, []
    for moment, topic, value in log:
        event = msgspec.json.decode(value)
        assert event["time"] == pytest.approx(moment, abs=1e-3)
        if topic == "impressions":
            seen[event["id"]] = event["time"]
        else:
            delays.append(event["time"] - seen[event["id"]])
    assert len(seen) == 5000
    assert 200 < len(delays) < 2000
    assert max(delays) > 20 * sorted(delays)[len(delays) // 2]


def test_a_source_resumes_at_its_position() -> None:
    stream = Clicks(seed=8)
    source = Synthetic(stream, events=100, batch=30)
    source.open({}, None)
    got: list[bytes | None] = []
    positions: dict[Partition, int] = {}
    while not source.ended():
        for records in source.poll(0.0):
            got.extend(records.values)
            positions[records.partition] = records.end
        again = Synthetic(stream, events=100, batch=7)
        again.open(positions, source.identity())
        assert again.lag() == source.lag() == {PARTITION: 100 - len(got)}
        assert [value for r in again.poll(0.0) for value in r.values] == stream.values(
            len(got), min(7, 100 - len(got))
        )
    assert got == stream.values(0, 100)
    assert source.poll(0.0) == []
    with pytest.raises(SourceError, match="seed=9"):
        Synthetic(stream).open({}, Synthetic(Clicks(seed=9)).identity())
    with pytest.raises(SourceError, match="event 101"):
        source.open({PARTITION: 101}, None)


def test_a_rate_limits_events() -> None:
    source = Synthetic(rate=1e-3)
    source.open({}, None)
    assert source.poll(0.0) == []
    fast = Synthetic(rate=1e9, events=10)
    fast.open({}, None)
    while not fast.ended():
        fast.poll(0.01)


def test_events_in_a_file(tmp_path: Path) -> None:
    write(tmp_path / "clicks.jsonl", Clicks(), 12_345, start=7)
    lines = (tmp_path / "clicks.jsonl").read_bytes().splitlines()
    assert lines == Clicks().values(7, 12_345)


@pytest.mark.parametrize(
    "wrong", [{"kind": "x"}, {"seed": -1}, {"seed": 1 << 63}, {"drift_at": -1}]
)
def test_invalid_arguments_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Clicks(**wrong)  # type: ignore[arg-type]
