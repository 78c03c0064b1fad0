"""JSON read straight from bytes: the same rows as through Python objects, or refused as those."""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn.errors import InvalidEventError
from streamlearn.stream import Clicks, Events, Fields, JSONDecoder
from streamlearn.stream.sources.clicks import KINDS

EXAMPLES = settings(derandomize=True, max_examples=60, deadline=None, database=None)
INTERACTIONS = {"a^b": "interaction", "b.a^c": "interaction"}
ONLY = {"b.a": "auto", "c": "auto", "*": "ignore"}
FIELDS: list[tuple[Fields, dict[str, str]]] = [
    (Fields(), {}),
    (Fields(label="a", weight="b", id="c", time="d"), {}),
    (Fields(label="b.a", weight="b.b", ignored=("a", "b.c"), time_unit="ms"), {}),
    (Fields(label="b.a", weight="b.b", time_unit="ms"), {"a": "ignore", "b.c": "ignore"}),
    (Fields(label="a", positive=("x", 1)), ONLY),
    (Fields(label="a", labels=("x", "y", 1), weight="w", id="b.a"), {}),
]


class Slow:
    """What a record means: msgspec's objects, read like any event."""

    def __init__(self, reader: Any, fields: Fields) -> None:
        self.reader, self.fields = reader, fields

    def outcome(self, record: bytes) -> Any:
        """The event of a record; None if it is refused."""
        try:
            return self.read(msgspec.json.decode(record))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        except (InvalidEventError, AttributeError):
            return None

    def read(self, event: Any) -> Any:
        features, roles = self.fields.split(event)
        weight = roles.get("weight")
        weight = 1.0 if weight is None else weight
        if isinstance(weight, bool | str | list | dict) or not 0 <= weight < math.inf:
            raise InvalidEventError("weight")
        try:
            weight = float(weight)
        except OverflowError:
            raise InvalidEventError("weight") from None
        label = roles.get("label")
        if isinstance(label, list | dict):
            raise InvalidEventError("label")
        label = self.checked(label, weight)
        key = roles.get("id")
        if isinstance(key, bool | float | list | dict):
            raise InvalidEventError("id")
        time = roles.get("time")
        if isinstance(time, bool | str | list | dict):
            raise InvalidEventError("time")
        if isinstance(time, int) and abs(time) > 10**300:
            raise InvalidEventError("time")
        moment = math.nan if time is None else time * (1e-3 if self.fields.time_unit == "ms" else 1)
        if abs(moment) >= 253_402_300_800:  # no date; NaN is no time
            raise InvalidEventError("time")
        grow = label is not None and weight != 0.0
        row = self.reader.read_event(features, grow)
        if weight == 0.0 and isinstance(label, str):
            label = "either"
        return bits(row), label, weight, None if key is None else str(key).encode(), moment

    def checked(self, label: Any, weight: float) -> Any:
        if label is not None and self.fields.labels is not None:
            if label not in self.fields.labels:
                raise InvalidEventError("label")
            label = next(one for one in self.fields.labels if one == label)
        if label is not None and self.fields.positive is not None:
            label = label in self.fields.positive
        if isinstance(label, int) and not -(1 << 63) <= label < 1 << 63:
            raise InvalidEventError("label")
        if isinstance(label, str) and len(label) > 1024 and weight:
            raise InvalidEventError("label")
        return label


def bits(row: list[tuple[int, float]]) -> list[tuple[int, bytes]]:
    return [(slot, struct.pack("d", value)) for slot, value in row]


def compare(records: list[bytes], fields: Fields, reader: Any) -> None:
    """Both ways, one after another, from the same reader's start."""
    slow, quick = Slow(reader.fresh(), fields), JSONDecoder(reader.fresh(), fields)
    outcomes = [slow.outcome(record) for record in records]
    events = Events()
    quick.decode(records, events)
    assert quick.reader.state() == slow.reader.state()
    good = [i for i, outcome in enumerate(outcomes) if outcome is not None]
    assert events.index.tolist() == good
    assert [bad.number for bad in events.invalid] == [
        i for i, outcome in enumerate(outcomes) if outcome is None
    ]
    for k, i in enumerate(good):
        row, label, weight, key, moment = outcomes[i]
        assert bits(events.row_of(k)) == row
        assert events.weights[k] == weight
        assert events.id_of(k) == key
        if label != "either":
            assert events.label_of(k) == label
            assert type(events.label_of(k)) is type(label)
        assert np.array_equal(events.times[k], moment, equal_nan=True)


