"""The hash that the guide to fields specifies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlearn as sl

GUIDE = (Path(__file__).parents[2] / "docs/guides/fields.md").read_text(encoding="utf-8")
VECTORS = re.findall(r"^\| (.+?) \| `([0-9a-f]{16})` \|$", GUIDE, re.MULTILINE)
SOURCE = re.search(r"^>>> (def feature_hash.*?)^>>> ", GUIDE, re.MULTILINE | re.DOTALL)
EXAMPLES = settings(derandomize=True, max_examples=200, deadline=None, database=None)

assert SOURCE is not None
SPECIFIED: dict[str, object] = {}
exec(re.sub(r"^\.\.\. ?", "", SOURCE[1], flags=re.MULTILINE), SPECIFIED)  # noqa: S102 - the guide


def specified(name: str) -> int:
    found = SPECIFIED["feature_hash"]
    assert callable(found)
    return int(found(name))


@pytest.mark.parametrize(("name", "value"), VECTORS)
def test_vectors(name: str, value: str) -> None:
    name = "" if name == "(empty)" else name.strip("`")
    assert f"{specified(name):016x}" == value
    for bits in (1, 20, 30):
        assert sl.Hashing(bits).slot_of(name) == int(value, 16) % 2**bits


@EXAMPLES
@given(st.text(max_size=70))
def test_every_name(name: str) -> None:
    assert sl.Hashing(30).slot_of(name) == specified(name) % 2**30


def test_there_are_vectors() -> None:
    assert len(VECTORS) >= 7
