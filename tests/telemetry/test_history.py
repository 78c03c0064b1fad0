"""Curves that are kept over restarts, thinned, and freed of learners that are gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamlearn.telemetry import history
from streamlearn.telemetry.history import EVENTS, TIME, History


def test_thinning_keeps_some_point_of_each_curve() -> None:
    curves = History(max_points=8)
    for events in range(1, 400):
        if curves.due(events):
            name = "brief" if 20 < events < 30 else "kept"
            curves.add(events, float(events), {name: float(events)})
            assert len(curves) < 8
            assert {len(column) for column in curves.columns.values()} == {len(curves)}
    assert set(curves.columns) == {EVENTS, TIME, "kept", "brief"}
    [brief] = [value for value in curves.columns["brief"] if value is not None]
    assert 20.0 < brief < 30.0
    assert curves.columns[EVENTS][0] == 1
    assert curves.columns[EVENTS] == sorted(curves.columns[EVENTS])


def test_only_so_many_curves_are_kept() -> None:
    curves = History()
    curves.add(1, 0.0, {str(k): float(k) for k in range(history.MAX_COLUMNS + 9)})
    assert len(curves.columns) == history.MAX_COLUMNS


def test_curves_are_restored_with_their_gaps() -> None:
    curves = History()
    curves.add(1, 0.06, {"a": 0.123456789, "b": None, "c": float("inf")})
    curves.add(5, 2.0, {"a": None, "d": 7.0})
    again = History()
    again.restore(curves.state())
    assert again.columns == curves.columns
    assert again.columns["a"] == [0.123457, None]
    assert again.columns[TIME] == [0.1, 2.0]
    assert all(type(events) is int for events in again.columns[EVENTS])
    assert again.stride == curves.stride
    again.restore({**curves.state(), "stride": 0})
    assert again.stride == 1


@pytest.mark.parametrize(
    "columns",
    [
        {EVENTS: [1.0]},
        {TIME: [1.0]},
        {EVENTS: [1.0], TIME: [1.0], "a": []},
        {EVENTS: [1.0, 2.0], TIME: [1.0]},
    ],
)
def test_curves_of_unlike_length_are_refused(columns: dict[str, Any]) -> None:
    curves = History()
    state = {"stride": 1, "columns": {name: np.array(one) for name, one in columns.items()}}
    with pytest.raises(ValueError, match="columns"):
        curves.restore(state)
    assert len(curves) == 0


def test_a_client_is_sent_what_is_new_unless_points_were_thinned() -> None:
    curves = History()
    for events in (1, 2, 3):
        curves.add(events, 0.0, {"a": float(events)})
    assert curves.snapshot()["whole"]
    some = curves.snapshot(after=1, stride=curves.stride)
    assert (some["whole"], some["life"]["a"]) == (False, [2.0, 3.0])
    assert curves.snapshot(after=3, stride=curves.stride)["life"][EVENTS] == []
    assert curves.snapshot(after=1, stride=curves.stride + 1)["whole"]
