"""PassiveAggressive has the weights of river's and of scikit-learn's estimators."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from river import linear_model
from sklearn.linear_model import SGDClassifier, SGDRegressor

import streamlearn as sl

N, D = 300, 6
Variant = Literal["", "I", "II"]
MODES: dict[Variant, int] = {"": 0, "I": 1, "II": 2}  # river's
each_variant = pytest.mark.parametrize("variant", MODES)
each_aggressiveness = pytest.mark.parametrize("C", [0.03, 1.0])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    draws = np.random.default_rng(0)
    return draws.normal(size=(N, D)) * (draws.random((N, D)) < 0.6)


@pytest.fixture(scope="module")
def targets(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows @ np.arange(1.0, D + 1.0) + np.sin(np.arange(N)))


def of_sklearn(variant: Variant, C: float) -> dict[str, Any]:
    """One pass without an intercept; with a large eta0, the steps of pa1 are not limited."""
    options = {"fit_intercept": False, "shuffle": False, "max_iter": 1, "tol": None}
    rate = "pa2" if variant == "II" else "pa1"
    return options | {"penalty": None, "learning_rate": rate, "eta0": C if variant else 1e12}


@each_variant
@each_aggressiveness
def test_classifier(variant: Variant, C: float, rows: np.ndarray, targets: np.ndarray) -> None:
    labels = targets > 0.5
    rule, loss = sl.rules.PassiveAggressive(variant, C), sl.losses.Hinge()
    model = sl.LinearClassifier(rule, loss, fit_intercept=False)
    model.learn_rows(rows, labels)
    river = linear_model.PAClassifier(C, MODES[variant], learn_intercept=False)
    for row, label in zip(rows, labels.tolist(), strict=True):
        river.learn_one(dict(enumerate(row)), label)
    weights = [river.weights[j] for j in range(D)]
    np.testing.assert_allclose(model.coef(D), weights, rtol=1e-9)
    sklearn = SGDClassifier(loss="hinge", **of_sklearn(variant, C)).fit(rows, labels)
    np.testing.assert_allclose(model.coef(D), sklearn.coef_[0], rtol=1e-9)


@each_variant
@each_aggressiveness
def test_regressor(variant: Variant, C: float, rows: np.ndarray, targets: np.ndarray) -> None:
    """Not compared with river's, whose loss depends on the sign of the error."""
    rule, loss = sl.rules.PassiveAggressive(variant, C), sl.losses.EpsilonInsensitive(0.1)
    model = sl.LinearRegressor(rule, loss, fit_intercept=False)
    model.learn_rows(rows, targets)
    options = of_sklearn(variant, C) | {"loss": "epsilon_insensitive", "epsilon": 0.1}
    sklearn = SGDRegressor(**options).fit(rows, targets)
    np.testing.assert_allclose(model.coef(D), sklearn.coef_, rtol=1e-9)


def test_losses_without_a_closed_form_are_refused() -> None:
    for rule in (sl.rules.PassiveAggressive(), sl.rules.AROW()):
        with pytest.raises(sl.IncompatibleError, match="Hinge"):
            sl.LinearClassifier(rule, sl.losses.Logistic())
    with pytest.raises(ValueError, match="variant"):
        sl.rules.PassiveAggressive("III")  # type: ignore[arg-type]
