"""The default under l1 and l2 is the mixture of its parts, which are rules of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.rules.mixture import sparse_rules
from tests.support.members import N, close, stream_for

PENALTIES = [sl.penalties.L1(0.02), sl.penalties.L2(0.1), sl.penalties.ElasticNet(0.01, 0.2)]
LOSSES = [sl.losses.Logistic(), sl.losses.Hinge(), sl.losses.Squared()]


def shares_of(model: Any) -> Any:
    [mixture] = model.engine.learner.rules()
    return mixture.shares


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_default_is_the_mixture_of_its_parts(loss: Any, penalty: Any) -> None:
    data = stream_for(loss, events=300)
    kind = sl.LinearRegressor if loss.kind == "regression" else sl.LinearClassifier
    whole, parts = kind(None, loss, penalty), kind(sl.rules.Mixture(sparse_rules()), loss, penalty)
    scores = [model.progressive_rows(data.rows, data.y, data.w) for model in (whole, parts)]
    close(scores[1], scores[0])
    close(parts.coef(N), whole.coef(N))
    assert parts.intercept == pytest.approx(whole.intercept, rel=1e-9)
    shares = [shares_of(model) for model in (whole, parts)]
    np.testing.assert_allclose(shares[1], shares[0], rtol=1e-9)


@pytest.mark.parametrize("rule", sparse_rules()[:3], ids=repr)
def test_parts_have_exact_zeros(rule: Any) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4000, 20))
    y = 2.0 * X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=4000) > 0.0
    model = sl.LinearClassifier(rule, penalty=sl.penalties.L1(0.03))
    model.learn_rows(X, y)
    assert np.flatnonzero(model.coef(20)).tolist() == [0, 1]


def test_mirror_descent_follows_the_support_of_others() -> None:
    """Alone, it moves too fast to be 0 where it should."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4000, 20))
    y = 2.0 * X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=4000) > 0.0
    follower, found = sl.rules.MirrorDescent(16.0), []
    beside = sl.rules.Mixture([follower, sl.rules.NormalizedAdaptive(2.0, size="typical")])
    for rule in (follower, beside):
        model = sl.LinearClassifier(rule, penalty=sl.penalties.L1(0.03))
        model.learn_rows(X, y)
        found.append(np.flatnonzero(model.coef(20)).tolist())
    assert len(found[0]) > 2
    assert found[1] == [0, 1]


@pytest.mark.parametrize("rule", sparse_rules()[:5], ids=repr)
def test_intercept_of_parts_is_outside_the_penalty(rule: Any) -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(2000, 3)), rng.random(2000) < 0.9
    model = sl.LinearClassifier(rule, penalty=sl.penalties.ElasticNet(10.0, 1.0))
    model.learn_rows(X, y)
    assert model.nonzero == 0
    assert model.intercept == pytest.approx(np.log(9.0), abs=0.3)


def test_members_with_too_many_weights_lose_their_share() -> None:
    """No feature says anything: the rule that keeps more weights pays for them."""
    rng = np.random.default_rng(6)
    X = (rng.random((4000, 200)) < 0.1).astype(float)
    y = rng.random(4000) < 0.5
    rules = [sl.rules.AdaGrad(1.0), sl.rules.NormalizedAdaptive(2.0, size="typical")]
    model = sl.LinearClassifier(sl.rules.Mixture(rules), penalty=sl.penalties.L1(0.01))
    model.learn_rows(X, y)
    assert shares_of(model)[1] > 0.9
    assert model.nonzero == 0


def test_unsound_mixtures_are_refused() -> None:
    rules = sl.rules
    with pytest.raises(sl.IncompatibleError, match="AdaGrad"):
        sl.LinearClassifier(
            rules.Mixture([rules.FTRLProximal(), rules.CoinBetting()]),
            penalty=sl.penalties.L1(1e-3),
        )
    with pytest.raises(sl.IncompatibleError, match="ElasticNet"):
        sl.LinearClassifier(
            rules.Mixture([rules.DualAveraging()]), penalty=sl.penalties.Berhu(0.1, 0.2)
        )
    with pytest.raises(ValueError, match="self-tuning"):
        rules.PolynomialAverage(rules.DualAveraging())
