"""Features: allowed field types, slots, and rejected events."""

from __future__ import annotations

import collections
import copy
import doctest
import importlib
import json
import os
import pickle
import subprocess
import sys
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest

from streamlearn.errors import InvalidEventError, ModelFileError
from streamlearn.features import Hashing, Names, Reader, fields, from_state

KINDS = [Names, Hashing]


def read(reader: Reader, event: Any, grow: bool = True) -> dict[object, float]:
    """The row by name (by slot number for hashing); every slot once, no zeros."""
    row = reader.read_event(event, grow)
    assert len({slot for slot, _ in row}) == len(row)
    assert all(value != 0 for _, value in row)
    return {reader.name_of(slot): value for slot, value in row}


def columns(reader: Reader, m: int, grow: bool = True) -> list[int]:
    found = reader.columns(m, grow)
    assert found is not None
    return list(found)


@pytest.mark.parametrize("module", ["", ".pieces", ".reader", ".names", ".hashing"])
def test_examples(module: str) -> None:
    found = doctest.testmod(importlib.import_module("streamlearn.features" + module))
    assert found.failed == 0


@pytest.mark.parametrize(
    ("event", "row"),
    [
        ({"a": 1.5, "b": 2, "c": True}, {"a": 1.5, "b": 2.0, "c": 1.0}),
        ({"a": 0.0, "b": 0, "c": False, "d": -0.0}, {}),
        ({"a": None}, {}),
        ({"f": "x"}, {"f=x": 1.0}),
        ({"f": ""}, {"f=": 1.0}),
        ({"": 1}, {"": 1.0}),
        ({"f": "ж", "ü": 2}, {"f=ж": 1.0, "ü": 2.0}),
        ({"f": ["x", "y", "x", None]}, {"f=x": 1.0, "f=y": 1.0}),
        ({"f": ("x", "y")}, {"f=x": 1.0, "f=y": 1.0}),
        ({"f": {"x", "y"}}, {"f=x": 1.0, "f=y": 1.0}),
        ({"f": frozenset(["x"]), "g": []}, {"f=x": 1.0}),
        ({"a": {"b": {"c": 2, "d": "x"}, "": 3}}, {"a.b.c": 2.0, "a.b.d=x": 1.0, "a.": 3.0}),
        ({1: 2.0, "1": 3.0, ("a", 1): 4.0}, {1: 2.0, "1": 3.0, ("a", 1): 4.0}),
        ({1: "x", ("a", 1): {"b": 1}}, {"1=x": 1.0, "('a', 1).b": 1.0}),
        ({"a": {1: 2.0}}, {"a.1": 2.0}),
        ({np.int64(3): 1.0, np.str_("s"): 1.0}, {3: 1.0, "s": 1.0}),
        (
            {"a": np.float32(0.5), "b": np.int8(3), "c": np.bool_(True), "d": np.float64(2)},
            {"a": 0.5, "b": 3.0, "c": 1.0, "d": 2.0},
        ),
        ({"f": np.str_("x"), "g": [np.str_("y")]}, {"f=x": 1.0, "g=y": 1.0}),
        ({"a": 2**62, "b": 2**70, "c": -(2**63)}, {"a": 2.0**62, "b": 2.0**70, "c": -(2.0**63)}),
        (MappingProxyType({"a": 1, "f": "x"}), {"a": 1.0, "f=x": 1.0}),
        (collections.OrderedDict(a=1, b=MappingProxyType({"c": 2})), {"a": 1.0, "b.c": 2.0}),
        ({"f=x": 1, "f": "x"}, {"f=x": 2.0}),
        ({"a.b": 1, "a": {"b": 2}}, {"a.b": 3.0}),
        ({"a.b": 1, "a": {"b": -1}, "c": 1}, {"c": 1.0}),
        ({"f=x": 1, "f": ["x", "x"]}, {"f=x": 2.0}),
    ],
)
def test_all_field_types_are_read(event: object, row: dict[object, float]) -> None:
    names = Names()
    assert read(names, event) == row
    assert read(names, event, grow=False) == row
    assert set(row) <= set(names.names())
    hashed = Hashing(bits=30)
    assert read(hashed, event) == {hashed.slot_of(name): value for name, value in row.items()}