texts = st.one_of(st.sampled_from(["a", "b", "c", "d", "w", "x", ""]), st.text(max_size=6))
numbers = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**63, -(2**63), 2**64, 10**400, 1e308, 5e-324, 2**53 + 1, 0.1, -0.0]),
)
values = st.recursive(
    st.one_of(st.none(), numbers, texts, st.lists(st.one_of(texts, st.none()), max_size=12)),
    lambda inner: st.one_of(st.dictionaries(texts, inner, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=12,
)
events = st.dictionaries(texts, values, max_size=6)
shapes = st.sampled_from([True, False])


def written(event: Any, ascii_only: bool, rng: random.Random) -> bytes:
    """The event as JSON, with blanks here and there."""
    text = json.dumps(
        event, ensure_ascii=ascii_only, separators=rng.choice([(",", ":"), (" , ", ": ")])
    )
    return (rng.choice(["", " ", "\n\t"]) + text + rng.choice(["", "\r\n"])).encode()


@pytest.mark.parametrize(("fields", "spec"), FIELDS, ids=range(len(FIELDS)))
@EXAMPLES
@given(st.lists(events, min_size=1, max_size=4), shapes, st.integers(0, 9))
def test_any_event(
    fields: Fields, spec: dict[str, str], batch: list[Any], ascii_only: bool, seed: int
) -> None:
    rng = random.Random(seed)
    records = [written(event, ascii_only, rng) for event in [*batch, *batch]]
    compare(records, fields, sl.Names({**spec, **INTERACTIONS}))
    compare(records, fields, sl.Hashing(6, spec))


@pytest.mark.parametrize("fields", [fields for fields, _ in FIELDS[:2]], ids=range(2))
@EXAMPLES
@given(
    st.lists(events, min_size=1, max_size=3),
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 2), st.binary(max_size=3)), max_size=3
    ),
)
def test_any_damage(fields: Fields, batch: list[Any], damage: list[tuple[int, int, bytes]]) -> None:
    records = []
    for event in batch:
        record = written(event, False, random.Random(0))
        records.append(record)
        for where, length, new in damage:
            at = where % (len(record) + 1)
            record = record[:at] + new + record[at + length :]
            if record[:1] != b"\0":
                records.append(record)
    compare(records, fields, sl.Names())


@EXAMPLES
@given(st.lists(st.binary(max_size=20), max_size=4))
def test_any_bytes(records: list[bytes]) -> None:
    compare([record for record in records if record[:1] != b"\0"], Fields(), sl.Names())


EDGES = [2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**19, 10**25]
integers = st.one_of(
    st.integers(),
    st.integers(-(2**65), 2**65),
    st.sampled_from([sign * edge for edge in EDGES for sign in (1, -1)]),
)


@EXAMPLES
@given(st.lists(integers, min_size=1, max_size=6))
def test_integers_equal_those_of_python_json(wanted: list[int]) -> None:
    records = [json.dumps({"id": one, "y": one}).encode() for one in wanted]
    said = [json.loads(record)["y"] for record in records]
    decoder, found = JSONDecoder(sl.Names(), Fields(label="y", id="id")), Events()
    decoder.decode(records, found)
    good = [one for one in said if -(1 << 63) <= one < 1 << 63]
    labels = [found.label_of(i) for i in range(len(found))]
    assert labels == good
    assert {type(label) for label in labels} <= {int}
    assert found.ids == [b"%d" % one for one in good]
    assert [bad.field for bad in found.invalid] == ["y"] * (len(said) - len(good))
    unlabeled = Events()
    JSONDecoder(sl.Names(), Fields(label=None, id="id", ignored=("y",))).decode(records, unlabeled)
    assert unlabeled.ids == [b"%d" % one for one in said]


def test_usual_records_create_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlearn.stream.formats.json.msgspec", None)
    found = Events()
    for kind in KINDS:
        stream = Clicks(kind)
        found = Events()
        JSONDecoder(sl.Names(), Fields(label=stream.label, id="id")).decode(
            stream.values(0, 500), found
        )
        assert len(found) == 500
    usual = b'{ "\\u00fc": "\\ud83d\\ude00", "x": {"y": [ "z", null ], "v": {}}, "w": -1.25e-3 }\n'
    JSONDecoder(sl.Names({"x.v": "ignore"}), Fields()).decode([usual], found := Events())
    assert len(found) == 1


