"""The sum of a learner's tangents is exact, and what it leaves to a sample is unbiased."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.regret import Tracker
from streamlearn.regret.comparator import costs
from streamlearn.regret.findings import outside
from streamlearn.regret.member import FixedModel
from streamlearn.regret.tangents import Tangents

L, P, R = sl.losses, sl.penalties, sl.rules
N, FEATURES = 3_000, 12


def summed(tracker: Tracker) -> Any:
    found = tracker.ledger.sums.gradient_sum()
    assert found is not None
    return found


def data(seed: int) -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(seed)
    X: Any = scipy.sparse.random_array((N, FEATURES), density=0.4, rng=draw, format="csr")
    X.data = np.where(draw.random(len(X.data)) < 0.5, 1.0, X.data * 3.0 - 1.0)
    y = np.where(X @ draw.normal(size=FEATURES) + draw.logistic(size=N) > 0.0, 1.0, -1.0)
    return X, y, draw.choice([0.5, 1.0, 2.0], N)


def gradient(X: Any, slopes: Any) -> Any:
    return np.append(slopes.sum(), X.T @ slopes)


LEARNERS: dict[str, Callable[[], Any]] = {
    "default": sl.LinearClassifier,
    "hinge": lambda: sl.LinearClassifier(R.Pegasos(), L.Hinge(), P.L2(0.01)),
    "averaged": lambda: sl.LinearClassifier(
        R.AdaGrad(0.1), L.Logistic(), P.L2(0.01), average="uniform"
    ),
    "batches": lambda: sl.LinearClassifier(R.AdaGrad(0.1), L.Logistic(), P.Zero(), batch=7),
    "quantile": lambda: sl.LinearRegressor(R.AdaGrad(0.1), L.Quantile(0.2), P.Zero()),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_the_sum_is_that_of_all_events(name: str) -> None:
    X, y, w = data(1)
    tracker = Tracker(LEARNERS[name](), 20_000, 0)
    scores = tracker.progressive_rows(X, y, w)
    slopes = w * np.asarray(tracker.estimator.objective.loss.slope(scores, y))
    found = summed(tracker)
    np.testing.assert_allclose(found, gradient(X, slopes)[: len(found)], rtol=1e-9, atol=1e-9)
    places, _, at = tracker.ledger.sums.cells.current_samples()
    assert 50 < len(places) < N
    np.testing.assert_allclose(at, (slopes / w)[places], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", [L.Squared(), L.Poisson(), L.Exponential(), L.SquaredHinge()])
def test_slopes_without_bound_are_not_summed(loss: Any) -> None:
    kind = sl.LinearClassifier if loss.kind == "binary" else sl.LinearRegressor
    tracker = Tracker(kind(R.AdaGrad(0.1), loss, P.L2(0.1)), 20_000, 0)
    X, y, _ = data(2)
    tracker.learn_rows(X, np.abs(y))
    assert tracker.ledger.sums.gradient_sum() is None


def test_new_features_get_a_place() -> None:
    tracker = Tracker(sl.LinearClassifier(), 20_000, 0)
    for i in range(500):
        tracker.learn_one({f"f{i % (1 + i // 5)}": 1.0}, i % 3 == 0)
    found = summed(tracker)
    assert len(found) == 101
    assert found[1:].sum() == pytest.approx(found[0])


@pytest.mark.parametrize(("memory_bytes", "kept"), [(4_000_000, True), (9_000_000, False)])
def test_a_large_sample_needs_no_sum(memory_bytes: int, kept: bool) -> None:
    """With one value of 1 a row has 17 + 1 + 2 bytes, and 14 of the learner's."""
    X = scipy.sparse.csr_array(np.ones((20_000, 1)))
    y = np.where(np.arange(20_000) % 3 > 0, 1.0, -1.0)
    tracker = Tracker(sl.LinearClassifier(R.AdaGrad(0.1)), memory_bytes, 0)
    tracker.learn_rows(X, y)
    sums = tracker.ledger.sums
    assert (sums.gradient_sum() is not None) == kept
    assert sums.reservoir.large != kept
    again = Tracker(sl.LinearClassifier(R.AdaGrad(0.1)), memory_bytes, 0)
    again.ledger.sums.restore(sums.state())
    assert (again.ledger.sums.gradient_sum() is not None) == kept
    tracker.learn_rows(X, y)
    assert (sums.gradient_sum() is not None) == kept


