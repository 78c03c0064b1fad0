"""Packed rows become the same events as their bytes, however they are cut, joined and ordered."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.engine.events import TYPES
from streamlearn.stream import Events, Fields, JSONDecoder, Partition, Records
from streamlearn.stream.formats.packed import PackedDecoder
from streamlearn.stream.packed_rows import Notes, PackedRows
from streamlearn.stream.polled import Polled

FIELDS = {
    "strings": Fields(label="y", weight="w", id="id", labels=("ham", "spam", "eggs", "tea")),
    "booleans": Fields(label="y", weight="w", id="id", time="t", labels=(False, True)),
    "positive": Fields(label="y", weight="w", positive=("spam",)),
}


def record(draw: random.Random, kind: str) -> bytes | None:
    if draw.random() < 0.1:
        return draw.choice([None, b"{", b'{"y": "other"}', b'{"x": NaN}'])
    event: dict[str, Any] = {f"x{draw.randrange(9)}": draw.random() for _ in range(3)}
    event["w"] = draw.choice([0, 1, 1, 2])
    event["id"], event["t"] = draw.choice(["", "é", "abc"]), draw.choice([1.5, 3])
    if draw.random() < 0.8:
        labels = [False, True] if kind == "booleans" else ["ham", "spam", "eggs", "tea"]
        event["y"] = draw.choice(labels)
    return json.dumps(
        {name: value for name, value in event.items() if draw.random() < 0.95}
    ).encode()


def contents(events: Events) -> Any:
    rows = [events.row_of(i) for i in range(len(events))]
    learned = events.learned_weights() > 0.0  # whether others have a label makes no difference
    labels = [events.label_of(i) for i in np.flatnonzero(learned).tolist()]
    arrays = [array.tolist() for array in events.packed()[5:] if array.dtype != np.float64]
    numbers = [events.weights.tolist(), repr(events.times.tolist()), events.starts.tolist()]
    counts = events.records, events.tombstones, events.byte_count, events.invalid
    return rows, labels, learned.tolist(), arrays, numbers, counts, events.classes


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("seed", range(8))
def test_packed_rows_are_the_events_of_their_bytes(kind: str, seed: int) -> None:
    draw, fields = random.Random(seed), FIELDS[kind]
    model = sl.LinearClassifier(features=sl.Hashing(8))
    plain = JSONDecoder(sl.Hashing(8), fields, [model])
    packed = PackedDecoder(sl.Hashing(8), fields, [model])
    there = [
        JSONDecoder(sl.Hashing(8), fields, [model]) for _ in range(3)
    ]  # labels in other orders
    for _ in range(6):
        bytes_of: list[Records] = []
        packed_of: list[Records] = []
        for number, decoder in enumerate(there):
            values = [record(draw, kind) for _ in range(draw.randrange(1, 12))]
            events = Events()
            decoder.decode(values, events)
            start = draw.randrange(len(values))
            stop = draw.randrange(start, len(values)) + 1
            ranks = np.sort(np.array(draw.sample(range(1000), stop - start)))
            ranked = [*range(stop - start)] if seed % 2 else ranks + number
            offsets = range(start, stop)
            for kept, form in (
                (bytes_of, values[start:stop]),
                (packed_of, PackedRows.of(values, events)[start:stop]),
            ):
                one = Records(Partition("t", number), offsets, form, stop)
                one.ranks = None if seed % 4 == 0 else np.asarray(ranked)
                kept.append(one)
        straight, rebuilt = Events(), Events()
        for own, polled, events in (
            (plain, Polled(bytes_of), straight),
            (packed, Polled(packed_of), rebuilt),
        ):
            own.decode(polled.values, events, polled.order)
        assert contents(rebuilt) == contents(straight)
        states = [packed.state(), plain.state()]
        for state in states:
            del state["labels"]["positive_seen"]  # the whole batch is in the notes
        assert states[0] == states[1]
        whole = Polled(packed_of).values
        assert isinstance(whole, PackedRows)
        there_are = [value for one in bytes_of for value in one.values]
        assert all(there_are[k] == value for k, value in whole.kept.items())
        assert len(whole.kept) == len(rebuilt.invalid)
        for bad in rebuilt.invalid:
            [k], [i] = Polled(packed_of).find(np.array([bad.number]))
            assert packed_of[k].values[i] == bytes_of[k].values[i]


def test_adopted_arrays_are_not_written() -> None:
    events = Events()
    events.add([(0, 1.0), (3, 2.0)], label=True, key=b"a")
    arrays = [array.copy() for array in events.packed()]
    for array in arrays:
        array.flags.writeable = False
    other = Events()
    other.adopt(arrays, records=1)
    assert other.packed()[2].ctypes.data == arrays[2].ctypes.data, "no copy"
    other.add([(1, 5.0)], label=False)
    assert other.row_of(0) == [(0, 1.0), (3, 2.0)]
    assert other.row_of(1) == [(1, 5.0)]
    other.adopt(arrays, records=1)
    other.clear()
    other.add([(2, 4.0)])
    assert other.row_of(0) == [(2, 4.0)]
    assert arrays[2].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("damaged", range(len(TYPES)))
def test_arrays_that_are_not_packed_rows_are_refused(damaged: int) -> None:
    events = Events()
    events.add([(0, 1.0)], label=True, key=b"a")
    arrays = [array.copy() for array in events.packed()]
    arrays[damaged] = np.append(arrays[damaged], arrays[damaged][:1])
    if damaged == 9:
        arrays[damaged] = arrays[damaged].astype(np.int16)
    with pytest.raises(ValueError, match="packed rows"):
        Events().adopt(arrays, records=1)


def test_notes_reach_the_labels_of_the_other_process() -> None:
    """What is logged of labels and fields is the same wherever records are decoded."""
    fields = Fields(label="y", positive=("ham", "tea", "3"))
    there, here = JSONDecoder(sl.Hashing(8), fields), PackedDecoder(sl.Hashing(8), fields)
    parts = []
    for values in ([b'{"y": "eggs", "a": 1}', b'{"y": "spam"}'], [b'{"y": "ham", "b": 1}']):
        there.decode(values, events := Events())
        parts.append(PackedRows.of(values, events, notes=Notes.of(there)))
    here.decode(PackedRows.joined(parts), Events())
    assert here.labels.positive_seen == there.labels.positive_seen == ["ham"]
    assert here.labels.positive_unseen == ["tea", "3"]
    assert here.labels.negative_values == there.labels.negative_values == ["eggs", "spam"]
    assert sorted(here.field_names()) == ["a", "b", "y"]
    here.decode(PackedRows.joined(parts)[1:], Events())  # without the notes
    assert sorted(here.field_names()) == ["a", "b", "y"]
