"""What is logged of a served event: the event as it will be learned, and what was served."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET

from streamlearn.serving.http.answering import impression
from streamlearn.serving.http.predicting import Prediction
from streamlearn.serving.http.roles import Roles
from streamlearn.serving.split import bucket_of, number_of
from streamlearn.stream.impressions import HEADER, read

NOW = 1_700_000_000.25
FIELDS = {"id": "id", "time": "at", "label": "clicked"}


def predictor(*labels: str, classes: bool = True) -> Any:
    return SimpleNamespace(classes=classes, labels=list(labels), learner="one", version="3-17")


@pytest.mark.parametrize(
    ("by", "score", "kept"),
    [
        (predictor(), 0.5, None),
        (predictor("a"), 0.5, None),  # whose sign may still change
        (predictor("a", "b"), 0.5, 0.5),
        (predictor(*"abc"), {"a": 0.5}, {"a": 0.5}),
        (predictor(classes=False), 0.5, 0.5),
        (predictor("a", "b"), UNSET, None),
        (predictor("a"), UNSET, None),
    ],
)
@pytest.mark.parametrize("arm", [UNSET, "two"])
@pytest.mark.parametrize("number", [None, 123_456])
def test_what_was_served(by: Any, score: Any, kept: Any, arm: Any, number: int | None) -> None:
    roles = Roles(FIELDS)
    given = Prediction(id="e1", score=score, arm=arm)
    value, key, headers = impression(given, b'{"id":"e1","x":1}', by, roles, NOW, number)
    assert key == b"e1"
    assert json.loads(value or b"") == {"id": "e1", "x": 1, "at": NOW}
    assert [name for name, _ in headers] == [HEADER]
    served = read(headers)
    assert served is not None
    assert (served.learner, served.version, served.time) == ("one", "3-17", NOW)
    assert served.bucket == bucket_of(number_of("e1") if number is None else number)
    assert served.score == kept
    assert served.arm == (None if arm is UNSET else arm)


def test_an_event_without_an_id_gets_one() -> None:
    roles, found = Roles(FIELDS), []
    for _ in range(3):
        given = Prediction(score=0.5)
        value, key, _ = impression(given, b'{"x": 1}', predictor("a", "b"), roles, NOW, None)
        assert key is not None
        assert json.loads(value or b"")["id"] == given.id == key.decode()
        found.append(key)
    assert len(set(found)) == 3


VALUES: dict[str, list[Any]] = {
    "id": ["absent", None, "e1", 7],
    "at": ["absent", None, 5.5],
    "clicked": ["absent", None, True],
}


@pytest.mark.parametrize("values", list(itertools.product(*VALUES.values())), ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_completed_events_have_an_id_and_a_time_and_no_label(
    values: tuple[Any, ...], *, nested: bool
) -> None:
    """Whether they are written as bytes or through Python objects."""
    own = {name: one for name, one in zip(VALUES, values, strict=True) if one != "absent"}
    known = {"id": "new", "at": NOW, **{k: v for k, v in own.items() if v is not None}}
    known.pop("clicked", None)
    fields = FIELDS | ({"time": "meta.at"} if nested else {})
    event, expected = dict(own), dict(known)
    if nested:
        expected["meta"] = {"at": expected.pop("at"), "k": 1}
        event["meta"] = {"k": 1} | ({"at": event.pop("at")} if "at" in event else {})
    for record in (json.dumps(event), json.dumps(event | {"x": [1]}), f"\n {json.dumps(event)}\n"):
        found = json.loads(Roles(fields).completed(record.encode(), "new", NOW))
        assert found.pop("x", [1]) == [1]
        assert found == expected


@pytest.mark.parametrize(("unit", "time"), [("s", NOW), ("ms", NOW * 1e3), ("us", NOW * 1e6)])
def test_times_are_in_the_unit_of_the_stream(unit: str, time: float) -> None:
    roles = Roles({"time": "at", "time_unit": unit})
    assert json.loads(roles.completed(b"{}", "e", NOW)) == {"at": time}
