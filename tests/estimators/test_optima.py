"""Many passes over small data reach the optima of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression, SGDOneClassSVM
from sklearn.svm import LinearSVC

import streamlearn as sl

L, P, R = sl.losses, sl.penalties, sl.rules


def data(n: int = 100, d: int = 6) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, d))
    w = np.array([2.0, -1.0, 0.5, 0.0, 0.0, 0.0])[:d]
    return X, X @ w + 0.5 * draw.normal(size=n)


def objective(w: Any, X: Any, y: Any, loss: Any, penalty: Any) -> float:
    return float(np.mean(loss.value(X @ w, y)) + penalty.value(np.asarray(w, dtype=float)))


def learned(estimator: Any, X: Any, y: Any, passes: int) -> Any:
    draw = np.random.default_rng(1)
    for _ in range(passes):
        order = draw.permutation(len(X))
        estimator.learn_rows(X[order], y[order])
    return estimator.coef(X.shape[1])


@pytest.mark.parametrize("batch", [1, 10])
def test_pegasos_reaches_the_svm(batch: int) -> None:
    X, y = data()
    labels = np.where(y > 0, 1, -1)
    strength = 0.1
    loss, penalty = L.Hinge(), P.L2(strength)
    best = LinearSVC(
        C=1.0 / (strength * len(y)), loss="hinge", fit_intercept=False, max_iter=100_000, tol=1e-8
    ).fit(X, labels)
    least = objective(best.coef_[0], X, labels, loss, penalty)
    model = sl.LinearClassifier(
        R.Pegasos(), loss, penalty, fit_intercept=False, average="tail", batch=batch
    )
    w = learned(model, X, labels, 300)
    assert least <= objective(w, X, labels, loss, penalty) + 1e-9 <= 1.01 * least
    assert np.allclose(w, best.coef_[0], atol=0.05)


@pytest.mark.parametrize(
    "rule",
    [
        R.DualAveraging(),
        R.DualAveraging(schedule="zero"),
        R.ForwardBackward(sl.rules.schedules.Inverse(10.0)),
        R.Pegasos(),
        R.Proximal(radius=5.0),
        R.OptimisticProximal(),
    ],
    ids=repr,
)
def test_l2_logistic_regression(rule: Any) -> None:
    X, y = data()
    labels = np.where(y > 0, 1, -1)
    strength = 0.1
    loss, penalty = L.Logistic(), P.L2(strength)
    best = LogisticRegression(C=1.0 / (strength * len(y)), fit_intercept=False, tol=1e-10)
    best.fit(X, labels)
    least = objective(best.coef_[0], X, labels, loss, penalty)
    model = sl.LinearClassifier(rule, loss, penalty, fit_intercept=False, average="tail")
    w = learned(model, X, labels, 300)
    assert least <= objective(w, X, labels, loss, penalty) + 1e-9 <= 1.01 * least


@pytest.mark.parametrize(
    "rule",
    [
        R.DualAveraging(gamma=5.0),
        R.ForwardBackward(sl.rules.schedules.InverseSqrt(0.1)),
        R.AdaGradDualAveraging(0.5),
    ],
    ids=repr,
)
def test_lasso(rule: Any) -> None:
    X, y = data()
    strength = 0.2
    loss, penalty = L.Squared(), P.L1(strength)
    best = Lasso(alpha=strength, fit_intercept=False, tol=1e-10).fit(X, y).coef_
    least = objective(best, X, y, loss, penalty)
    model = sl.LinearRegressor(rule, loss, penalty, fit_intercept=False)
    w = learned(model, X, y, 500)
    assert least <= objective(w, X, y, loss, penalty) + 1e-9 <= 1.03 * least
    if not isinstance(rule, R.ForwardBackward):  # its last iterate is as noisy as its last event
        assert (w != 0.0).tolist() == (best != 0.0).tolist()


def test_novelty_reaches_the_one_class_svm() -> None:
    """SGDOneClassSVM also fits rho; with its rho as the threshold, both have the same optimum."""
    X = data()[0] + 2.0
    nu = 0.3
    svm = SGDOneClassSVM(nu=nu, max_iter=2000, tol=None, random_state=0, average=1000).fit(X)
    rho = float(svm.offset_[0])
    # nu/2 |w|^2 + mean of max(0, rho - w x), up to terms without w
    loss, penalty = L.Novelty(max(rho, 0.0)), P.L2(nu)
    model = sl.LinearClassifier(R.Pegasos(), loss, penalty, fit_intercept=False, average="tail")
    w = learned(model, X, np.ones(len(X)), 300)
    ours = objective(w, X, np.ones(len(X)), loss, penalty)
    theirs = objective(svm.coef_, X, np.ones(len(X)), loss, penalty)
    assert rho > 0.0
    assert ours <= 1.01 * theirs
    agree = ((X @ w >= rho) == (svm.predict(X) > 0)).mean()
    assert agree >= 0.93
