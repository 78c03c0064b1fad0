"""Laws of every method of `sl.hindsight`; methods, losses and penalties are discovered.

A new method in the table is tested with every loss and penalty that it declares.
"""

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import SVR, LinearSVC

import streamlearn as sl
from streamlearn.hindsight import METHODS, Problem, solve
from tests.support.members import LOSSES, VECTOR_LOSSES, brief

L, P = sl.losses, sl.penalties
PENALTIES = [P.L2(0.1), P.L2(1e-3), P.L1(0.02), P.ElasticNet(0.01, 0.05)]
GAP = 1e-5
# cutting planes need O(1/gap) passes; tests/hindsight/test_bundle.py has smaller gaps
COARSE = {"bundle": 1e-1, "proximal-bundle": 5e-2, "bundle-ls": 1e-2}


@cache
def data(loss: Any, m: int = 60, n: int = 6) -> tuple[Any, Any]:
    """Return rows and labels that depend on them, for this loss."""
    draw = np.random.default_rng(5)
    if not isinstance(loss, L.Loss):
        m, n = m // 2, n // 2  # each output has its own weights and intercept
    X = draw.normal(size=(m, n)) * (draw.random((m, n)) < 0.6)
    scores = X @ draw.normal(size=(n, 3)) + 0.5 * draw.normal(size=(m, 3))
    if loss.kind == "multitarget":
        return X, scores[:, : loss.outputs or 3]
    if loss.kind == "multiclass":
        return X, scores[:, : loss.outputs or 3].argmax(axis=1)
    if loss.kind == "regression":
        counts = not loss.is_label(-0.5)
        return X, draw.poisson(np.exp(0.3 * scores[:, 0])) if counts else scores[:, 0]
    return X, np.where(scores[:, 0] > 0.2, 1, -1)


def declared() -> list[Any]:
    return [
        pytest.param(name, loss, penalty, intercept, id=f"{name}-{loss}-{penalty}-{intercept}")
        for name, method in METHODS.items()
        for loss in LOSSES + VECTOR_LOSSES
        for penalty in PENALTIES
        for intercept in (False, True)
        if method.why_unsupported(loss, penalty, fit_intercept=intercept) is None
    ]


def value(problem: Problem, w: Any, intercept: Any) -> float:
    """Return J, computed by NumPy only."""
    losses = problem.loss.value(problem.X @ w.T + intercept, problem.y)
    return float(problem.weights @ losses) + problem.penalty.value(w)


@pytest.mark.parametrize(("method", "loss", "penalty", "intercept"), declared())
def test_every_method_solves_what_it_declares(
    method: str, loss: Any, penalty: Any, intercept: bool
) -> None:
    """The objective is that of NumPy, and the bound holds at random points nearby."""
    X, y = data(loss)
    gap = COARSE.get(method, GAP)
    weights = np.random.default_rng(1).choice([1.0, 2.0, 0.0], size=len(X))
    options: dict[str, Any] = {"fit_intercept": intercept, "weights": weights}
    found = solve(X, y, loss, penalty, method=method, gap=gap, **options)
    problem = Problem(X, y, loss, penalty, **options)
    assert found.method == method
    assert found.objective == pytest.approx(value(problem, found.w, found.intercept), rel=1e-12)
    assert 0.0 <= found.gap <= gap
    assert found.gap == found.objective - found.lower_bound
    draw = np.random.default_rng(2)
    for reach in (1e-6, 1e-4, 1e-2, 1.0):
        for _ in range(10):
            w = found.w + reach * draw.normal(size=found.w.shape)
            b = found.intercept + intercept * reach * draw.normal(size=np.shape(found.intercept))
            assert found.lower_bound <= value(problem, w, b)
    steps = found.history
    assert all(b.lower_bound >= a.lower_bound for a, b in itertools.pairwise(steps))
    assert all(b.objective <= a.objective for a, b in itertools.pairwise(steps))
    assert all(step.lower_bound <= found.objective for step in steps)
    sparse = scipy.sparse.csr_array(X.astype(np.float32).astype(float))
    again = solve(sparse, y, loss, penalty, method=method, gap=gap, start=found, **options)
    assert again.objective == pytest.approx(found.objective, abs=2 * gap)


@cache
def best(loss: Any, penalty: Any, intercept: bool) -> float:
    """Return the optimum by scipy, for smooth losses: l1 by doubling the variables."""
    X, y = data(loss)
    problem = Problem(X, y, loss, penalty, fit_intercept=intercept)
    size, strength = problem.size, np.zeros(problem.size)
    problem.penalized(strength)[:] = penalty.l1

    def objective(z: Any) -> tuple[float, Any]:
        w = z[:size] - z[size:]
        total, g = problem.risk.value_and_gradient(w)
        flat = problem.penalized(w)
        problem.penalized(g)[:] += penalty.l2 * flat
        total += 0.5 * penalty.l2 * flat @ flat + strength @ (z[:size] + z[size:])
        return total, np.concatenate([g + strength, strength - g])

    options: Any = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-13, "gtol": 1e-8}
    least = scipy.optimize.minimize(
        objective,
        np.zeros(2 * size),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 2 * size,
        options=options,
    )
    return float(least.fun)


@pytest.mark.parametrize(
    ("method", "loss", "penalty", "intercept"),
    [case for case in declared() if case.values[0] not in COARSE],
)
def test_smooth_losses_reach_the_optimum_of_scipy(
    method: str, loss: Any, penalty: Any, intercept: bool
) -> None:
    if not loss.smooth:
        return  # scipy has no method for kinks; other laws test these losses
    found = solve(*data(loss), loss, penalty, method=method, fit_intercept=intercept, gap=GAP)
    least = best(loss, penalty, intercept)
    assert found.lower_bound <= least + 1e-9
    assert least <= found.objective + 1e-7