def nested(depth: int) -> dict[str, object]:
    event: dict[str, object] = {"x": 1}
    for _ in range(depth):
        event = {"x": event}
    return event


@pytest.mark.parametrize("grow", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"a": float("nan")}, "a"),
        ({"a": float("-inf")}, "a"),
        ({"a": np.float32("inf")}, "a"),
        ({"a": {"b": float("nan")}}, "a.b"),
        ({"a": 10**400}, "a"),
        ({"a": 10**5000}, "a"),
        ({"a": 1j}, "a"),
        ({"a": b"x"}, "a"),
        ({"a": np.array(1.0)}, "a"),
        ({"a": np.timedelta64(1, "s")}, "a"),
        ({"a": [1.0, 2.0]}, "a"),
        ({"a": [["x"]]}, "a"),
        ({"a": {"b": ["x", 10**5000]}}, "a.b"),
        ({3: object()}, "3"),
        ({True: 1}, "True"),
        ({np.bool_(True): 1}, "np.True_"),
        ({1.0: 1}, "1.0"),
        ({None: 1}, "None"),
        ({b"a": 1}, "b'a'"),
        ({frozenset(): 1}, "frozenset()"),
        ({("a", 1.0): 1}, "('a', 1.0)"),
        ({("a", "\ud800"): 1}, "('a', '\\ud800')"),
        ({2**63: 1}, str(2**63)),
        ({"a": {True: 1}}, "True"),
        ({"\ud800": 1}, "'\\ud800'"),
        ({"a": "\ud800"}, "a"),
        ({"a": ["x", "\ud800"]}, "a"),
        ({"a": {"\udfff": 1}}, "'\\udfff'"),
        (nested(33), None),
        (None, None),
        ([("a", 1)], None),
        ("a", None),
    ],
)
def test_invalid_events_name_the_field_and_change_nothing(
    kind: type[Reader], grow: bool, event: Any, field: str | None
) -> None:
    reader = kind()
    reader.read_event({"known": 1})
    before = reader.state()
    if isinstance(event, dict):
        event = {"new": 1.0, **event, "late": "x"}
    with pytest.raises(InvalidEventError) as caught:
        reader.read_event(event, grow)
    assert isinstance(caught.value, ValueError)
    if field is not None:
        assert caught.value.field == field
        assert field in str(caught.value) or field.startswith("'")
    assert pickle.loads(pickle.dumps(caught.value)).field == caught.value.field
    assert reader.state() == before
    assert reader.read_event({"known": 1}) == [(reader.slot_of("known"), 1.0)]


def test_nesting_as_deep_as_allowed() -> None:
    assert read(Names(), nested(32)) == {".".join(["x"] * 33): 1.0}
    event: dict[str, object] = {}
    event["self"] = event
    with pytest.raises(InvalidEventError, match="nested"):
        Names().read_event(event)


def test_an_overflowing_sum_removes_the_new_names() -> None:
    reader = Names()
    reader.read_event({"old": 1, 5: 1})
    before = reader.state()
    bad = {"new": 1, 7: 2, ("t",): 3, "a.b": 1e308, "a": {"b": 1e308}}
    for _ in range(3):
        with pytest.raises(InvalidEventError, match=r"a\.b"):
            reader.read_event(bad)
        assert reader.state() == before
        assert reader.slot_of("new") is None
        assert reader.slot_of(7) is None
    many = {str(i): 1.0 for i in range(1000)}
    with pytest.raises(InvalidEventError):
        reader.read_event({**many, **bad})
    assert reader.state() == before
    assert read(reader, many) == many
    assert read(reader, {"old": 2, 5: 3}) == {"old": 2.0, 5: 3.0}
    fresh = Names()
    with pytest.raises(InvalidEventError):
        fresh.read_event({0: 1, 1: 1, **bad})
    assert (fresh.size, fresh.identity, fresh.names()) == (0, 0, [])
    for kind in ("number", "buckets(1, 2)", "auto"):
        with pytest.raises(InvalidEventError, match="too large for a float"):
            Names(fields={"x": kind}).read_event({"x": 10**400})
    with pytest.raises(InvalidEventError, match="sum to"):
        Hashing(bits=1).read_event({str(i): 1e308 for i in range(9)})


