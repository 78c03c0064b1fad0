"""Regret on all events in shards is that of a memory which holds all events."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.hindsight import ArrayShard
from streamlearn.regret import Tracker
from streamlearn.rules.schedules import InverseSqrt

L, P, R = sl.losses, sl.penalties, sl.rules
RNG = np.random.default_rng(8)
N = 900
X = scipy.sparse.csr_array(RNG.normal(size=(N, 8)) * (RNG.random((N, 8)) < 0.6))
SCORE = X @ RNG.normal(size=8) + 0.5 * RNG.normal(size=N)
CLASSES = np.digitize(SCORE, [-1.0, 1.0])
SIGNS = np.where(SCORE > 0, "yes", "no")
WEIGHTS = 1.0 + np.arange(N) % 3
PARTS = (slice(0, 500), slice(500, 500), slice(500, N))

LEARNERS: dict[str, tuple[Any, Any]] = {
    "pegasos": (sl.PegasosClassifier(l2=0.1), SIGNS),
    "free intercept": (
        sl.LinearClassifier(R.GradientDescent(InverseSqrt(0.5)), penalty=P.L2(0.01)),
        SIGNS,
    ),
    "class weights": (
        sl.LinearClassifier(
            R.GradientDescent(InverseSqrt(0.5)), penalty=P.L2(0.01), class_weight={"yes": 3.0}
        ),
        SIGNS,
    ),
    "a class without weight": (
        sl.LinearClassifier(
            R.GradientDescent(InverseSqrt(0.5)),
            L.Softmax(),
            P.L2(0.1),
            class_weight={0: 0.0, 1: 2.0},
        ),
        CLASSES,
    ),
    "softmax": (
        sl.LinearClassifier(R.GradientDescent(InverseSqrt(0.5)), L.Softmax(), P.L2(0.1)),
        CLASSES,
    ),
    "costs": (
        sl.LinearClassifier(
            R.GradientDescent(InverseSqrt(0.5)),
            L.MulticlassHinge({0: {2: 3.0}, 2: {0: 2.0}}),
            P.L2(0.5),
        ),
        CLASSES,
    ),
    "no penalty": (sl.LinearClassifier(R.GradientDescent(InverseSqrt(0.5))), SIGNS),
    "l1": (sl.LinearClassifier(R.DualAveraging(1.0), penalty=P.L1(0.01)), SIGNS),
    "regression": (
        sl.LinearRegressor(R.GradientDescent(InverseSqrt(0.5)), penalty=P.L2(0.1)),
        SCORE,
    ),
}


def learned(estimator: Any, y: Any, memory_bytes: int | None) -> Tracker:
    tracker = Tracker(estimator.clone(), memory_bytes, 0, gap=1e-7)
    for part in PARTS:
        tracker.learn_rows(X[part], y[part], WEIGHTS[part])
    return tracker


def shards(y: Any) -> list[ArrayShard]:
    labels = y.astype(object) if y.dtype.kind != "f" else y
    return [ArrayShard(X[part], labels[part], WEIGHTS[part]) for part in PARTS]


@pytest.mark.parametrize("name", LEARNERS)
def test_the_regret_is_that_of_a_memory_for_all_events(name: str) -> None:
    estimator, y = LEARNERS[name]
    expected = learned(estimator, y, None).report()
    tracker = learned(estimator, y, 10_000)
    assert tracker.report().sampled < N
    tracker.solve_all(shards(y))
    found = tracker.report()
    assert expected.certified == found.certified
    assert found.sampled == found.solved_at == expected.solved_at
    for one, other in ((found, expected), (expected, found)):
        assert one.regret_low is not None
        assert other.regret_high is not None
        assert one.regret_low <= other.regret_high
    assert found.regret == pytest.approx(expected.regret, rel=1e-3, abs=1e-2)
    assert (found.bound is None) == (expected.bound is None)
    if expected.bound is not None:
        assert found.bound == pytest.approx(expected.bound, rel=1e-2)
    differing = {"regret", "regret_low", "regret_high", "comparator", "bound", "method", "stderr"}
    for field in dataclasses.fields(found):
        if field.name not in differing:
            assert getattr(found, field.name) == getattr(expected, field.name), field.name


def test_events_that_fit_into_the_memory_are_not_read_again() -> None:
    tracker = learned(*LEARNERS["pegasos"], None)
    tracker.solve_all([])
    assert tracker.report().certified


def test_learners_with_one_objective_share_a_solution() -> None:
    tracker = learned(*LEARNERS["free intercept"], 10_000)
    estimator = tracker.estimator.clone({"rule": R.AdaGrad(0.5)})
    beside = Tracker(estimator, beside=tracker)
    for part in PARTS:
        beside.learn_rows(X[part], SIGNS[part], WEIGHTS[part])
    tracker.solve_all(shards(SIGNS))
    beside.solve_all([])
    one, other = tracker.report(), beside.report()
    assert one.certified
    assert other.certified
    assert one.comparator == other.comparator


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (shards(SIGNS)[:1], "500 labeled events"),
        ([*shards(SIGNS), ArrayShard(X[:1], np.array(["no"], object))], "901 labeled events"),
        ([ArrayShard(X, np.full(N, "maybe", object))], "'maybe'"),
    ],
)
def test_other_events_are_refused(given: list[ArrayShard], named: str) -> None:
    tracker = learned(*LEARNERS["free intercept"], 10_000)
    with pytest.raises(ValueError, match=named):
        tracker.solve_all(given)
