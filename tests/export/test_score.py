"""How much a feature adds to a score, whatever its value: the bound that exports declare."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streamlearn.export.score import MixtureTerm, Term

VALUES = np.concatenate([np.linspace(-4.0, 4.0, 401), np.geomspace(4.0, 1e9, 50)])


@pytest.mark.parametrize("weight", [0.0, -1.5, 2.0])
@pytest.mark.parametrize("largest", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("wealth", [None, -4.0, 0.5, 90.0])
@pytest.mark.parametrize(("absolute", "beta", "ridge"), [(0.7, 1.0, 0.0), (0.0, 0.5, 2.0)])
def test_no_value_adds_more_than_the_bound(
    weight: float, largest: float, wealth: float | None, absolute: float, beta: float, ridge: float
) -> None:
    term = Term(weight, largest, wealth, absolute, beta, ridge)
    added = np.abs([term.at(float(x)) for x in [*VALUES, *-VALUES, largest, largest + 1e-9]])
    assert added.max() <= term.bound * (1.0 + 1e-9)
    if ridge == 0.0 and not math.isinf(term.bound):  # which alone makes it smaller than the bound
        assert added.max() == pytest.approx(term.bound, rel=1e-6)


def test_what_nothing_limits_is_infinite() -> None:
    assert Term(2.0).bound == math.inf
    assert Term(0.0).bound == 0.0
    assert Term(1.0, 0.0, wealth=1.0).bound == math.inf


def test_slots_without_a_weight_add_what_their_wealth_does() -> None:
    weights, wealth = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, -2.0])
    plain = MixtureTerm(1.0, 0.0, -math.inf, math.inf, weights)
    assert plain.used.tolist() == [1]
    columns: dict[str, Any] = {"largest": np.ones(3), "wealth": wealth, "absolute": np.ones(3)}
    betting = MixtureTerm(1.0, 0.0, -math.inf, math.inf, weights, **columns)
    assert betting.used.tolist() == [1, 2]
    adds = [any(betting.term(slot).at(x) for x in (1.0, 5.0)) for slot in range(3)]
    assert adds == [False, True, True]
    assert not plain.clipped
    assert MixtureTerm(1.0, 0.0, -1.0, math.inf, weights).clipped
    assert MixtureTerm(1.0, 0.0, -math.inf, 1.0, weights).clipped