def test_prediction_skips_unknown_names() -> None:
    reader = Names({"a^b": "interaction"})
    read(reader, {"a": "x", "b": 2})
    before = reader.state()
    assert read(reader, {"a": "y", "b": 3, "c": 1, 4: 1}, grow=False) == {"b": 3.0}
    assert reader.state() == before


def test_zero_values_make_their_names_known() -> None:
    reader = Names()
    assert reader.read_event({"a": 0, "b": 1}) == [(1, 1.0)]
    assert reader.names() == ["a", "b"]


def test_strings_of_a_set_get_slots_in_a_fixed_order() -> None:
    reader = Names()
    reader.read_event({"f": {"c", "a", "b"}})
    assert reader.names() == ["f=a", "f=b", "f=c"]


def test_names_with_equal_hashes_get_different_slots() -> None:
    reader = Names()  # of so many names ten pairs share all 32 bits that the table keeps
    many = {str(i): 1.0 for i in range(100_000, 400_000)}
    assert len(reader.read_event(many)) == reader.size == len(many)


# Interactions


def test_interactions_cross_all_features_of_their_fields() -> None:
    reader = Names({"user^ad": "interaction", "ad^user.age^7": "interaction"})
    event = {"user": {"age": 3, "tag": ["p", "q"]}, "ad": "z", 7: 2.0, "else": 1}
    assert read(reader, event) == {
        "user.age": 3.0,
        "user.tag=p": 1.0,
        "user.tag=q": 1.0,
        "ad=z": 1.0,
        7: 2.0,
        "else": 1.0,
        "user.age^ad=z": 3.0,
        "user.tag=p^ad=z": 1.0,
        "user.tag=q^ad=z": 1.0,
        "ad=z^user.age^7": 6.0,
    }
    assert read(reader, {"user": {"age": 3}, "ad": None}) == {"user.age": 3.0}
    assert read(reader, {"user": 2, "ad": 0}) == {"user": 2.0}


@pytest.mark.parametrize("make", [Names, lambda **k: Hashing(bits=30, **k)])
def test_interactions_equal_the_products_given_by_hand(make: type[Reader]) -> None:
    crossed = make(fields={"a^b": "interaction", "a^b^c": "interaction"})
    plain = make()
    event = {"a": {"u": 2, "v": 3, "w": "x"}, "b": ["p", "q"], "a.u": 0.5, "c": -1.5}
    by_hand: dict[str, float] = {"c": -1.5, "b=p": 1, "b=q": 1, "a.u": 2.5, "a.v": 3, "a.w=x": 1}
    for name, x in (("a.u", 2), ("a.v", 3), ("a.w=x", 1)):
        for b in ("b=p", "b=q"):
            by_hand[f"{name}^{b}"] = x
            by_hand[f"{name}^{b}^c"] = x * -1.5
    assert read(crossed, event) == read(plain, by_hand)


def test_a_product_of_zero_is_absent() -> None:
    reader = Names({"a^b^c": "interaction"})
    assert read(reader, {"a": 1e200, "b": 1e200, "c": 0}) == {"a": 1e200, "b": 1e200}
    assert read(reader, {"a": 1e-200, "b": 1e-200, "c": 1})["c"] == 1.0
    assert reader.names() == ["a", "b", "c"]


