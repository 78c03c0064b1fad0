"""What `sl.hindsight.solve` rejects, how it reads its data, and how it starts."""

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.hindsight import METHODS, Objective, Problem, Progress, solve
from streamlearn.hindsight.bounds import plane_bound, slopes_bound
from streamlearn.hindsight.coordinate_scales import coordinate_scales

L, P = sl.losses, sl.penalties
X = np.random.default_rng(0).normal(size=(40, 5))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1, -1)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"X": np.zeros((0, 5)), "y": []}, "X"),
        ({"X": np.zeros((40, 0))}, "X"),
        ({"X": np.where(X > 2, np.nan, X)}, "column .* nan"),
        ({"X": scipy.sparse.csr_array(np.where(X > 2, np.inf, X))}, "inf"),
        ({"X": X[:, 0]}, "X"),
        ({"X": np.array([["a"] * 5] * 40)}, "X"),
        ({"y": Y[:-1]}, "40 rows"),
        ({"y": np.where(Y > 0, 1.0, np.nan)}, r"row \d+: nan"),
        ({"y": [None, *Y[1:]]}, "row 0: None"),
        ({"y": [*Y[1:], pd.NA]}, "row 39: <NA>"),
        ({"y": np.arange(40)}, "y .*Softmax"),
        ({"loss": L.Squared(), "y": ["a"] * 40}, "labels"),
        ({"loss": L.Squared(), "y": np.full(40, np.inf)}, "row 0: inf"),
        ({"loss": L.Poisson(), "y": np.arange(40) - 1.0}, "row 0: -1.0"),
        ({"loss": L.MultiSquared(), "y": Y}, "targets"),
        ({"loss": "hinge"}, "'hinge'"),
        ({"penalty": 0.1}, "0.1"),
        ({"penalty": P.Zero()}, "L2, L1 or ElasticNet"),
        ({"penalty": P.L2(0.0)}, "L2, L1 or ElasticNet"),
        ({"penalty": P.Simplex()}, "L2, L1 or ElasticNet"),
        ({"penalty": P.L1Ball(1.0)}, "L2, L1 or ElasticNet"),
        ({"loss": L.Hinge(), "method": "lbfgs"}, "Hinge"),
        ({"method": "simplex"}, "method"),
        ({"weights": np.zeros(40)}, "weights"),
        ({"weights": -np.ones(40)}, "weights"),
        ({"weights": np.ones(39)}, "weights"),
        ({"gap": -1.0}, "gap"),
        ({"gap": np.nan}, "gap"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter"),
        ({"max_iter": "3"}, "max_iter"),
        ({"method": "lbfgs", "memory": 0}, "memory"),
        ({"method": "owlqn", "memory": "some"}, "memory"),
        ({"threads": 0}, "threads"),
        ({"start": np.zeros(6)}, "start"),
        ({"start": np.full(5, np.nan)}, "start"),
    ],
)
def test_bad_input_is_rejected_by_name(changes: Any, named: str) -> None:
    given = {"X": X, "y": Y, "loss": L.Logistic(), "penalty": P.L2(0.1)} | changes
    with pytest.raises(ValueError, match=named):
        solve(**given)


@pytest.mark.parametrize("method", ["lbfgs", "owlqn"])
def test_steps_are_timed_from_the_start(method: str) -> None:
    began = time.perf_counter()
    history = solve(X, Y, L.Logistic(), P.L2(0.1), method=method).history
    limit = time.perf_counter() - began
    seconds = [0.0, *(step.seconds for step in history), limit]
    assert len(history) > 0
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("method", ["lbfgs", "owlqn"])
def test_a_memory_of_one_step_is_enough(method: str) -> None:
    options: Any = {"method": method, "gap": 1e-6}
    found = solve(X, Y, L.Logistic(), P.L2(0.1), memory=1, **options)
    expected = solve(X, Y, L.Logistic(), P.L2(0.1), **options)
    assert found.objective == pytest.approx(expected.objective, rel=1e-5)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_an_unknown_option_is_named(method: str) -> None:
    loss = L.Hinge() if method == "bundle" else L.Logistic()
    with pytest.raises(TypeError, match="option 'w'"):
        solve(X, Y, loss, P.L2(0.1), method=method, w=X)


def test_an_unsupported_penalty_is_rejected_with_the_methods_that_support_it() -> None:
    with pytest.raises(ValueError, match="use method='newton' or 'owlqn'"):
        solve(X, Y, L.Logistic(), P.L1(0.1), method="lbfgs")


def test_labels_can_be_of_any_type() -> None:
    expected = solve(X, Y, L.Logistic(), P.L2(0.1))
    for labels in (["no", "yes"], [False, True], [0, 1], [3, 7]):
        y = [labels[int(sign > 0)] for sign in Y]
        found = solve(X, y, L.Logistic(), P.L2(0.1))
        flipped = found.labels != labels  # of strings the one seen second is positive
        np.testing.assert_allclose(-found.w if flipped else found.w, expected.w, atol=1e-3)
        assert set(found.labels) == set(labels)


