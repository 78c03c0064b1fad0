"""Features against a plain Python reading of the same rules, on any JSON-like event."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.errors import InvalidEventError
from streamlearn.features import Hashing, Names, from_state

EXAMPLES = settings(derandomize=True, max_examples=100, deadline=None, database=None)
INTERACTIONS = {"a^b": "interaction", "b^a.b^=x": "interaction"}

# Few letters, so that names meet: "a.b" and {"a": {"b": ...}}, "a=b" and {"a": "b"}.
meeting = st.text("ab.=x^", max_size=4)
keys = st.one_of(meeting, st.sampled_from("ab"), st.text(max_size=20))
odd_keys = st.one_of(
    keys,
    st.text(st.characters(codec=None), max_size=3),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(),
    st.binary(max_size=2),
    st.tuples(meeting, st.integers(0, 3)),
)
numbers = st.one_of(st.booleans(), st.integers(-5, 5), st.floats(-1e6, 1e6, allow_subnormal=False))
scalars = st.one_of(st.none(), numbers, meeting)
odd_scalars = st.one_of(
    scalars,
    st.floats(),
    st.integers(),
    st.sampled_from([2**64, -(2**63), 10**308, 10**309, 1e308, -1e308, 5e-324]),
    st.text(st.characters(codec=None), max_size=3),
    st.binary(max_size=2),
)


def mappings(keys: st.SearchStrategy[Any], leaves: st.SearchStrategy[Any]) -> Any:
    values = st.recursive(
        st.one_of(leaves, st.lists(meeting, max_size=4)),
        lambda inner: st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )
    return st.dictionaries(keys, values, max_size=6)


good_events = mappings(keys, scalars)
any_events = mappings(odd_keys, st.one_of(odd_scalars, st.lists(odd_scalars, max_size=3)))


def features(event: dict[str, Any]) -> tuple[list[tuple[str, float]], dict[str, list[int]]]:
    """Every feature of an event, and which of them came from each field."""
    found: list[tuple[str, float]] = []
    spans: dict[str, list[int]] = {}

    def walk(mapping: dict[str, Any], path: str) -> None:
        for key, value in mapping.items():
            name, first = path + key, len(found)
            if isinstance(value, dict):
                walk(value, name + ".")
            elif isinstance(value, list):
                found.extend((f"{name}={text}", 1.0) for text in dict.fromkeys(value))
            elif isinstance(value, str):
                found.append((f"{name}={value}", 1.0))
            elif value is not None:
                found.append((name, float(value)))
            spans.setdefault(name, []).extend(range(first, len(found)))

    walk(event, "")
    return found, spans


def expected(event: dict[str, Any]) -> dict[str, float]:
    found, spans = features(event)
    for fields in INTERACTIONS:
        for chosen in product(*(spans.get(field, []) for field in fields.split("^"))):
            names, values = zip(*(found[i] for i in chosen), strict=True)
            found.append(("^".join(names), math.prod(values)))
    sums: dict[str, float] = {}
    for name, value in found:
        sums[name] = sums.get(name, 0.0) + value
    return sums


def close(got: dict[Any, float], want: dict[Any, float], scale: float) -> bool:
    return all(
        math.isclose(got.get(name, 0.0), want.get(name, 0.0), abs_tol=1e-12 * scale)
        for name in got.keys() | want.keys()
    )


@EXAMPLES
@given(st.lists(good_events, min_size=1, max_size=3))
def test_an_event_is_what_the_rules_say(events: list[dict[str, Any]]) -> None:
    names, hashing = Names(INTERACTIONS), Hashing(30, INTERACTIONS)
    for event in events:
        want = expected(event)
        scale = 1.0 + sum(abs(value) for value in want.values()) ** 3
        row = names.read_event(event)
        assert len(dict(row)) == len(row)
        assert close({names.name_of(slot): x for slot, x in row}, want, scale)
        assert names.read_event(event, grow=False) == row
        by_slot: dict[int | None, float] = {}
        for name, x in want.items():
            slot = hashing.slot_of(name)
            by_slot[slot] = by_slot.get(slot, 0.0) + x
        assert close(dict(hashing.read_event(event)), by_slot, scale)
        assert all(names.name_of(slot) == name for slot, name in enumerate(names.names()))
        assert all(names.slot_of(name) == slot for slot, name in enumerate(names.names()))


def reverse(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reverse(value[key]) for key in reversed(value)}
    return value[::-1] if isinstance(value, list) else value


@EXAMPLES
@given(good_events)
def test_the_order_of_fields_does_not_matter(event: dict[str, Any]) -> None:
    reader = Names(INTERACTIONS)
    row = dict(reader.read_event(event))
    size = reader.size
    scale = 1.0 + sum(abs(x) for x in row.values()) ** 3
    assert close(dict(reader.read_event(reverse(event))), row, scale)
    assert reader.size == size


@EXAMPLES
@given(good_events, good_events)
def test_prediction_is_learning_without_the_new_names(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    reader = Names(INTERACTIONS)
    reader.read_event(first)
    before = reader.state()
    predicted = reader.read_event(second, grow=False)
    assert reader.state() == before
    learned = [(slot, x) for slot, x in reader.read_event(second) if slot < len(before["names"])]
    assert predicted == learned


@pytest.mark.parametrize("grow", [True, False])
@EXAMPLES
@given(st.lists(any_events, min_size=1, max_size=4))
def test_any_event_is_read_or_refused_whole(grow: bool, events: list[Any]) -> None:
    names, hashing = Names(INTERACTIONS), Hashing(8, INTERACTIONS)
    for event in events:
        before = names.state()
        for reader in (names, hashing):
            try:
                row = reader.read_event(event, grow)
            except InvalidEventError as error:
                assert str(error)  # noqa: PT017 either outcome is right
                if reader is names:
                    assert names.state() == before
            else:
                assert len(dict(row)) == len(row)
                assert all(0 <= slot < reader.size for slot, _ in row)
                assert all(math.isfinite(x) and x != 0 for _, x in row)
        if not grow:
            assert names.size == 0
    again = from_state(names.state())
    assert again.state() == names.state()
    assert [again.slot_of(name) for name in names.names()] == list(range(names.size))