def test_interactions_too_many_or_too_large() -> None:
    reader = Names({"a^b": "interaction"})
    many = [str(i) for i in range(2000)]
    with pytest.raises(InvalidEventError, match="crossed"):
        reader.read_event({"a": many, "b": many})
    with pytest.raises(InvalidEventError, match=r"a\^b"):
        reader.read_event({"a": 1e200, "b": 1e200})
    assert reader.size == 0


@pytest.mark.parametrize(
    "names",
    [["a"], ["a^a"], ["a^"], ["^"], ["*"], ["a^b", "b^a"], ["a^b^c^d^e^f^g^h^i"]],
)
def test_invalid_interactions_are_rejected(names: list[str]) -> None:
    for kind in KINDS:
        with pytest.raises(ValueError, match="interaction"):
            kind(fields=dict.fromkeys(names, "interaction"))


# Hashing

GOLDEN = {  # slots of 2**30; a saved model of hashed features depends on them for ever
    "": 423884379,
    "a": 423597965,
    "ab": 395753431,
    "abc": 1061186748,
    "abcd": 257797192,
    "age": 346854604,
    "user=ann": 416048812,
    "user=ann^ad=7": 444670724,
    "aaaaaaaaaaaaaaaa": 269572320,
    "aaaaaaaaaaaaaaaaa": 510749222,
    "abcdefghijklmnopqrstuvwxyz" * 3: 22663688,
    "ж": 272364916,
    "f=ж": 558229954,
    "😀": 664952335,
}


def test_hash_is_for_ever() -> None:
    reader = Hashing(bits=30)
    assert {text: reader.slot_of(text) for text in GOLDEN} == GOLDEN
    for text, slot in GOLDEN.items():
        assert reader.read_event({text: 1.0}) == [(slot, 1.0)]