def test_labels_have_the_same_signs_as_in_an_estimator() -> None:

    for y in (
        ["b", "a"] * 20,
        ["a", "b"] * 20,
        [5, 2] * 20,
        [True, False] * 20,
        [1] * 40,
        [0] * 40,
    ):
        model = sl.LinearClassifier()
        model.learn_rows(X, y)
        found = solve(X, y, L.Logistic(), P.L2(0.1))
        assert found.labels == [label for label in model.labels if label in y]


def test_labels_are_in_the_order_of_the_outputs() -> None:
    y = [["red", "green", "blue"][k] for k in (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    found = solve(X, y, L.Softmax(), P.L2(0.01), fit_intercept=True)
    assert found.w.shape == (3, 5)
    assert found.intercept.shape == (3,)
    guesses = [found.labels[k] for k in (X @ found.w.T + found.intercept).argmax(axis=1)]
    assert np.mean(np.array(guesses) == np.array(y)) > 0.7


def test_an_integer_weight_equals_repeated_rows() -> None:
    weights = np.arange(40) % 3
    twice = np.repeat(np.arange(40), weights)
    one = solve(X, Y, L.Logistic(), P.L2(0.1), weights=weights, gap=1e-9)
    other = solve(X[twice], Y[twice], L.Logistic(), P.L2(0.1), gap=1e-9)
    assert one.objective == pytest.approx(other.objective, abs=1e-9)
    huge = solve(X, Y, L.Logistic(), P.L2(0.1), weights=weights * 8e307, gap=1e-9)
    assert huge.objective == pytest.approx(one.objective, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "coo", "long", "duplicates"])
def test_every_matrix_type_gives_the_same_values(dtype: Any, form: str) -> None:
    dense = (X * 3).astype(dtype)
    forms: dict[str, Any] = {
        "dense": lambda: dense,
        "fortran": lambda: np.asfortranarray(dense),
        "csr": lambda: scipy.sparse.csr_array(dense),
        "coo": lambda: scipy.sparse.coo_matrix(dense),
        "long": lambda: _long(scipy.sparse.csr_array(dense)),
        "duplicates": lambda: _twice(scipy.sparse.csr_array(dense)),
    }
    problem = Problem(forms[form](), Y, L.Logistic(), P.L2(0.1), fit_intercept=True)
    w = np.arange(6.0)
    factor = 2 if form == "duplicates" and dtype is not bool else 1
    scores = factor * dense.astype(float) @ w[:5] + w[5]
    np.testing.assert_allclose(problem.risk.scores(w), scores, rtol=1e-6)
    value, gradient = problem.risk.value_and_gradient(w)
    assert value == pytest.approx(L.Logistic().value(scores, Y * 1.0).mean())
    slopes = L.Logistic().slope(scores, Y * 1.0) / 40
    np.testing.assert_allclose(gradient[:5], factor * slopes @ dense, rtol=1e-6, atol=1e-12)
    assert gradient[5] == pytest.approx(slopes.sum())
    np.testing.assert_allclose(
        problem.matrix.squares(), np.square(factor * dense.astype(float)).sum(axis=1), rtol=1e-6
    )


def _long(csr: Any) -> Any:
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def _twice(csr: Any) -> Any:
    parts = np.repeat(csr.data, 2), np.repeat(csr.indices, 2), 2 * csr.indptr
    return scipy.sparse.csr_array(parts, shape=csr.shape)


def test_the_data_are_not_copied() -> None:
    for given in (X, scipy.sparse.csr_array(X)):
        held = Problem(given, Y, L.Logistic(), P.L2(0.1)).X
        assert held is given


def test_shards_contain_every_row_once() -> None:
    rows: Any = scipy.sparse.random(101, 7, 0.3, format="csr", random_state=1)
    y = np.arange(101) % 2
    whole = Problem(rows, y, L.Logistic(), P.L2(0.1))
    w = np.arange(7.0)
    for threads in (2, 3, 500):
        parts = Problem(rows, y, L.Logistic(), P.L2(0.1), threads=threads)
        assert parts.risk.rows == 101
        np.testing.assert_allclose(parts.risk.scores(w), whole.risk.scores(w))
        np.testing.assert_allclose(parts.risk.combine_rows(np.ones(101)), np.ones(101) @ rows)
        ours, theirs = parts.risk.value_and_gradient(w), whole.risk.value_and_gradient(w)
        assert ours[0] == pytest.approx(theirs[0])
        np.testing.assert_allclose(ours[1], theirs[1])
    with pytest.raises(ValueError, match="7 numbers"):
        whole.risk.value_and_gradient(np.zeros(6))
    with pytest.raises(ValueError, match="101 rows"):
        whole.risk.combine_rows(np.zeros(100))


def test_a_start_can_have_fewer_features() -> None:
    narrow = solve(X[:, :3], Y, L.Logistic(), P.L2(0.1), fit_intercept=True, gap=1e-9)
    problem = Problem(X, Y, L.Logistic(), P.L2(0.1), fit_intercept=True)
    flat = problem.start(narrow)
    np.testing.assert_array_equal(flat, [*narrow.w, 0, 0, narrow.intercept])
    np.testing.assert_array_equal(problem.start(flat), flat)
    given = (X, Y, L.Logistic(), P.L2(0.1))
    warm = solve(*given, fit_intercept=True, gap=1e-9)
    again = solve(*given, fit_intercept=True, gap=1e-9, start=warm, method="lbfgs")
    assert again.iterations <= 1
    several = Problem(X, np.arange(40) % 3, L.Softmax(), P.L2(0.1), fit_intercept=True)
    w = np.arange(15.0).reshape(3, 5)
    shown, intercepts = several.split(several.start(w))
    np.testing.assert_array_equal(shown, w)
    np.testing.assert_array_equal(intercepts, 0)


def test_a_start_can_have_fewer_classes() -> None:
    early = solve(X[:30], np.arange(30) % 2 * 2, L.Softmax(), P.L2(0.1), fit_intercept=True)
    problem = Problem(X, np.arange(40) % 3, L.Softmax(), P.L2(0.1), fit_intercept=True)
    w, intercept = problem.split(problem.start(early))
    np.testing.assert_array_equal(w[[0, 2]], early.w)  # the new class 1 is between them
    np.testing.assert_array_equal(intercept, [early.intercept[0], 0.0, early.intercept[1]])
    assert not w[1].any()
    again = solve(X, np.arange(40) % 3, L.Softmax(), P.L2(0.1), fit_intercept=True, start=early)
    assert again.gap <= 1e-4
    np.testing.assert_array_equal(problem.split(problem.start(early.w))[0][:2], early.w)
    for wrong in (np.zeros((4, 5)), np.zeros((3, 6)), np.zeros((5, 3)), np.zeros(16)):
        with pytest.raises(ValueError, match="start"):
            problem.start(wrong)


@pytest.mark.parametrize("loss", [L.Logistic(), L.Softmax()], ids=repr)
def test_a_plane_gives_a_bound_only_if_the_free_intercept_has_slope_zero(loss: Any) -> None:
    several = isinstance(loss, L.Softmax)
    y = np.where(Y > 0, 1.0, 0.0 if several else -1.0)
    for free in (False, True):
        problem = Problem(X, y, loss, P.L2(0.1), fit_intercept=free, outputs=1 + several)
        w = np.zeros(problem.size)
        value, gradient = problem.risk.value_and_gradient(w)
        bound = plane_bound(problem, w, value, gradient)
        if free:
            assert bound == -np.inf
            gradient[problem.size - problem.intercepts :] = 0.0
            bound = plane_bound(problem, w, value, gradient)
        inside = problem.penalized(gradient)
        assert bound == pytest.approx(value - inside @ inside / 0.2, rel=1e-12)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e5])
