"""Mixture: members that can overflow."""

from __future__ import annotations

import numpy as np
import pytest

import streamlearn as sl


@pytest.mark.parametrize("great", [1e155, 1e200, 1e308])
def test_row_that_would_overflow_a_member_is_rejected(great: float) -> None:
    rules = [sl.rules.GradientDescent(0.1), sl.rules.CoinBetting()]
    model = sl.LinearClassifier(sl.rules.Mixture(rules))
    for i in range(30):
        model.learn_one({"a": 1.0, "b": 0.5 * (i % 3)}, i % 2 == 0)
    weights = model.weights
    with pytest.raises(sl.DivergenceError):
        model.learn_one({"a": great}, True)
    with pytest.raises(sl.DivergenceError):
        model.learn_one({"new": great, "a": great}, False)
    assert model.weights == weights
    assert "new" not in model.reader.names()


@pytest.mark.parametrize("great", [1e155, 1e200, 1e308])
def test_default_learns_rows_that_would_overflow_other_rules(great: float) -> None:
    model = sl.LinearClassifier()
    for i in range(30):
        model.learn_one({"a": 1.0, "b": great if i == 20 else 0.5 * (i % 3)}, i % 2 == 0)
    assert model.steps == 30
    assert np.isfinite(list(model.weights.values())).all()