def test_hash_is_the_one_written_down() -> None:
    def fold(a: int, b: int) -> int:
        return (a * b) % 2**64 ^ (a * b) >> 64

    def hashed(data: bytes) -> int:
        one, two, seed = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0
        n = len(data)
        seed ^= fold(seed ^ one, two)

        def word(i: int, size: int) -> int:
            return int.from_bytes(data[i : i + size], "little")

        if n > 16:
            for i in range(0, (n - 1) // 16 * 16, 16):
                seed = fold(word(i, 8) ^ one, word(i + 8, 8) ^ seed)
            a, b = word(n - 16, 8), word(n - 8, 8)
        elif n >= 8:
            a, b = word(0, 8), word(n - 8, 8)
        elif n >= 4:
            a, b = word(0, 4), word(n - 4, 4)
        else:
            a, b = data[0] << 16 | data[n >> 1] << 8 | data[-1] if n else 0, 0
        return fold(fold(a ^ two, b ^ seed) ^ one ^ n, seed ^ two)

    reader = Hashing(bits=30)
    for n in range(100):
        text = "".join(chr(33 + (7 * i + n) % 90) for i in range(n))
        assert reader.slot_of(text) == hashed(text.encode()) % 2**30


def test_hash_is_the_same_in_every_process() -> None:
    event = {"f": ["x", "ж"], "a": {"b": 2}, "long" * 20: 1, 5: 3, ("t", 1): 1}
    code = (
        "from streamlearn.features import Hashing;"
        f"print(Hashing(20, {{'f^a': 'interaction'}}).read_event({event!r}))"
    )
    here = str(Hashing(20, {"f^a": "interaction"}).read_event(event))
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == here


def test_hash_is_bounded_and_spread() -> None:
    reader = Hashing(bits=10)
    slots = reader.slots_of(f"field={i}" for i in range(20 * 1024))
    counts = np.bincount(slots, minlength=1024)
    assert len(counts) == reader.size == 1024
    chi2 = ((counts - 20.0) ** 2 / 20.0).sum()
    assert 850 < chi2 < 1210  # 1023 degrees of freedom: four standard deviations


def test_hash_differs_in_one_character_anywhere() -> None:
    reader = Hashing(bits=30)
    for length in range(1, 40):
        texts = {"a" * length} | {"a" * i + "b" + "a" * (length - i - 1) for i in range(length)}
        assert len({reader.slot_of(text) for text in texts}) == length + 1


def test_collisions_add_up() -> None:
    row = Hashing(bits=1).read_event({str(i): 1.0 for i in range(100)})
    assert len(row) == 2
    assert sum(value for _, value in row) == 100


def test_int_names_are_slots_of_hashing() -> None:
    reader = Hashing(bits=4)
    assert sorted(reader.read_event({3: 1.0, 17: 2.0, -1: 4.0})) == [(1, 2.0), (3, 1.0), (15, 4.0)]
    assert reader.columns(16) is None
    assert columns(reader, 18) == [*range(16), 0, 1]
    assert reader.slots_of([3, 17, "a"]).tolist() == [3, 1, reader.slot_of("a")]


@pytest.mark.parametrize("bits", [0, 31, 2.0, True, "20", None])
def test_invalid_bits_are_rejected(bits: Any) -> None:
    with pytest.raises(ValueError, match="bits"):
        Hashing(bits=bits)


# Columns


def test_columns_cost_nothing() -> None:
    reader = Names()
    assert reader.columns(10_000_000) is None
    assert reader.size == reader.identity == 10_000_000
    assert sys.getsizeof(reader) < 10_000
    assert reader.read_event({1234567: 2.0, "a": 1.0}) == [(1234567, 2.0), (10_000_000, 1.0)]
    assert reader.name_of(5) == 5
    assert reader.columns(10_000_000) is None


def test_columns_read_in_order_need_no_entries() -> None:
    reader = Names()
    reader.read_event(dict.fromkeys(range(50), 1.0))
    assert reader.identity == 50
    assert reader.columns(80) is None
    assert reader.names() == list(range(80))


def test_columns_among_other_names() -> None:
    reader = Names()
    reader.read_event({"a": 1.0, 3: 1.0})
    assert columns(reader, 5, grow=False) == [-1, -1, -1, 1, -1]
    assert reader.size == 2
    assert columns(reader, 5) == [2, 3, 4, 1, 5]
    assert columns(reader, 4) == [2, 3, 4, 1]
    assert reader.names() == ["a", 3, 0, 1, 2, 4]
    assert reader.read_event({0: 1.0, 4: 1.0}) == [(2, 1.0), (5, 1.0)]
    reader = Names()
    reader.reserve_columns(2)
    reader.read_event({"a": 1.0})
    assert columns(reader, 3, grow=False) == [0, 1, -1]
    assert columns(reader, 3) == [0, 1, 3]
    assert [reader.name_of(slot) for slot in range(4)] == reader.names() == [0, 1, "a", 2]


def test_slots_of_many_names() -> None:
    reader = Names()
    assert reader.slots_of(["a", 5, ("t", 1), "a"]).tolist() == [0, 1, 2, 0]
    assert reader.slots_of(["b", "a"], grow=False).tolist() == [-1, 0]
    assert reader.slots_of([]).tolist() == []
    with pytest.raises(InvalidEventError):
        reader.slots_of(["new", 1.5])
    assert reader.size == 3


# State


def some_reader(kind: type[Reader]) -> Reader:
    reader = kind(fields={"f^g": "interaction"})
    reader.reserve_columns(3)
    event = {
        "f": ["x", "y"],
        "g": 2,
        9: 1,
        ("a", (1, "b")): 1,
        "columns": 1,
        "kind": "names",
        "ж": 1,
    }
    reader.read_event(event)
    return reader


@pytest.mark.parametrize("kind", KINDS)
def test_state_round_trips(kind: type[Reader]) -> None:
    reader = some_reader(kind)
    state = json.loads(json.dumps(reader.state()))
    for other in (
        from_state(state),
        copy.copy(reader),
        copy.deepcopy(reader),
        pickle.loads(pickle.dumps(reader)),
    ):
        assert other == reader
        assert other.state() == reader.state()
        assert pickle.dumps(other) == pickle.dumps(reader)
        assert list(other.names()[:50]) == list(reader.names()[:50])
        event = {"f": "y", "g": 3, 1: 1, 9: 2, ("a", (1, "b")): 2, "newer": 1}
        copied = copy.deepcopy(reader)
        assert other.read_event(event) == copied.read_event(event)
        assert other.state() == copied.state()


def test_copies_are_independent() -> None:
    reader = some_reader(Names)
    size = reader.size
    copy.deepcopy(reader).read_event({"more": 1})
    assert reader.size == size
    fresh = reader.fresh()
    assert fresh == reader
    assert fresh.size == 0


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Hashing"},
        {"kind": None},
        {"fields": {}},
        {"fields": None},
        {"columns": -1},
        {"columns": True},
        {"names": None},
        {"names": ["a", "a"]},
        {"names": ["a", 1.5]},
        {"names": [True]},
        {"names": ["a", 2]},
        {"names": [["a", None]]},
        {"names": ["\ud800"]},
    ],
)
def test_a_damaged_state_is_refused(change: dict[str, object]) -> None:
    reader = some_reader(Names)
    before = reader.state()
    with pytest.raises(ModelFileError):
        reader.restore({**before, **change})
    assert reader.state() == before
    with pytest.raises(ModelFileError):
        from_state({**before, "fields": {"a": "interaction"}})
    with pytest.raises(ModelFileError):
        from_state({})


