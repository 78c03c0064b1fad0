"""Roles of fields that are refused, and events without the object that holds them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from streamlearn.errors import InvalidEventError
from streamlearn.stream import Fields
from tests.support.refusals import raised, unreached

REFUSED: list[dict[str, Any]] = [
    {"time_unit": "h"},
    {"kept": 0.0},
    {"kept": 1.5},
    {"kept": float("nan")},
    {"label": "y", "id": "y"},
    {"weight": "t", "time": "t"},
    {"labels": [1, True]},
    {"labels": ["a", "b", "a"]},
    {"labels": ["a", "b"], "positive": ["c"]},
    {"labels": "ab"},
    {"positive": {"a": 1}},
    {"positive": 5},
    {"labels": [None, 1]},
    {"ignored": ["a", 5]},
]
ACCEPTED: list[dict[str, Any]] = [
    {"kept": 1.0},
    {"kept": 1e-9},
    {"label": None, "id": "y"},
    {"labels": ["a", "b"], "positive": ["b"]},
    {"labels": ("1", 1), "positive": iter([1])},
    {"ignored": {"a", "b"}},
]


@pytest.mark.parametrize("given", REFUSED)
def test_roles_that_contradict_each_other_are_refused(given: dict[str, Any]) -> None:
    raised(partial(Fields, **given), ValueError)


@pytest.mark.parametrize("given", ACCEPTED)
def test_roles_that_just_do_not_are_accepted(given: dict[str, Any]) -> None:
    found = Fields(**given)
    for name in ("positive", "labels", "ignored"):
        assert isinstance(getattr(found, name), tuple | None)


@pytest.mark.parametrize("record", [5, {}, {"data": 5}, {"data": {"inner": []}}, [{"data": {}}]])
def test_a_record_without_the_object_is_invalid(record: Any) -> None:
    with pytest.raises(InvalidEventError) as caught:
        Fields(root="data.inner").enter(record)
    assert caught.value.field == "data.inner"
    assert Fields(root="data.inner").enter({"data": {"inner": {"a": 1}}}) == ({"a": 1}, {})


def test_every_refusal_has_a_row() -> None:
    reached = {site for given in REFUSED for site in raised(partial(Fields, **given), ValueError)}
    reached |= raised(partial(Fields(root="data").enter, {}), InvalidEventError)
    assert unreached(["streamlearn.stream.formats.fields"], reached) == set()
