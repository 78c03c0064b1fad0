"""The bracket of a regret contains the truth, or its standard error covers what it is off by."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.hindsight.methods import norm_penalty
from streamlearn.regret import Report, Tracker
from streamlearn.rules.self_tuning import SelfTuning
from tests.support.members import (
    LOSSES,
    N,
    Vector,
    allowed,
    brief,
    estimator,
    know_all,
    pairs,
    stream_for,
    turn,
)

L, P, R = sl.losses, sl.penalties, sl.rules
PAIRS = pairs()
each_pair = pytest.mark.parametrize(("rule", "penalty"), PAIRS, ids=brief)
PRICED = [
    (rule, penalty)
    for rule in {repr(rule): rule for rule, _ in PAIRS}.values()
    for penalty in (P.L1(0.01), P.L2(0.05), P.ElasticNet(0.005, 0.02))
    if allowed(rule, penalty, L.Logistic())
]


def followed(model: Any, data: Any) -> tuple[Tracker, float]:
    """Learn a stream with a tracker; return it and the objective, computed event by event."""
    tracker = Tracker(model, seed=0)
    twin = model.clone()
    for one in (model, twin):
        know_all(one)
    tracker.learn_rows(data.rows, data.y, data.w)
    priced = not any(rule.penalty_counts_once for rule in model.rules)
    total = 0.0
    for i in range(len(data)):
        before = twin.penalty_value if priced else 0.0
        rows = slice(i, i + 1)
        score = twin.progressive_rows(data.rows[rows], data.y[rows], data.w[rows])[0]
        if data.w[i] > 0.0:
            total += data.w[i] * twin.objective.loss.value(float(score), data.y[i]) + before
    return tracker, total


def fixed(report: Report, model: Any, data: Any, u: Vector, b: float) -> float:
    """Return the objective of fixed weights u and an intercept on the stream."""
    inside = np.append(u, b) if model.objective.intercept == "inside" else u
    priced = not any(rule.penalty_counts_once for rule in model.rules)
    psi = model.objective.penalty.value(inside) if priced else 0.0
    losses = model.objective.loss.value(data.X @ u + b, data.y)
    if not priced or isinstance(model.objective.penalty.canonical(), P.Zero):
        psi = 0.5 * float(inside @ inside) / report.events  # u pays 1/2 |u|^2 once
    return float(data.w @ losses) + report.events * psi


def rivals(found: Any, n: int) -> Iterator[tuple[Vector, float]]:
    """Return weights near the best ones, and others."""
    rng = np.random.default_rng(3)
    u, b = np.zeros(n), float(np.sum(found.intercept))
    w = found.w.ravel()
    u[: len(w)] = w[:n]
    for size in (0.0, 1e-3, 1e-2, 0.1):
        for _ in range(5):
            yield u + size * rng.normal(size=n), b
            yield u * (1.0 + size * rng.normal()), b
    yield np.zeros(n), 0.0


@each_pair
def test_certified_bracket_contains_brute_force(rule: Any, penalty: Any) -> None:
    place = turn(rule, penalty)
    losses = [loss for loss in LOSSES if allowed(rule, penalty, loss)]
    for k in (place, place + 1):
        loss = losses[k % len(losses)]
        data = stream_for(loss, seed=place)
        wish = bool(k % 2) and rule.intercept == "free" and not penalty.on_simplex
        model = estimator(rule, penalty, loss, fit_intercept=wish)
        try:
            tracker, paid = followed(model, data)
        except sl.DivergenceError:
            continue
        report = tracker.report()
        if report.penalty == "exact":
            assert report.stderr == 0.0
            assert report.objective == pytest.approx(paid, rel=1e-9, abs=1e-9)
        if not report.certified:
            continue
        low, high, found = report.regret_low, report.regret_high, tracker.ledger.findings
        assert low is not None
        assert high is not None
        assert found is not None
        slack = 1e-9 * max(1.0, abs(paid))
        against = [
            paid - fixed(report, model, data, u, b) for u, b in rivals(found.minimum.solution, N)
        ]
        assert against[0] == pytest.approx(low, abs=slack)
        assert max(against) <= high + slack
        charged = tracker.ledger.task.penalty
        if norm_penalty(charged):
            share = report.events / data.w.sum()
            strengths = {name: share * x for name, x in charged.params.items()}
            best = sl.hindsight.solve(
                data.X,
                data.y,
                loss,
                type(charged)(**strengths),
                fit_intercept=wish,
                weights=data.w,
                gap=1e-7,
            )
            truth = paid - data.w.sum() * best.objective
            assert low <= truth + 1e-7 * data.w.sum()
            assert truth <= high + slack


def test_most_pairs_are_certified() -> None:
    """Of those whose penalty has a best fixed model, on streams as short as these."""
    for rule, penalty in PRICED:
        data = stream_for(L.Logistic())
        report = followed(estimator(rule, penalty, L.Logistic()), data)[0].report(1.0)
        assert report.certified
        assert report.penalty == "exact"


@pytest.mark.parametrize("turns", [True, False])
@pytest.mark.parametrize(("rule", "penalty"), PRICED, ids=brief)
def test_sampled_penalty_is_within_its_error(rule: Any, penalty: Any, turns: bool) -> None:
    """With many slots Psi is read only a few times; labels may change sign.

    Self-tuning rules hardly keep a weight then, and what they keep is known less precisely; where
    labels do not change sign, the penalty is weaker, so that they keep some.
    """
    m, n, wide = 400, 60, 5000
    if not turns:
        penalty = type(penalty)(**{name: 0.1 * x for name, x in penalty.params.items()})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.1)
    y = np.where(X @ rng.normal(size=n) + 0.7 * rng.normal(size=m) > 0.0, 1.0, -1.0)
    if turns:
        y[(np.arange(m) // 50) % 2 == 1] *= -1.0
    rows = scipy.sparse.csr_array(X)
    rows = scipy.sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(m, wide))
    model = estimator(rule, penalty, L.Logistic())
    twin = model.clone()
    for one in (model, twin):
        one.engine.rows_from_matrix(np.zeros((1, wide)), True)
    tracker = Tracker(model, seed=0)
    tracker.learn_rows(rows, y)
    truth = 0.0
    for i in range(m):
        truth += 0.0 if rule.penalty_counts_once else twin.penalty_value
        twin.learn_rows(rows[[i]], y[i : i + 1])
    total, error, exact = tracker.ledger.sums.penalty_estimate()
    if exact:  # the rule knows Psi, or there is none
        assert total == pytest.approx(truth, rel=1e-9, abs=1e-12)
        return
    if turns and isinstance(rule, R.Mixture | SelfTuning):
        assert error <= truth
    else:
        assert 0.0 < error < 0.2 * truth
    assert abs(total - truth) <= 2.0 * error
    report = tracker.report(1.0)
    assert not report.certified
    assert report.penalty == "sampled"
    assert report.stderr == error
