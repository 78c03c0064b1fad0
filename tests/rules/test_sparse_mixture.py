"""The default rule under l1 and l2: its intercept, its limits, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from tests.reference.losses import Logistic
from tests.reference.mixture import Mixture
from tests.reference.penalties import ElasticNet
from tests.support.members import N, close, stream_for

LOGISTIC = sl.losses.Logistic()


def test_intercept_is_outside_the_penalty() -> None:
    data = stream_for(LOGISTIC)
    model = sl.LinearClassifier(penalty=sl.penalties.ElasticNet(0.02, 0.1))
    scores = model.progressive_rows(data.rows, data.y, data.w)
    slow = Mixture(N + 1, Logistic(), ElasticNet(0.02, 0.1))
    slow.free = 1
    for i in np.flatnonzero(data.w):
        slow.step(np.r_[1.0, data.X[i]], data.y[i], data.w[i])
        assert scores[i] == pytest.approx(slow.score, rel=1e-9, abs=1e-12)
    close(np.r_[model.intercept, model.coef(N)], slow.w)
    assert model.penalty_value == pytest.approx(slow.penalty.value(slow.w[1:]))
    assert model.objective.intercept == "free"


def test_strong_penalty_leaves_only_the_intercept() -> None:
    data = stream_for(LOGISTIC, events=400)
    model = sl.SparseClassifier(l1=10.0)
    model.learn_rows(data.rows, data.y)
    assert model.nonzero == 0
    assert model.penalty_value == 0.0
    assert model.intercept != 0.0


@pytest.mark.parametrize("penalty", [sl.penalties.L1(0.0), sl.penalties.ElasticNet(0.0, 0.0)])
def test_strength_0_is_the_default(penalty: Any) -> None:
    data = stream_for(LOGISTIC)
    plain, zero = sl.LinearClassifier(), sl.LinearClassifier(penalty=penalty)
    for model in (plain, zero):
        model.learn_rows(data.rows, data.y, data.w)
    np.testing.assert_array_equal(zero.coef(N), plain.coef(N))


def test_nearly_no_strength_is_nearly_the_default() -> None:
    data = stream_for(LOGISTIC, events=4000)
    losses = []
    for penalty in (None, sl.penalties.L1(1e-9)):
        scores = sl.LinearClassifier(penalty=penalty).progressive_rows(data.rows, data.y)
        losses.append(float(np.logaddexp(0.0, -data.y * scores).mean()))
    assert losses[1] < 1.01 * losses[0]


def test_regressor_and_classes_have_exact_zeros() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 20))
    score = 2.0 * X[:, 0] - X[:, 1]
    regressor = sl.SparseRegressor(l1=0.05)
    regressor.learn_rows(X, 5.0 + score + 0.1 * rng.normal(size=3000))
    assert np.flatnonzero(regressor.coef(20)).tolist() == [0, 1]
    assert regressor.intercept == pytest.approx(5.0, abs=0.1)
    classifier = sl.SparseClassifier(l1=0.02)
    classifier.learn_rows(X, np.digitize(score, [-1.0, 1.0]))
    assert not np.any(classifier.coef(20)[:, 2:])


@pytest.mark.parametrize("penalty", [sl.penalties.Berhu(0.1, 0.2), sl.penalties.Ball(1.0)])
def test_other_penalties_are_refused(penalty: Any) -> None:
    with pytest.raises(sl.IncompatibleError, match="DualAveraging"):
        sl.LinearClassifier(penalty=penalty)


def test_softmax_is_refused() -> None:
    with pytest.raises(sl.IncompatibleError, match="scalar loss"):
        sl.LinearClassifier(loss=sl.losses.Softmax(), penalty=sl.penalties.L1(1e-3))


@pytest.mark.parametrize("great", [1e80, 1e155, 1e308])
def test_extreme_values_are_ignored(great: float) -> None:
    model = sl.SparseClassifier()
    for i in range(30):
        model.learn_one({"a": 1.0, "b": great if i == 20 else 0.5 * (i % 3)}, i % 2 == 0)
    assert model.steps == 30
    assert np.isfinite(list(model.weights.values())).all()