def test_specs() -> None:
    assert repr(Names()) == "Names()"
    assert repr(Hashing()) == "Hashing(bits=20)"
    assert repr(Names({"a^b": "interaction"})) == "Names(fields={'a^b': 'interaction'})"
    assert Hashing(bits=4) == Hashing(4) != Hashing(5)
    assert Names() != Hashing()
    assert Names({"a^b": "interaction"}) == Names({"a^b": fields.Interaction()}) != Names()
    assert len({Names(), Names(), Hashing(), Hashing()}) == 2
    assert Hashing(3).params == {"bits": 3, "fields": {}}
    with pytest.raises(TypeError, match="abstract"):
        Reader()


def test_sizeof_includes_the_table_of_names() -> None:
    reader = Names()
    small = sys.getsizeof(reader)
    reader.read_event({str(i): 1.0 for i in range(10_000)})
    assert sys.getsizeof(reader) > small + 10_000 * 16
    hashed = Hashing(bits=20)
    hashed.read_event({"a": 1})
    assert sys.getsizeof(hashed) < 20_000


def test_buffers_of_a_giant_event_are_released() -> None:
    reader = Hashing()
    reader.read_event({"f" * 1000: [str(i) for i in range(50_000)]})
    assert sys.getsizeof(reader) > 50_000_000
    reader.read_event({"a": 1})
    assert sys.getsizeof(reader) < 10_000_000


def test_an_event_that_reads_or_changes_while_it_is_read() -> None:
    reader = Names()

    class Odd(collections.UserDict[str, float]):
        def items(self) -> Any:
            outer.clear()
            with pytest.raises(RuntimeError, match="another event"):
                reader.read_event({"x": 1})
            return super().items()

    outer: dict[str, object] = {f"key{i}": float(i + 1) for i in range(30)}
    outer["odd"] = Odd(a=1.0)
    row = read(reader, outer)
    assert row == {**{f"key{i}": i + 1.0 for i in range(30)}, "odd.a": 1.0}
    assert read(reader, {"x": 1}) == {"x": 1.0}


