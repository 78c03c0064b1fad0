"""Texts that write a number or a bool: one value has one feature, however it is spelled."""

from __future__ import annotations

import re
from typing import Any

import pytest

import streamlearn as sl
from tests.features.test_damaged_times import damaged
from tests.reference import csv_text

NUMBERS = ["0", "-7", "+5", ".5", "-.5", "+.5", "5.", "-0.0", "12.50", "1e3", "+1.5E-07", " 8\t"]
TEXTS = ["12.0", "-3.000", "-0", "-0.0", "0.10", "00.0", ".0", "-.0", "19.00", "True", "FALSE"]


def features(kind: str, value: Any) -> dict[str, float] | None:
    """What a field f becomes; None: it is refused."""
    names = sl.Names(fields={"f": kind})
    try:
        return {str(names.name_of(slot)): x for slot, x in names.read_event({"f": value})}
    except sl.InvalidEventError:
        return None


@pytest.mark.parametrize("text", NUMBERS)
def test_a_text_is_a_number_as_the_grammar_says(text: str) -> None:
    for one in damaged(text, "0159+-.eE n"):
        value = csv_text.number(one)
        want = None if value is None else {"f": float(value)} if value else {}
        assert features("number", one) == want, one
        edges = features("buckets(-1, 0, 1)", one)
        assert (edges is None) == (value is None), one
        item = features("map", f"a:{one.strip()}")
        if " " not in one.strip() and "\t" not in one.strip() and one.strip():
            want = None if value is None else {"f.a": float(value)} if value else {}
            assert item == want, one


def spelled(text: str) -> str:
    """The one form of a text: integers without `.0`, bools in lowercase."""
    whole = re.fullmatch(r"(-?[0-9]+)\.0+", text)
    text = text if whole is None else whole[1]
    text = text.lower() if text.lower() in {"true", "false"} else text
    return "0" if text == "-0" else text


@pytest.mark.parametrize("text", TEXTS)
def test_a_category_has_one_spelling(text: str) -> None:
    for one in damaged(text, "0159-.ae@`"):
        assert features("category", one) == {f"f={spelled(one)}": 1.0}
        if one:
            assert features("list", one) == {f"f={spelled(one)}": 1.0}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-0.0, "0"), (-3, "-3"), (2.0, "2"), (0.1, "0.1"), (1e15, "1000000000000000.0"),
        (-1e15, "-1000000000000000.0"), (1e15 - 1, "999999999999999"), (1e300, "1e+300"),
        (2**63, "9223372036854775808"), (-(10**20), "-100000000000000000000"), (True, "true"),
        (False, "false"),
    ],
)  # fmt: skip
def test_a_category_of_a_value_is_its_shortest_text(value: Any, text: str) -> None:
    assert features("category", value) == {f"f={text}": 1.0}
    assert features("list", [value]) == {f"f={text}": 1.0}
    assert features("map", {"a": value}) == ({"f.a": float(value)} if value else {})


MOST = 1 << 16  # features of one field


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        ("text", "a " * MOST),
        ("text(ngrams=2)", "a " * (MOST // 2)),
        ("text(chars=3)", "a" * (MOST - 2)),
        ("text(words, chars=3)", "a" * (MOST - 3)),
        ("list", " ".join(map(str, range(MOST)))),
        ("map", " ".join(map(str, range(MOST)))),
    ],
)
def test_a_field_gives_at_most_so_many_features(kind: str, fits: str) -> None:
    assert features(kind, fits)
    assert features(kind, f"{fits} b") is None


def test_a_text_has_at_most_a_mebibyte() -> None:
    assert features("text", "a" * (1 << 20)) is not None
    assert features("text", "a" * ((1 << 20) + 1)) is None
