"""The models of Newton's method against NumPy, and what its working set does."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.hindsight import Problem, solve
from streamlearn.hindsight.passes import RowMatrix
from streamlearn.hindsight.problem import checked_matrix
from streamlearn.hindsight.quadratic_model import ColumnModel, GramModel, selected_rows
from streamlearn.hindsight.working_set import WorkingSet, minimize

L, P = sl.losses, sl.penalties
RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(30, 8)) * (RNG.random((30, 8)) < 0.6)
FEATURES = np.array([1, 2, 5, 7])
MODELS = [ColumnModel, GramModel]


def model_of(kind: Any, X: Any, l1: float, l2: float, intercept: bool) -> Any:
    matrix = RowMatrix(checked_matrix(X))
    entries = int(matrix.column_counts()[FEATURES].sum())
    return kind(selected_rows(matrix, FEATURES, entries), l1, l2, intercept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [None, np.int32, np.int64])
def test_models_read_every_matrix_type(kind: Any, dtype: Any, index: Any, intercept: bool) -> None:
    X: Any = DENSE.astype(dtype)
    if index is not None:
        X = scipy.sparse.csr_array(X)
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    model = model_of(kind, X, 0.1, 0.0, intercept)
    d = RNG.normal(size=4 + intercept)
    scores = DENSE.astype(dtype).astype(float)[:, FEATURES] @ d[:4] + (d[4] if intercept else 0.0)
    np.testing.assert_allclose(model.scores(d), scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("l1", "l2"), [(0.3, 0.0), (0.3, 0.2), (0.0, 0.1)])
def test_the_minimizer_satisfies_the_optimality_conditions(
    kind: Any, l1: float, l2: float, intercept: bool
) -> None:
    A = np.column_stack([DENSE[:, FEATURES], np.ones((30, int(intercept)))])
    model = model_of(kind, DENSE, l1, l2, intercept)
    w, g = RNG.normal(size=A.shape[1]), RNG.normal(size=A.shape[1])
    w[0] = 0.0
    ridge = np.append(np.full(4, l2), np.zeros(int(intercept)))
    for h in (RNG.random(30), RNG.random(30)):  # the second one replaces the first
        model.bend(h)
        model.begin(g, w)
        minimize(model, 1e-10)
        d = model.step()
        slope = g + A.T @ (model.h * (A @ d)) + ridge * d
        after = (w + d)[:4]
        moved = after != 0.0
        np.testing.assert_allclose(slope[:4][moved], -l1 * np.sign(after[moved]), atol=0.1)
        tight = model_of(kind, DENSE, l1, l2, intercept)
        tight.bend(h)
        tight.begin(g, w)
        for _ in range(5_000):
            tight.descend(np.arange(4))
        d = tight.step()
        slope = g + A.T @ (h * (A @ d)) + ridge * d
        after = (w + d)[:4]
        moved = after != 0.0
        np.testing.assert_allclose(slope[:4][moved], -l1 * np.sign(after[moved]), atol=1e-9)
        assert (np.abs(slope[:4][~moved]) <= l1 + 1e-9).all()
        np.testing.assert_allclose(slope[4:], 0.0, atol=1e-9)  # the slopes are balanced


@pytest.mark.parametrize("intercept", [False, True])
def test_both_models_take_the_same_steps(intercept: bool) -> None:
    """With an intercept too, which moves with each coordinate: epochs of it alone take ages."""
    steps = []
    for kind in MODELS:
        model = model_of(kind, DENSE + 3.0, 0.1, 0.2, intercept)
        model.bend(np.linspace(0.5, 1.5, 30))
        model.begin(np.linspace(-1.0, 1.0, 4 + intercept), np.zeros(4 + intercept))
        slopes = [model.descend(np.array([2, 0, 1, 3])) for _ in range(2)]
        values = model.value(model.d, model.state)
        steps.append([*model.step(), *slopes, values])
    one, other = steps
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_matrix_keeps_curvatures_that_hardly_changed() -> None:
    model = model_of(GramModel, DENSE, 0.1, 0.0, False)
    h = np.ones(30)
    model.bend(h)
    near = h * 1.01
    near[3] = 2.0
    model.bend(near)
    np.testing.assert_array_equal(np.flatnonzero(model.h != 1.0), [3])


def test_the_set_stays_while_it_has_all_that_is_needed() -> None:
    X = RNG.normal(size=(50, 600))
    problem = Problem(X, np.sign(X[:, 0]), L.Logistic(), P.L1(1.0))
    working = WorkingSet(problem)
    w, g = np.zeros(600), np.zeros(600)
    g[:20] = 2.0
    first = working.model(w, g)
    np.testing.assert_array_equal(working.coordinates, np.arange(20))
    g[15:20] = 0.0
    assert working.model(w, g) is first
    w[300] = 1.0
    second = working.model(w, g)
    assert second is not first
    assert 300 in working.coordinates
    g[:] = np.arange(600) + 2.0  # all are above l1: the steepest ones first
    working.model(w, g)
    np.testing.assert_array_equal(working.coordinates, [300, *range(400, 600)])


def test_single_rows_do_not_stretch_the_step() -> None:
    """Rows that are far on the wrong side have hardly any curvature."""
    X = np.column_stack([RNG.normal(size=(200, 5)), 100.0 * np.eye(200, 40)])
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    start = np.append([3.0, 0.0, 0.0, 0.0, 0.0], -y[:40] * 0.3)  # wrong by 30
    found = solve(X, y, L.Logistic(), P.L1(1e-4), method="newton", start=start, gap=1e-6)
    assert found.gap <= 1e-6
    assert found.iterations <= 25


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_penalty_above_the_largest_slope_is_certified_at_once(fit_intercept: bool) -> None:
    y = np.where(DENSE[:, 1] > 0.2, 1.0, -1.0)
    for loss in (L.Logistic(), L.SquaredHinge(), L.Huber()):
        found = solve(
            DENSE, y, loss, P.L1(10.0), method="newton", fit_intercept=fit_intercept, gap=1e-9
        )
        assert not found.w.any()
        assert found.gap <= 1e-9
        assert found.iterations <= 8
