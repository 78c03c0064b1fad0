"""The model of Softmax in Newton's method against NumPy."""

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.hindsight import solve
from streamlearn.hindsight.passes import RowMatrix
from streamlearn.hindsight.problem import checked_matrix
from streamlearn.hindsight.quadratic_model import selected_rows
from streamlearn.hindsight.softmax_model import SoftmaxModel

L, P = sl.losses, sl.penalties
RNG = np.random.default_rng(3)
ROWS, K = 40, 3
X = RNG.normal(size=(ROWS, 5)) * (RNG.random((ROWS, 5)) < 0.7) + 1.0
FEATURES = np.array([1, 2, 4])
PLACES, CLASSES = np.array([0, 0, 1, 2, 2]), np.array([0, 2, 1, 0, 1])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(0.02, 0.0), (0.02, 0.1), (0.0, 0.1)])
def test_the_minimizer_satisfies_the_optimality_conditions(
    l1: float, l2: float, intercept: bool
) -> None:
    shares = RNG.choice([0.0, 1.0, 2.0], size=ROWS)
    shares /= shares.sum()
    matrix = RowMatrix(checked_matrix(X))
    rows = selected_rows(matrix, FEATURES, ROWS * len(FEATURES))
    model = SoftmaxModel(rows, PLACES, CLASSES, K, shares, l1, l2, intercept)
    p = RNG.dirichlet(np.ones(K), size=ROWS)
    w, g = RNG.normal(size=(2, 5 + K * intercept))
    if intercept:
        g[5:] -= g[5:].mean()  # slopes of Softmax cancel
    ridge = np.append(np.full(5, l2), np.zeros(K * intercept))
    # a row's scores are linear in d
    A = np.zeros((ROWS, K, len(w)))
    A[:, CLASSES, np.arange(5)] = X[:, FEATURES[PLACES]]
    A[:, np.arange(K * intercept), np.arange(5, len(w))] = 1.0
    model.bend(p)
    model.begin(g, w)
    values = []
    for _ in range(2_000):
        model.descend(np.arange(5))
        values.append(model.value(model.d, model.state))
    assert (np.diff(values) <= 1e-12).all()
    d = model.step()
    scores = A @ d
    used = shares > 0.0
    np.testing.assert_allclose(model.scores(d)[used], scores[used], atol=1e-10)
    changes = p * (scores - (p * scores).sum(axis=1)[:, None])
    slope = g + np.einsum("i,ik,ikj->j", shares, changes, A) + ridge * d
    after = (w + d)[:5]
    moved = after != 0.0
    np.testing.assert_allclose(slope[:5][moved], -l1 * np.sign(after[moved]), atol=1e-8)
    assert (np.abs(slope[:5][~moved]) <= l1 + 1e-8).all()
    np.testing.assert_allclose(slope[5:], 0.0, atol=1e-8)  # the slopes are balanced


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_features_of_different_scale(fit_intercept: bool) -> None:
    rows = RNG.normal(size=(90, 4)) * [1.0, 1e3, 1e-2, 10.0] + [0.0, 4e3, 0.0, 50.0]
    y = (rows[:, 0] > 0.0).astype(int) + (rows[:, 3] > 50.0)
    found = solve(rows, y, L.Softmax(), P.L1(1e-3), fit_intercept=fit_intercept, gap=1e-6)
    assert found.method == "newton"
    assert found.gap <= 1e-6


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_start_that_is_wrong_is_left_in_few_iterations(fit_intercept: bool) -> None:
    """Rows that are far on the wrong side have hardly any curvature."""
    rows, best = RNG.normal(size=(300, 20)), RNG.normal(size=(6, 20))
    y = (rows @ best.T).argmax(axis=1)
    penalty = P.L1(1e-3)
    found = solve(
        rows, y, L.Softmax(), penalty, fit_intercept=fit_intercept, start=-5.0 * best, gap=1e-6
    )
    assert found.gap <= 1e-6
    assert found.iterations <= 25  # 8; more than twice as many as 25 without their least curvature
