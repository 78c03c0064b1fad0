"""The join of delayed labels, compared with a plain reference on random streams."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.engine.events import Events
from streamlearn.estimators import model_file
from streamlearn.estimators.linear import LabeledRun
from streamlearn.late.corrections import Corrections
from streamlearn.late.join import Join
from streamlearn.late.joined_rows import CORRECTED
from streamlearn.stream import Fields, decoder_of
from tests.reference import late

WHAT = {0: "predict", 1: "learn", 2: "time out", 3: "correct"}


def key(number: int) -> bytes:
    """Return an id; some are long, and one is empty."""
    return b"%d." % number * (1 + number % 7) if number else b""


def row(draw: random.Random) -> list[tuple[int, float]]:
    values = [1.0, 1.0, 2.5, -1e300, 1e-300]
    slots = sorted(draw.sample(range(1000), draw.choice([0, 1, 3, 12])))
    return [(slot, draw.choice(values)) for slot in slots]


def random_records(seed: int, n: int, ids: int) -> list[tuple[Any, ...]]:
    """Return features and labels in any order, with duplicates, gaps and wrong clocks."""
    draw = random.Random(seed)
    found: list[tuple[Any, ...]] = []
    now = 0.0
    for i in range(n):
        now += draw.expovariate(1.0)
        if draw.random() < 0.002:
            now += draw.choice([50.0, 5000.0])  # a gap
        time = now
        lot = draw.random()
        if lot < 0.03:
            time = now + draw.choice([5.0, 50.0, 1e9])
        elif lot < 0.1:
            time = now - draw.choice([1.0, 30.0, 1e6])
        elif lot < 0.15:
            time = math.nan
        name = draw.randrange(max(i - ids, 0), i + 3)
        if draw.random() < 0.6:
            found.append(("features", key(name), row(draw), time, draw.choice([1.0, 1.0, 2.0])))
        else:
            found.append(("label", key(name), draw.choice([True, False, 0, 1.0, "odd", 3]), time))
    return found


def label_events(events: list[tuple[Any, ...]]) -> Events:
    """Return records as a decoder gives them."""
    batch = Events()
    for kind, name, said, time, *weight in events:
        if kind == "features":
            batch.add(said, None, weight[0], time, name, known=1000)
        else:
            batch.add([], said, 1.0, time, name, known=1000)
    return batch


def steps(join: Join, batch: Events) -> list[tuple[Any, ...]]:
    """Return the rows of a batch."""
    join.clear()
    join.add_events(batch)
    rows = join.rows
    return [
        (WHAT[role], rows.id_of(i), rows.row_of(i), rows.label_of(i), float(rows.weights[i]))
        for i, role in enumerate(rows.roles.tolist())
    ]


SETTINGS: list[tuple[Any, ...]] = [
    (1, math.inf, "drop", False),
    (50, 40.0, False, False),
    (50, 40.0, False, True),
    (7, 400.0, "odd", True),
    (100_000, 25.0, "drop", False),
    (100_000, math.inf, 3, False),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_join_equals_the_reference(settings: tuple[Any, ...]) -> None:
    hold_events, hold_for, on_timeout, corrections = settings
    for seed in range(2):
        events = random_records(seed, 1000, 60)
        plain = late.Join(hold_events, hold_for, on_timeout, corrections=corrections)
        for kind, *facts in events:
            getattr(plain, kind)(*facts)
        join = Join(hold_events, hold_for, on_timeout, corrections)
        draw, at = random.Random(seed), 0
        found = []
        while at < len(events):
            stop = at + draw.choice([1, 7, 200])
            found += steps(join, label_events(events[at:stop]))
            at = stop
            if draw.random() < 0.1:  # as after a restart
                state = model_file.unpack(model_file.pack(join.state()))
                join = Join(hold_events, hold_for, on_timeout, corrections)
                join.restore(state)
        # A row of a timeout has no id, because it is not needed.
        assert found == [
            (what, None if what == "time out" else name, *said) for what, name, *said in plain.steps
        ]
        assert join.counts == plain.counts
        assert join.held == len(plain.pending)
        assert join.counts["joined"] == int(join.delays.sum())


def test_segments_are_merged() -> None:
    """With several segments, of which few or many entries stay."""
    draw = random.Random(1)
    join, open_ids, rows = Join(1_000_000), {}, 0
    kept = []
    for step in range(60):
        if step % 7 == 3:
            state = join.state()
            kept.append((state, model_file.pack(state)))
        batch = Events()
        for i in range(1000):
            number = 1000 * step + i
            open_ids[number] = features = row(draw)
            batch.add(features, None, 1.0, float(step), key(number), known=1000)
        steps(join, batch)
        # Most are resolved soon, in any order, and one in fifty never is.
        going = [k for k in open_ids if k % 50 and draw.random() < 0.4]
        batch = Events()
        for number in going:
            batch.add([], True, 1.0, float(step), key(number), known=1000)
        for what, name, features, label, _ in steps(join, batch):
            number = going[rows % len(going)]
            rows += 1
            assert (what, name, label) == ("learn", key(number), True)
            assert features == open_ids[number]
        rows = 0
        for number in going:
            del open_ids[number]
        assert join.held == len(open_ids)
    live = len(open_ids)
    # Segments are merged, but bytes that states share do not change.
    assert all(model_file.pack(state) == packed for state, packed in kept)
    # An event of six features takes about 120 bytes; dead entries may take as much as live ones,
    # and 2 MB more.
    assert join.pending.__sizeof__() < 150 * (2 * live + 20_000) < 150 * 60_000
    state = join.state()
    again = Join(1_000_000)
    again.restore(pickle.loads(pickle.dumps(state)))
    batch = Events()
    for number in open_ids:
        batch.add([], False, 1.0, 25.0, key(number), known=1000)
    left = steps(again, batch)
    assert [(name, features) for _, name, features, *_ in left] == [
        (key(number), features) for number, features in open_ids.items()
    ]
    assert again.held == 0


def test_events_larger_than_a_segment() -> None:
    """Together with small ones, and after a restore."""
    join, batch = Join(1000), Events()
    large = [(slot, 0.5 * slot) for slot in range(100_000)]
    given = {b"%d" % i: large if i % 10 == 5 else [(i, 1.0)] for i in range(30)}
    for name, features in given.items():
        batch.add(features, key=name)
    steps(join, batch)
    again = Join(1000)
    again.restore(model_file.unpack(model_file.pack(join.state())))
    batch.clear()
    for name in given:
        batch.add([], True, key=name)
    for one in (join, again):
        assert {name: features for _, name, features, *_ in steps(one, batch)} == given
        assert one.held == 0


def test_memory_of_large_events_is_freed() -> None:
    """Even if a few small events of each segment stay, and the next segment is full."""
    join, small, large = Join(100_000), [(0, 1.0)] * 500, [(0, 0.5)] * 200_000
    label_events, given = Events(), Events()
    for i in range(20):
        given.clear()
        given.add(small, key=b"beside %d" % i)
        given.add(large, key=b"large %d" % i)
        for k in range(300):  # as much as a segment
            given.add(small, key=b"full %d %d" % (i, k))
        steps(join, given)
        label_events.add([], True, key=b"large %d" % i)
    steps(join, label_events)
    for k in range(3000):  # compaction is checked from time to time
        given.clear()
        given.add([], key=b"%d" % k)
        given.add([], True, key=b"%d" % k)
        steps(join, given)
    assert join.held == 20 * 301
    # Dead entries may take as much as live ones, and 2 MB and a segment more.
    left = join.held * (4 * len(small) + 150)
    assert sum(segment["data"].nbytes for segment in join.state()["pending"]) < 2 * left + 3e6


def test_entry_outside_its_segment_is_refused() -> None:
    join, batch = Join(10), Events()
    batch.add([(0, 1.0)], key=b"a")
    steps(join, batch)
    state = join.state()
    state["pending"][0]["data"] = state["pending"][0]["data"][:-8]
    with pytest.raises(ValueError, match="segment"):
        Join(10).restore(state)


def test_state_does_not_change_later() -> None:
    join = Join(100_000, 1e6)
    events = random_records(5, 12_000, 5000)
    steps(join, label_events(events[:9000]))
    join.clear()
    state = join.state()
    packed = model_file.pack(state)
    steps(join, label_events(events[9000:]))
    assert model_file.pack(state) == packed


def test_clock_ignores_single_outliers() -> None:
    """A record ahead of time expires at most one event; ten records move the clock."""

    def waits(times: list[float]) -> int:
        join = Join(1000, 60.0)
        for i, time in enumerate([*range(20), *times]):
            join.add_event(sl.Names(), {"a": 1}, b"%d" % i, time, 1.0)
        return 20 + len(times) - join.counts["timed_out"]

    far = 4e9
    assert waits([far]) == 21
    assert waits([far, 20.0, far, 21.0] * 20) == 100
    assert waits([far] * 9) == 29
    # The tenth record confirms the time: the first twenty events expire, the ten stay.
    assert waits([far + i for i in range(10)]) == 10
    # Normal progress of time.
    assert waits([20.0 + i for i in range(60)]) == 60
    # A single record from the future does not stop the clock forever.
    late_records = [30.0 + 0.001 * i for i in range(3000)]
    join = Join(10_000, 60.0)
    for i, time in enumerate([far, *late_records]):
        join.add_event(sl.Names(), {"a": 1}, b"%d" % i, time, 1.0)
    assert join.clock.now < 100.0
    join = Join(10_000, 60.0)
    times = [*range(20), *([far] * 10), *late_records]
    for i, time in enumerate(times):
        join.add_event(sl.Names(), {"a": 1}, b"%d" % i, time, 1.0)
    assert join.clock.now < 100.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"hold_events": 0},
        {"hold_events": 1.5},
        {"hold_events": 10, "hold_for": 0},
        {"hold_events": 10, "hold_for": math.nan},
        {"hold_events": 10, "on_timeout": None},
        {"hold_events": 10, "corrections": True},
    ],
)
def test_invalid_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"hold|timeout|corrections"):
        Join(**wrong)


def test_records_without_id_or_label_are_invalid() -> None:
    join, batch = Join(10), Events()
    batch.add([(0, 1.0)])
    batch.add([(0, 1.0)], key=b"a")
    join.add_events(batch)
    assert [bad.number for bad in batch.invalid] == [0]
    batch.clear()
    batch.add([], True)
    batch.add([], None, key=b"a")
    join.add_records(Events(), batch, np.ones(len(batch), bool))
    assert [bad.number for bad in batch.invalid] == [0, 1]
    assert join.held == 1


@pytest.mark.parametrize("corrections", [False, True])
def test_hold_bytes_bounds_memory(corrections: bool) -> None:
    """Large events are evicted long before `hold_events` is reached."""
    join = Join(1000, None, False, corrections, True, hold_bytes=1 << 20)
    for i in range(300):
        events = Events()
        events.add([(slot, 2.5) for slot in range(1000)], key=b"e%d" % i)
        events.add([], True, key=b"early%d" % i)
        join.add_records(events, Events(), np.zeros(2, bool), [b"x" * 5000] * 2)
        assert sum(len(one["data"]) for one in join.pending.state()) < 4 << 20
        assert sum(len(one["data"]) for one in join.timeouts.events.state()) < 5 << 20
        join.clear()
    assert 100 < join.held < 200
    assert join.evicted == 600 - join.held
    again = Join(1000, None, False, corrections, True, hold_bytes=1 << 20)
    again.restore(model_file.unpack(model_file.pack(join.state())))
    assert again.held == join.held


def test_an_entry_may_pass_the_limit_of_bytes() -> None:
    """The oldest ones are evicted before the next one is held, until the rest is within it."""

    def held(limit: int, count: int) -> Join:
        join = Join(1000, None, False, False, True, hold_bytes=limit)
        for i in range(count):
            events = Events()
            events.add([(slot, 2.5) for slot in range(50)], key=b"e%d" % i)
            join.add_events(events)
        return join

    size = sum(len(one["data"]) for one in held(1 << 20, 3).pending.state()) // 3
    assert [held(limit, 9).held for limit in (2 * size - 1, 2 * size, 3 * size)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("scores", "start", "stored"),
    [
        (np.zeros((2, 1)), 2, np.zeros((3, 1))),  # rows that are not there
        (np.zeros((1, 1)), -1, np.zeros((3, 1))),
        (np.zeros((3, 1)), 0, np.zeros((2, 1))),  # a ticket beyond the scores
        (np.zeros((3, 1)), 0, np.zeros((3, 2))),
        (np.zeros((3, 1), np.float32), 0, np.zeros((3, 1))),
        (np.zeros((1, 3)).T[::1], 0, np.zeros((6, 1))[::2]),
    ],
)
def test_scores_are_exchanged_for_rows_that_are_there(scores: Any, start: int, stored: Any) -> None:
    join = Join(10)
    for i in range(3):
        events = Events()
        events.add([(0, 1.0)], key=b"e%d" % i)
        join.add_events(events)
    assert join.rows.tickets.tolist() == [0, 1, 2]
    with pytest.raises(ValueError):  # noqa: PT011 - its words do not matter
        join.rows.exchange(scores, start, stored)
    join.rows.exchange(np.ones((3, 1)), 0, np.zeros((3, 1)))


def test_the_delay_of_a_label_without_a_time_is_that_of_its_arrival() -> None:
    join, reader = Join(10), sl.Names()
    for name, time in ((b"a", 1000.0), (b"b", 1030.0)):
        join.add_event(reader, {"x": 1.0}, name, time, 1.0)
    join.add_label(True, b"a", math.nan)
    assert join.delay_total == 30.0
    join.add_label(True, b"b", 1037.0)
    assert join.delay_total == 37.0


def test_resolved_ids_are_forgotten_by_blocks() -> None:
    """An id is known as resolved for `hold_for`, through many blocks and a resume."""
    join, reader = Join(10_000, hold_for=100.0), sl.Names()
    for i in range(20_000):
        now = 0.02 * i
        join.add_event(reader, {"x": 1.0}, b"e%d" % i, now, 1.0)
        join.add_label(True, b"e%d" % i, now)
        if i == 9_000:
            again = Join(10_000, hold_for=100.0)
            again.restore(model_file.unpack(model_file.pack(join.state())))
            join = again
    assert (join.joined, join.held, join.duplicates) == (20_000, 0, 0)
    for k in (19_999, 15_100):
        join.add_label(True, b"e%d" % k, now)
    assert (join.duplicates, join.held) == (2, 0)
    for k in range(0, 15_000, 700):
        join.add_label(True, b"e%d" % k, now)
    assert (join.duplicates, join.held) == (2, 22)
    assert sum(len(one["tags"]) for one in join.state()["resolved"]) < 5_000 + 2 * 4096


def test_large_integer_ids_are_distinct() -> None:
    join = Join(10)
    decoder = decoder_of("json", sl.Names(), Fields(id="id"), grow_always=True)
    decoder.decode([b'{"id": %d, "x": 1}' % one for one in (2**53, 2**53 + 1)], events := Events())
    join.add_events(events)
    labels = [b'{"id": %d, "label": %d}' % (one, one) for one in (2**53 + 1, 2**53)]
    decoder.decode(labels, label_events := Events())
    join.add_records(Events(), label_events, np.ones(len(label_events), bool))
    assert (join.joined, join.held) == (2, 0)
    assert [join.rows.label_of(i) for i in range(2, len(join.rows))] == [2**53 + 1, 2**53]


def test_orphans_are_kept_after_the_option_changes() -> None:
    """Labels held before have no origin; they are only counted."""
    join = Join(2)
    batch = Events()
    batch.add([], True, key=b"a")
    join.add_records(Events(), batch, np.array([True]), None)
    later = Join(2, keep_orphans=True)
    later.restore(join.state())
    batch.clear()
    for key in (b"b", b"c", b"d"):
        batch.add([], True, key=key)
    later.add_records(Events(), batch, np.array([True] * 3), [b"of b", b"of c", b"of d"])
    assert later.counts["orphaned"] == 2
    assert later.orphans == [b"of b"]


@pytest.mark.parametrize(("before", "corrected"), [(False, 1), (True, 0), (0, 0), (0.0, 0)])
def test_timeouts_with_another_label_are_not_corrected(before: Any, corrected: int) -> None:
    """The label that a correction would undo is not the one that was learned."""
    join = Join(10, 5.0, before, corrections=True)
    join.add_event(sl.Names(), {"a": 1.0}, b"a", 0.0, 1.0)
    join.add_event(sl.Names(), {"a": 1.0}, b"b", 6.0, 1.0)
    assert join.counts["timed_out"] == 1
    later = Join(10, 5.0, False, corrections=True)
    join.clear()
    later.restore(model_file.unpack(model_file.pack(join.state())))
    later.add_label(True, b"a", 7.0)
    later.add_label(True, b"a", 8.0)
    assert later.counts["corrected"] == corrected
    assert later.counts["duplicates"] == 2 - corrected
    later.clear()
    # No ticket is lost: b has one, and that of a is reused.
    later.add_event(sl.Names(), {"a": 1.0}, b"c", 9.0, 1.0)
    assert later.tickets == 2


def test_timeout_that_diverged_is_not_undone() -> None:
    """Even if the previous event of its ticket has a stored score."""
    join = Join(10, 5.0, False, corrections=True)
    corrections, reader = Corrections(False), sl.Names()
    corrections.scores = np.full((4, 1), np.nan)

    def learn(score: float) -> None:
        rows = join.rows
        part = LabeledRun(0, len(rows), rows.labels, None, np.full((len(rows), 1), score))
        corrections.note(rows, part, 0, len(rows))
        join.clear()

    def correct(name: bytes, time: float) -> float:
        join.add_label(True, name, time)
        row = int(np.flatnonzero(join.rows.roles == CORRECTED)[0])
        return float(corrections.scores[join.rows.tickets[row], 0])

    join.add_event(reader, {"a": 1.0}, b"a", 0.0, 1.0)
    learn(0.5)
    join.add_event(reader, {"a": 1.0}, b"b", 6.0, 1.0)
    learn(0.7)
    assert correct(b"a", 7.0) == 0.7
    join.clear()
    join.add_event(reader, {"a": 1.0}, b"c", 8.0, 1.0)
    learn(0.5)
    assert join.tickets == 2
    for name, time in ((b"d", 11.5), (b"e", 13.5)):  # b and c time out
        join.add_event(reader, {"a": 1.0}, name, time, 1.0)
        learn(math.nan)
    assert math.isnan(correct(b"c", 14.0))


def test_other_layout_is_refused() -> None:
    join = Join(10)
    state = join.state()
    del state["layout"]
    with pytest.raises(sl.ModelFileError, match="reset"):
        join.restore(state)
