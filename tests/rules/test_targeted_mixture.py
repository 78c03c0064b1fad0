"""A number of weights in place of a strength: it is kept, and the strength settles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from tests.support.members import Vector, stream_for

TARGET = sl.penalties.TargetNonzero
LOGISTIC = sl.losses.Logistic()


def steering(model: Any) -> Any:
    return model.rules[0]


def dense_stream(rng: np.random.Generator) -> tuple[Any, Vector]:
    """30 of 60 features matter, ever less."""
    X = rng.normal(size=(6000, 60))
    score = X @ np.r_[0.9 ** np.arange(30), np.zeros(30)]
    return scipy.sparse.csr_array(X), np.where(rng.random(6000) < 1 / (1 + np.exp(-score)), 1, -1.0)


def words(rng: np.random.Generator) -> tuple[Any, Vector]:
    """Names distributed like the words of a text."""
    names = np.minimum(rng.zipf(1.3, size=(6000, 8)), 3000) - 1
    X = scipy.sparse.csr_array(
        (np.ones(names.size), (np.repeat(np.arange(6000), 8), names.ravel())), shape=(6000, 3000)
    )
    X.sum_duplicates()
    score = np.asarray(X @ rng.normal(size=3000))
    return X, np.where(rng.random(6000) < 1 / (1 + np.exp(-score)), 1, -1.0)


@pytest.mark.parametrize(("make", "k"), [(dense_stream, 10), (dense_stream, 30), (words, 200)])
def test_the_number_of_weights_is_kept_and_the_strength_settles(make: Any, k: int) -> None:
    X, y = make(np.random.default_rng(2))
    model = sl.LinearClassifier(penalty=TARGET(k))
    counts, strengths = [], []
    for part in np.array_split(np.arange(len(y)), 120):
        model.learn_rows(X[part], y[part])
        counts.append(model.nonzero)
        strengths.append(steering(model).strength)
    assert np.all(np.abs(np.array(counts[40:]) - k) <= 0.1 * k)
    assert max(strengths[60:]) < 2.0 * min(strengths[60:])


@pytest.mark.parametrize("k", [500, 10**30])
def test_fewer_features_than_the_target_are_all_kept(k: int) -> None:
    data = stream_for(LOGISTIC, events=400)
    model = sl.LinearClassifier(penalty=TARGET(k))
    model.learn_rows(data.rows, data.y)
    assert steering(model).strength == 0.0
    assert model.nonzero == 14


def test_a_member_with_weights_speaks_beside_the_base_rate() -> None:
    rng = np.random.default_rng(4)
    model = sl.LinearClassifier(penalty=TARGET(5))
    model.learn_rows(rng.normal(size=(4000, 20)), rng.random(4000) < 0.5)
    assert model.nonzero == 5
    rule = steering(model)
    rule.shares = [0.01, 0.0, 0.0, 0.0, 0.0, 0.99]
    rule.restored()
    assert model.nonzero > 0


def test_classes_and_regression() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 20))
    score = 2.0 * X[:, 0] - X[:, 1] + X[:, 2]
    regressor = sl.LinearRegressor(penalty=TARGET(3))
    regressor.learn_rows(X, 5.0 + score + 0.1 * rng.normal(size=3000))
    assert np.flatnonzero(regressor.coef(20)).tolist() == [0, 1, 2]
    classifier = sl.LinearClassifier(penalty=TARGET(3))
    classifier.learn_rows(X, np.digitize(score, [-1.0, 1.0]))
    for weights in classifier.coef(20):
        assert abs(np.count_nonzero(weights) - 3) <= 1


def test_explicit_zeros_are_no_features() -> None:
    models = [sl.LinearClassifier(penalty=TARGET(3)) for _ in range(2)]
    for i in range(300):
        event = {"a": i % 2, "b": i % 3, "c": i % 5, "d": i % 7, "e": i % 4}
        for model, x in zip(models, (event, {n: v for n, v in event.items() if v}), strict=True):
            model.learn_one(x, i % 6 < 3)
    assert models[0].weights == models[1].weights


def test_no_regret_is_known_and_no_bound() -> None:
    tracker = sl.regret.Tracker(sl.LinearClassifier(penalty=TARGET(3)), seed=0)
    data = stream_for(LOGISTIC)
    tracker.learn_rows(data.rows, data.y)
    report = tracker.report()
    assert report.regret is None
    assert "TargetNonzero" in str(report.why_unknown)
    assert report.objective == report.progressive_loss
    assert tracker.estimator.why_no_bound() is not None


@pytest.mark.parametrize(
    "rule", [sl.rules.DualAveraging(), sl.rules.Mixture([sl.rules.CoinBetting()])]
)
def test_other_rules_refuse_it(rule: Any) -> None:
    with pytest.raises(sl.IncompatibleError, match="default rule"):
        sl.LinearClassifier(rule, penalty=TARGET(3))


@pytest.mark.parametrize("k", [0, 1.5, "3", True])
def test_the_target_is_a_positive_integer(k: Any) -> None:
    with pytest.raises(ValueError, match="integer"):
        TARGET(k)


@pytest.mark.parametrize("average", ["uniform", "tail"])
def test_an_average_of_weights_is_refused(average: str) -> None:
    with pytest.raises(sl.IncompatibleError, match="average='last'"):
        sl.LinearClassifier(penalty=TARGET(3), average=average)
    assert sl.LinearClassifier(penalty=TARGET(3), average="random", seed=1).average == "random"