# fmt: off
ODD = [
    b"",
    b" ",
    b"null",
    b"[]",
    b"1",
    b'"a"',
    b"{}",
    b" {} ",
    b"{} x",
    b"{}\0",
    b"\xef\xbb\xbf{}",
    b'{"a":1,"a":2}',
    b'{"a":1,"b":2,"a":3}',
    b'{"a":{"b":1,"b":2}}',
    b'{"a.b":1,"a":{"b":2}}',
    b'{"a":1',
    b'{"a"',
    b'{"a":',
    b'{"a":"',
    b'{"a":"\\',
    b'{"a":"\\u',
    b'{"a":"\\u12',
    b"{",
    b'{"a":NaN}',
    b'{"a":Infinity}',
    b'{"a":-Infinity}',
    b'{"a":1e400}',
    b'{"a":-1e400}',
    b'{"a":1e-400}',
    b'{"a":01}',
    b'{"a":1.}',
    b'{"a":.5}',
    b'{"a":+1}',
    b'{"a":-}',
    b'{"a":1e}',
    b'{"a":1e+}',
    b'{"a":-0}',
    b'{"a":-0.0}',
    b'{"a":0e9999999999}',
    b'{"a":1E5}',
    b'{"a":1e+5}',
    b'{"a":12345678901234567890}',
    b'{"a":123456789012345678901234567890}',
    b'{"a":1' + b"0" * 400 + b"}",
    b'{"a":0.' + b"0" * 400 + b"1}",
    b'{"a":1.' + b"1" * 400 + b"}",
    b'{"a":"\\ud83d\\ude00"}',
    b'{"a":"\\ud83d"}',
    b'{"a":"\\ude00"}',
    b'{"a":"\\ud83dx"}',
    b'{"a":"\\ud83d\\u0041"}',
    b'{"a":"\xff"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xc0\x80"}',
    b'{"a":"\xf4\x90\x80\x80"}',
    b'{"a":"\xe2\x82"}',
    b'{"\xff":1}',
    b'{"a":"\x01"}',
    b'{"a":"\x7f"}',
    b'{"a":"\\u0000"}',
    b'{"\\u0061":1,"a":2}',
    b'{"\\u0062":1,"a":2}',
    b'{"a":"\\/\\b\\f\\n\\r\\t\\"\\\\"}',
    b'{"a":"\\x"}',
    b'{"a":tru}',
    b'{"a":truex}',
    b'{"a":nul}',
    b'{"a":[1]}',
    b'{"a":["x",1]}',
    b'{"a":[["x"]]}',
    b'{"a":["x",null,"x","y"]}',
    b'{"a":[,]}',
    b'{"a":["x",]}',
    b'{"a":[]}',
    b'{"a":[ ]}',
    b'{"a":1,}',
    b"{,}",
    b'{"a" :\t1 ,\n"b":2\r}',
    b"{a:1}",
    b"{'a':1}",
    b'{"a":1}{"a":1}',
    b'{"a":{}}',
    b'{"":1}',
    b'{"":{"":"x"}}',
    b'{"=":"=","==":"x"}',
    b'{"a":"x","a=x":1}',
    b'{"a":1e308,"a":1e308}',
    b'{"f=x":1e308,"f":{"":1}}',
    b'{"a":{"b":1e308},"a.b":1e308}',
    b'{"a":"' + b"y" * 100_000 + b'"}',
]
# fmt: on


@pytest.mark.parametrize(("fields", "spec"), FIELDS, ids=range(len(FIELDS)))
def test_odd_records(fields: Fields, spec: dict[str, str]) -> None:
    compare(ODD, fields, sl.Names(spec))
    compare(ODD[::-1], fields, sl.Hashing(4, {**spec, **INTERACTIONS}))


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 34, 500, 100_000])
@pytest.mark.parametrize(("fields", "spec"), FIELDS[:-1], ids=range(len(FIELDS) - 1))
def test_depth(depth: int, fields: Fields, spec: dict[str, str]) -> None:
    for head in (b'{"a":', b'{"b":', b'{"z":'):
        records = [head * depth + b"1" + b"}" * depth, b'{"a":' + b"[" * depth]
        compare(records, fields, sl.Names(spec))


def test_lists_of_many_strings() -> None:
    rng = random.Random(3)
    for size in (7, 8, 9, 10, 50, 2047, 2048, 2049, 5000):
        batch = [{"a": [f"w{rng.randrange(size)}" for _ in range(size)], "b": ["x", "x"]}]
        compare([msgspec.json.encode(event) for event in [*batch, *batch]], Fields(), sl.Names())


def test_too_many_keys_are_removed() -> None:
    names = sl.Names()
    decoder, found = JSONDecoder(names, Fields(label=None), grow_always=True), Events()
    for start in range(0, 140_000, 1000):
        found.clear()
        record = {f"k{i}": 1.0 for i in range(start, start + 1000)}
        decoder.decode([msgspec.json.encode(record)], found)
        assert found.row_of(0) == [(i, 1.0) for i in range(start, start + 1000)]