def test_sums_resume_and_join() -> None:
    X, y, w = data(3)
    whole = Tracker(sl.LinearClassifier(), 20_000, 5)
    whole.learn_rows(X, y, w)
    first = Tracker(sl.LinearClassifier(), 20_000, 5)
    first.learn_rows(X[:1_000], y[:1_000], w[:1_000])
    state = first.state()
    again = Tracker(sl.LinearClassifier(), 20_000, 5)
    again.restore(state)
    again.learn_rows(X[1_000:], y[1_000:], w[1_000:])
    expected = summed(whole)
    np.testing.assert_array_equal(summed(again), expected)
    for ours, theirs in zip(
        again.ledger.sums.cells.current_samples(),
        whole.ledger.sums.cells.current_samples(),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    part = Tracker(sl.LinearClassifier(), 20_000, 5, part=True)
    part.ledger.begin(1_000, 1, 1_000.0, 2**64 - 1)
    part.restore({"estimator": first.estimator.state(), "ledger": part.ledger.state()})
    part.learn_rows(X[1_000:], y[1_000:], w[1_000:])
    first.ledger.join([part.ledger.part()])
    np.testing.assert_allclose(summed(first), expected, rtol=1e-9, atol=1e-9)


def test_tangents_and_what_is_above_add_up() -> None:
    X, y, w = data(7)
    tracker = Tracker(sl.LinearClassifier(), None, 0)
    tracker.learn_rows(X, y, w)
    slopes = tracker.ledger.sums.cells.samples()[2]
    tangents = Tangents.of(slopes, summed(tracker), FEATURES, "free")
    u = np.random.default_rng(8).normal(size=FEATURES)
    losses = np.asarray(L.Logistic().value(X @ u, y))
    total = float(w @ tangents.above(losses, X @ u)) + tangents.sum(u)
    assert total == pytest.approx(float(w @ losses), rel=1e-5)


@pytest.mark.parametrize("intercept", ["none", "free", "inside"])
def test_totals_are_unbiased_and_their_errors_smaller(intercept: str) -> None:
    X, y, w = data(4)
    draw = np.random.default_rng(9)
    penalty = P.L2(0.05) if intercept == "inside" else P.Zero()
    u = FixedModel(0.7 * draw.normal(size=FEATURES + (intercept == "inside")), 0.3)
    u = u if intercept == "free" else replace(u, intercept=0.0)
    found = []
    for seed in range(60):
        rule = R.Pegasos() if intercept == "inside" else R.AdaGrad(0.1)
        model = sl.LinearClassifier(rule, L.Logistic(), penalty, fit_intercept=intercept != "none")
        tracker = Tracker(model, 15_000, seed)
        tracker.learn_rows(X, y, w)
        work = tracker.ledger.comparison.prepared()
        sample = work.explained(work.sample())
        assert sample.tangents is not None
        assert sample.strata is not None
        assert tracker.ledger.intercept == intercept
        task, N = tracker.ledger.task, sample.events
        scores = (X @ u.w if intercept != "inside" else X @ u.w[1:] + u.w[0]) + u.intercept
        charge = N * task.charge(N).value(u.w)
        truth = float(w @ task.loss.value(scores, y)) + charge
        row = []
        for one in (sample, replace(sample, tangents=None)):
            total, error = outside(sample.strata, N, slice(0), costs(one, task, u))
            row += [total - truth, error]
        found.append(row)
    off, error, plain, plain_error = np.array(found).T
    assert abs(off.mean()) < 3.0 * off.std() / np.sqrt(len(off))
    assert off.std() == pytest.approx(error.mean(), rel=0.3)
    assert error.mean() < 0.8 * plain_error.mean()
    assert off.std() < plain.std()


def test_a_learner_that_is_worse_than_nothing_does_not_count() -> None:
    X, y, w = data(6)
    tracker = Tracker(sl.LinearClassifier(R.GradientDescent(200.0), L.Logistic()), 20_000, 0)
    tracker.learn_rows(X, y, w)
    work = tracker.ledger.comparison.prepared()
    assert work.members[0].progressive_loss > N * np.log(2.0) * w.mean()
    assert work.explained(work.sample()).tangents is None