def test_the_scale_of_a_flat_coordinate_is_limited_by_the_largest_curvature(size: float) -> None:
    wide = np.column_stack([size * X, np.zeros(40)])
    problem = Problem(wide, Y * 1.0, L.Squared(), P.L1(0.1))
    found = coordinate_scales(problem)
    curvature = np.mean(np.square(size * X), axis=0)
    np.testing.assert_allclose(found[:5], 1.0 / np.sqrt(curvature), rtol=1e-12)
    assert found[5] == pytest.approx(1.0 / np.sqrt(1e-12 * curvature.max()), rel=1e-12)


def test_infeasible_slopes_give_no_bound() -> None:
    problem = Problem(X, Y, L.Logistic(), P.L2(0.1))
    assert slopes_bound(problem, np.full(40, 2.0)) == -np.inf


def test_an_objective_accepts_any_convex_risk() -> None:
    class Norm:
        size = 3

        def value_and_gradient(self, w: Any) -> tuple[float, Any]:
            return float(np.abs(w - 1).sum()), np.sign(w - 1)

    problem = Objective(Norm(), P.L2(1.0))
    assert problem.objective(np.zeros(3)) == 3
    progress = Progress(problem, "none", gap=0.1)
    with progress:
        raise KeyboardInterrupt
    found = progress.solution()
    assert (found.objective, found.lower_bound, found.gap) == (3, 0, 3)
    with pytest.raises(ValueError, match="lowest"):
        Objective(Norm(), P.L2(1.0), lowest=-np.inf)