def scikit(loss: Any, penalty: Any, m: int) -> Any:
    """Return the scikit-learn model that solves the same problem, or None if there is none."""
    l1, l2 = penalty.l1, penalty.l2
    always: dict[str, Any] = {"fit_intercept": False, "tol": 1e-9, "max_iter": 1_000_000}
    models: dict[str, Any] = {
        "Squared L1": lambda: Lasso(l1, **always),
        "Squared L2": lambda: Ridge(l2 * m, **always),
        "Squared ElasticNet": lambda: ElasticNet(l1 + l2, l1_ratio=l1 / (l1 + l2), **always),
        "Logistic L1": lambda: LogisticRegression(
            C=1 / (l1 * m), l1_ratio=1.0, solver="liblinear", **always
        ),
        "Logistic L2": lambda: LogisticRegression(C=1 / (l2 * m), **always),
        "Hinge L2": lambda: LinearSVC(C=1 / (l2 * m), loss="hinge", **always),
        # scikit-learn's loss has no factor 1/2
        "SquaredHinge L2": lambda: LinearSVC(C=0.5 / (l2 * m), loss="squared_hinge", **always),
    }
    make = models.get(f"{type(loss).__name__} {type(penalty).__name__}")
    return make() if make is not None else None


@pytest.mark.parametrize("penalty", PENALTIES, ids=brief)
@pytest.mark.parametrize(
    "loss", [L.Squared(), L.Logistic(), L.Hinge(), L.SquaredHinge()], ids=brief
)
def test_every_method_reaches_the_optimum_of_scikit_learn(loss: Any, penalty: Any) -> None:
    X, y = data(loss)
    model = scikit(loss, penalty, len(y))
    if model is None:
        return  # no model for this pair
    w = np.ravel(model.fit(X, y).coef_)
    theirs = value(Problem(X, y, loss, penalty), w, 0.0)
    for name, method in METHODS.items():
        if method.why_unsupported(loss, penalty, fit_intercept=False) is None:
            gap = COARSE.get(name, GAP)
            found = solve(X, y, loss, penalty, method=name, gap=gap)
            assert found.lower_bound <= theirs
            assert found.objective <= theirs + gap


def test_support_vector_regression() -> None:
    loss, penalty = L.EpsilonInsensitive(0.1), P.L2(0.1)
    X, y = data(loss)
    model = SVR(kernel="linear", C=1 / (0.1 * len(y)), epsilon=0.1, tol=1e-8).fit(X, y)
    problem = Problem(X, y, loss, penalty, fit_intercept=True)
    theirs = value(problem, model.coef_[0], model.intercept_[0])
    for name, method in METHODS.items():
        if method.why_unsupported(loss, penalty, fit_intercept=True) is None:
            gap = COARSE.get(name, GAP)
            found = solve(X, y, loss, penalty, method=name, gap=gap, fit_intercept=True)
            assert found.lower_bound <= theirs + 1e-9
            assert found.objective <= theirs + gap


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("label", [1, -1, 0, "ham"])
@pytest.mark.parametrize(("name", "method"), METHODS.items())
def test_a_single_class_is_well_posed(name: str, method: Any, label: Any, intercept: bool) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)) + 1.0
    for loss in (L.Hinge(), L.Logistic(), L.Softmax()):
        if method.why_unsupported(loss, P.L2(0.1), fit_intercept=intercept) is None:
            found = solve(
                X, [label] * 20, loss, P.L2(0.1), method=name, fit_intercept=intercept, gap=1e-3
            )
            assert found.gap <= 1e-3
            assert found.labels == [label]


@pytest.mark.parametrize(("name", "method"), METHODS.items())
def test_interrupting_returns_the_best_solution_so_far(name: str, method: Any) -> None:
    for loss, penalty in ((L.Logistic(), P.L2(1e-3)), (L.Hinge(), P.L2(1e-3))):
        if method.why_unsupported(loss, penalty, fit_intercept=False) is not None:
            continue
        X, y = data(loss)
        for last in (0, 2):

            def interrupt(step: Any, last: int = last) -> None:
                if step.iteration >= last:
                    raise KeyboardInterrupt

            found = solve(X, y, loss, penalty, method=name, gap=0.0, callback=interrupt)
            problem = Problem(X, y, loss, penalty)
            assert found.objective == pytest.approx(value(problem, found.w, 0.0), rel=1e-12)
            assert 0.0 <= found.gap < np.inf
            full = solve(X, y, loss, penalty, method=name, gap=GAP)
            assert found.lower_bound <= full.objective
            assert found.iterations <= full.iterations
            stopped = solve(X, y, loss, penalty, method=name, gap=0.0, callback=lambda _: True)
            assert stopped.iterations <= 1


@pytest.mark.parametrize(("name", "method"), METHODS.items())
def test_the_solution_does_not_depend_on_threads(name: str, method: Any) -> None:
    for loss, penalty in ((L.Logistic(), P.L2(0.1)), (L.Hinge(), P.L2(0.1))):
        if method.why_unsupported(loss, penalty, fit_intercept=False) is None:
            X, y = data(loss)
            found = [solve(X, y, loss, penalty, method=name, threads=k, gap=GAP) for k in (1, 2, 7)]
            for one in found[1:]:
                assert one.objective == pytest.approx(found[0].objective, abs=GAP)
