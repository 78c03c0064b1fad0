"""Problems with a linear part, <linear, w>: every method finds the minimum and certifies it."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.hindsight import Problem
from streamlearn.hindsight.auto import auto, supporting_methods
from streamlearn.hindsight.methods import METHODS

L, P = sl.losses, sl.penalties
ROWS, FEATURES = 60, 4
GAP = 1e-4
LOSSES: list[Any] = [
    *(L.Logistic(), L.Hinge(), L.SquaredHinge()),
    *(L.Squared(), L.Quantile(0.3), L.Huber(), L.Poisson()),
    *(L.Softmax(), L.MulticlassHinge()),
]
PENALTIES = [P.L2(0.1), P.L1(0.05), P.ElasticNet(0.02, 0.05)]


def problem(loss: Any, penalty: Any, *, intercept: bool, size: float = 0.04) -> Problem:
    draw = np.random.default_rng(3)
    X = scipy.sparse.csr_array(draw.normal(size=(ROWS, FEATURES)))
    y = X.toarray() @ draw.normal(size=(FEATURES, 3)) + draw.normal(size=(ROWS, 3))
    outputs = 1
    if loss.kind == "binary":
        y = np.where(y[:, 0] > 0.0, 1.0, -1.0)
    elif loss.kind == "regression":
        y = np.abs(y[:, 0]).round() if isinstance(loss, L.Poisson) else y[:, 0]
    else:
        outputs = 3
        y = y if loss.kind == "multitarget" else y.argmax(axis=1).astype(float)
        loss = loss.bound(["a", "b", "c"]) if isinstance(loss, L.MulticlassHinge) else loss
    linear = size * draw.choice([-1.0, 1.0], FEATURES * outputs)
    if intercept:
        linear = np.append(linear, np.zeros(outputs))
    weights = draw.exponential(size=ROWS)
    given: Any = {"weights": weights, "fit_intercept": intercept, "linear": linear}
    return Problem(X, np.ascontiguousarray(y), loss, penalty, outputs=outputs, **given)


def objective(one: Problem, w: Any) -> float:
    """Return the objective, without anything that methods use."""
    wide = w.reshape(-1, one.outputs)
    scores = one.X @ wide[:FEATURES] + (wide[FEATURES:] if one.intercepts else 0.0)
    several = isinstance(one.loss, L.VectorLoss)
    losses = one.loss.value(scores if several else scores[:, 0], one.y)
    return float(one.weights @ losses + one.linear @ w + one.penalty.value(one.penalized(w)))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_methods_agree_and_certify(loss: Any, penalty: Any, intercept: bool) -> None:
    one = problem(loss, penalty, intercept=intercept)
    methods = supporting_methods(one)
    assert methods
    found = [auto(one, gap=GAP), *(each(one, gap=GAP) for each in methods)]
    values = []
    for solution in found:
        w = one.start(solution)
        values.append(objective(one, w))
        assert solution.objective == pytest.approx(values[-1], rel=1e-9, abs=1e-12)
    draw = np.random.default_rng(0)
    near = one.start(found[0])
    steps = draw.normal(size=(200, one.size)) * 10.0 ** draw.uniform(-4.0, 0.0, (200, 1))
    values += [objective(one, near + step) for step in steps]
    for solution in found:
        assert solution.lower_bound <= min(values) + 1e-9
        assert solution.gap <= GAP, solution.method


@pytest.mark.parametrize("method", ["newton", "owlqn", "bundle-ls"])
def test_a_part_larger_than_l1_has_no_false_bound(method: str) -> None:
    one = problem(L.Logistic(), P.ElasticNet(0.01, 1e-6), intercept=True, size=0.1)
    found = auto(one, gap=1e-6)
    assert found.gap <= 1e-6
    bare = problem(L.Logistic(), P.L1(0.01), intercept=True, size=0.1)
    assert METHODS[method](bare, gap=1e-6, max_iter=100).lower_bound <= found.objective + 1e-9
