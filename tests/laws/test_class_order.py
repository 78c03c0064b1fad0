"""What is learned does not depend on which of two classes comes first, for every rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamlearn.losses import Exponential
from tests.support.members import LOSSES, N, allowed, brief, estimator, pairs, stream, turn

BINARY = [loss for loss in LOSSES if loss.kind == "binary" and not isinstance(loss, Exponential)]
# weights on a simplex have one sign: they have no other side
SYMMETRIC = [(rule, penalty) for rule, penalty in pairs(*BINARY) if not penalty.on_simplex]
FIRST = 12  # events of one class


@pytest.mark.parametrize(("rule", "penalty"), SYMMETRIC, ids=brief)
def test_weights_of_the_first_class_alone_are_those_of_its_side(rule: Any, penalty: Any) -> None:
    loss = next(one for one in BINARY if allowed(rule, penalty, one))
    intercept = turn(rule, penalty) % 2 == 1
    data = stream("binary")
    for first in (False, True):
        order = sorted(range(len(data)), key=lambda i: (data.y[i] > 0) != first)
        order = order[:FIRST] + [i for i in range(len(data)) if i not in order[:FIRST]]
        one = estimator(rule, penalty, loss, fit_intercept=intercept)
        other = one.clone()
        other.know_labels([2, 5])
        for i in order:
            event = {j: float(data.X[i, j]) for j in range(N) if data.X[i, j]}
            for model in (one, other):
                model.learn_one(event, (2, 5)[int(data.y[i] > 0)], float(data.w[i]))
        assert one.labels == other.labels == [2, 5]
        assert one.weights == other.weights
        assert one.intercept == other.intercept
        states = [tables(model.state()["learner"]) for model in (one, other)]
        assert len(states[0]) == len(states[1])
        for mine, its in zip(*states, strict=True):
            np.testing.assert_array_equal(mine, its)


def tables(state: Any) -> list[Any]:
    """Return all numbers of a state, in their order."""
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, list | tuple):
        return [number for one in state for number in tables(one)]
    return [state] if isinstance(state, int | float | np.ndarray) else []