@pytest.mark.parametrize("on_full", ["hash", "ignore"])
def test_a_table_stops_growing_at_max_names(on_full: str) -> None:
    names = Names(max_names=10, on_full=on_full)
    assert names == eval(repr(names), {"Names": Names})  # noqa: S307
    full = [names.read_event({f"n{k}": 1.0}) for k in range(10)]
    assert full == [[(k, 1.0)] for k in range(10)]
    assert names.read_event({"late0": 1.0}, grow=False) == []
    assert (names.rejected_features, names.size) == (0, 10)
    late = [names.read_event({f"late{k}": 2.0, "n3": 1.0, 7: 1.0}) for k in range(50)]
    assert names.rejected_features == 100
    if on_full == "ignore":
        assert late == [[(3, 1.0)]] * 50
        assert names.size == 10
        assert names.slot_of("late1") is None
    else:
        assert names.size == 10 + 4
        assert {slot for row in late for slot, _ in row} == {3, 10, 11, 12, 13}
        assert all(sum(value for _, value in row) == 4.0 for row in late)
        assert names.names()[10:] == ["#0", "#1", "#2", "#3"]
        assert names.name_of(11) == "#1"
        slot = names.slot_of("late1")
        assert slot in dict(late[1])
        assert names.read_event({"late1": 2.0}, grow=False) == [(slot, 2.0)]
    for again in (
        from_state(names.state()),
        copy.deepcopy(names),
        pickle.loads(pickle.dumps(names)),
    ):
        assert again.state() == names.state()
        event = {"late1": 2.0, "n3": 1.0}
        assert again.read_event(event) == copy.deepcopy(names).read_event(event)
        assert (names.rejected_features, cast("Names", again).rejected_features) == (100, 101)
    with pytest.raises(ValueError, match="max_names"):
        names.columns(100)
    with pytest.raises(ModelFileError, match="max_names"):
        Names().restore(names.state())
    with pytest.raises(ModelFileError, match="damaged"):
        names.restore({**names.state(), "names": [f"m{k}" for k in range(11)]})


def test_an_event_rejected_when_the_table_fills_changes_nothing() -> None:
    names = Names(max_names=2)
    names.read_event({"a": 1.0})
    with pytest.raises(InvalidEventError):
        names.read_event(
            {"b": 1.0, "c": 1e308, "d": {"": 1e308, "e": 1e308}, "f": 1e308, "g": 1e308}
        )
    assert names.names() == ["a"]
    assert names.read_event({"b": 1.0}) == [(1, 1.0)]


def test_columns_beyond_the_capacity_add_no_names() -> None:
    names = Names(max_names=5)
    names.read_event({"a": 1.0, "b": 1.0})
    with pytest.raises(ValueError, match="max_names"):
        names.columns(4)
    assert names.names() == ["a", "b"]
    names.columns(3)
    assert names.names() == ["a", "b", 0, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_names": 0},
        {"max_names": True},
        {"max_names": 1.5},
        {"on_full": "x"},
        {"max_bytes": 9999},
        {"max_bytes": 1e6},
        {"max_bytes": 1 << 63},
    ],
)
def test_invalid_bounds_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Names(**wrong)


def long_name(k: int, text: str = "x") -> str:
    return f"{k}:" + text * 900