def test_keys_of_any_length_take_bounded_memory() -> None:
    decoder, found = JSONDecoder(sl.Names(max_bytes=10_000), Fields(label=None)), Events()
    most = 0
    for start in range(0, 20_000, 1000):
        found.clear()
        record = {f"{i}" + "k" * 4000: 1.0 for i in range(start, start + 1000)}
        decoder.decode([msgspec.json.encode(record)] * 2, found)
        assert len(found) == 2
        most = max(most, sys.getsizeof(decoder.keys))
    assert most < 40_000_000


def test_invalid_records_name_the_field_and_the_remedy() -> None:
    found = Events()
    decoder = JSONDecoder(sl.Names(), Fields(weight="w", id="i", time="t", labels=("x",)))
    records = [
        b'{"label":"z"}', b'{"w":-1}', b'{"w":"1"}', b'{"i":1.5}', b'{"t":"noon"}', b'{"a":[1]}',
        b'{"a":1e999}', b"null", b"\0\0\0\0\1\2\3", b'\0\0\0\0\1{"a":1,"label":"x"}', b'{"t":true}',
        b'{"t":"2026-11-18T15:00:00Z"}', b'{"i":"caf\xc3\xa9"}', b'{"label":["x"]}', b"\0",
    ]  # fmt: skip
    decoder.decode([*records, None], found)
    assert [(bad.number, bad.field) for bad in found.invalid] == [
        (0, "label"), (1, "w"), (2, "w"), (3, "i"), (4, "t"), (5, "a"), (6, None), (7, None),
        (8, None), (10, "t"), (13, "label"), (14, None),
    ]  # fmt: skip
    assert [bad.code for bad in found.invalid] == [
        "label", "weight", "weight", "id", "time", "value", "syntax", "syntax", "syntax", "time",
        "label", "syntax",
    ]  # fmt: skip
    assert '"x"' in found.invalid[0].reason
    assert "format.kind" in found.invalid[8].reason
    assert (found.tombstones, found.records) == (1, 16)
    assert found.index.tolist() == [9, 11, 12]
    assert found.times.tolist()[1] == 1795014000.0
    assert found.ids[2] == "café".encode()


def test_weight_zero_and_no_label_add_no_names() -> None:
    names, found = sl.Names(), Events()
    decoder = JSONDecoder(names, Fields(weight="w"))
    decoder.decode([b'{"a":1}', b'{"b":1,"label":null}', b'{"c":1,"label":1,"w":0}'], found)
    assert (names.size, len(found)) == (0, 3)
    JSONDecoder(names, Fields(), grow_always=True).decode([b'{"a":1}'], Events())
    assert names.names() == ["a"]


@EXAMPLES
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.from_regex(
            r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
        ),
    )
)
@example("9007199254740993.0")  # halfway between two doubles
@example("9007199254740995.0")
@example("-4503599627370497.5")
@example("1152921504606847104.0e0")
@example("1e-64")
@example("1.0e65")
def test_decimals_are_exact(text: str) -> None:
    want = float(text) if set(text) & set(".eE") else float(int(text))
    decoder, found = JSONDecoder(sl.Names(), Fields(label=None), (), True), Events()
    decoder.decode([f'{{"x":{text}}}'.encode()], found)
    assert found.values.tolist() == ([want] if want and math.isfinite(want) else [])


def test_an_array_over_several_lines_has_its_own_message() -> None:
    events = Events()
    decoder = JSONDecoder(sl.Names(), Fields(label="y"))
    decoder.decode([b'[{"a": 1, "y": 1},', b'{"a": 1, "y": 0}]'], events)
    (*_, first), (*_, last) = events.invalid
    assert "arrays" in first
    assert "arrays" not in last


@pytest.mark.parametrize("blanks", [(",", ":"), (", ", ": "), ("\t,\n ", " : ")])
@pytest.mark.parametrize(
    "items", [[12, 345, 67], [-5, -12], [True, False], [12.5, 10], [None, 12], ["ab", "c"], []]
)
def test_lists_of_each_kind_of_item_are_those_of_the_event(
    items: list[Any], blanks: tuple[str, str]
) -> None:
    event = {"a": 1.0, "f": items, "skipped": [items, {"x": items}, 12], "b": 2.0}
    line = json.dumps(event, separators=blanks).encode()
    names = sl.Names({"f": "list", "skipped": "ignore"})
    made, events = JSONDecoder(names.fresh(), Fields(label=None), grow_always=True), Events()
    made.decode([line] * 3, events)  # later records are read by the fields of the first
    assert not events.invalid
    row = names.read_event(event)
    assert [events.row_of(k) for k in range(3)] == [row] * 3
    assert made.reader.names() == names.names()