@pytest.mark.parametrize("text", ["x", "é"], ids=["ascii", "utf-8"])
@pytest.mark.parametrize("on_full", ["hash", "ignore"])
def test_a_table_stops_growing_at_max_bytes(on_full: str, text: str) -> None:
    names = Names(max_bytes=50_000, on_full=on_full)
    assert names == eval(repr(names), {"Names": Names})  # noqa: S307
    twin = Names(max_bytes=50_000, on_full=on_full)
    for k in range(400):
        name = long_name(k, text) if k % 3 else f"short{k}"
        row = names.read_event({name: 1.0, "s": f"v{k}"})
        if k % 50 == 0:  # through a state at any time: the same as without
            twin = cast("Names", from_state(twin.state()))
        assert twin.read_event({name: 1.0, "s": f"v{k}"}) == row
        assert names.bytes_used <= 50_000
        assert names.full == bool(names.rejected_features)
    assert names.full
    assert twin.state() == names.state()
    kept = [name for name in names.names() if not str(name).startswith("#")]
    cost = [100 + len(str(name).encode()) * (1 if text == "x" else 2) for name in kept]
    assert sum(cost) >= names.bytes_used > 48_000
    assert (names.size == len(kept)) == (on_full == "ignore")
    for again in (copy.deepcopy(names), pickle.loads(pickle.dumps(names))):
        assert again.state() == names.state()
        assert again.read_event({"another": 1.0}) == copy.deepcopy(names).read_event({"another": 1})
    small = {"z": 1.0}
    assert names.slot_of("z") is None if on_full == "ignore" else names.slot_of("z") is not None
    assert bool(names.read_event(small)) == (on_full == "hash")  # it would fit, but full is full
    with pytest.raises(ModelFileError, match="max_bytes"):
        Names(max_bytes=60_000, on_full=on_full).restore(names.state())
    with pytest.raises(ModelFileError, match="damaged"):
        Names(max_bytes=50_000, on_full=on_full).restore({**names.state(), "full": 1})


def test_a_rejected_event_does_not_fill_the_table() -> None:
    names = Names(max_bytes=10_000)
    names.read_event({"a": 1.0})
    event: dict[str, Any] = {long_name(k): 1.0 for k in range(20)}
    with pytest.raises(InvalidEventError):
        names.read_event({**event, "f=x": 1e308, "f": {"": 1.0}, "g": 1e308, "g.": 1.0,
                          "h": {"": 1e308}, "h.": 1e308})  # fmt: skip
    assert names.names() == ["a"]
    assert not names.full
    assert names.read_event({"b": 1.0}) == [(1, 1.0)]
    assert names.bytes_used == 202


def test_int_and_tuple_names_count_toward_max_bytes() -> None:
    names = Names(max_bytes=10_000)
    names.read_event({"a": 1.0})
    for k in range(1000):
        names.read_event({(k, "of a pair"): 1.0, 1_000_000 + k: 1.0})
    assert names.full
    assert names.size < 100
    assert names.bytes_used <= 10_000
    few = Names(max_bytes=10_000)
    few.read_event({"a": 1.0})
    with pytest.raises(ValueError, match="max_bytes"):
        few.columns(1000)


@pytest.mark.parametrize("text", ["x", "é", "語", "🙂"])
def test_long_names_are_stored_shortened(text: str) -> None:
    names = Names()
    for k in range(20):
        event = {"t": text * 5000 + str(k), text * 5000 + f"f{k}": 2.0, ("t" * 5000, k): 3.0}
        row = names.read_event(event)
        assert row == names.read_event(event) == names.read_event(event, grow=False)
        assert sorted(value for _, value in row) == [1.0, 2.0, 3.0]
        assert names.slot_of("t=" + text * 5000 + str(k)) in dict(row)
        assert names.slot_of(("t" * 5000, k)) in dict(row)
    assert names.size == 60
    assert max(len(str(name).encode()) for name in names.names()) <= 1024
    assert all(names.slot_of(name) == slot for slot, name in enumerate(names.names()))
    again = from_state(names.state())
    assert again.names() == names.names()
    assert again.read_event(event) == row
    assert [names.read_event({"e": "x" * n}) for n in (1022, 1023)] == [[(60, 1.0)], [(61, 1.0)]]
    assert len(str(names.names()[60])) == 1024  # as it came
    assert names.names()[60] == "e=" + "x" * 1022
    with pytest.raises(ModelFileError, match="damaged"):
        names.restore({**names.state(), "names": ["x" * 1025]})


def test_crosses_of_long_names_get_different_slots() -> None:
    names = Names({"a^b": "interaction"})
    rows = [names.read_event({"a": "x" * 3000, "b": "y" * 3000 + end}) for end in "pq"]
    assert [len(row) for row in rows] == [3, 3]
    assert names.size == 5
