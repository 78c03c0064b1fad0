"""The averages of every rule are those of its dense iterates."""

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from tests.reference import averages
from tests.support.members import (
    N,
    Stream,
    averages_of,
    brief,
    close,
    dense,
    estimator,
    know_all,
    pairs,
    stream,
    stream_for,
)

LOGISTIC = sl.losses.Logistic()
AVERAGES = {"uniform": averages.uniform, "tail": averages.tail}
PAIRS = [(rule, penalty) for rule, penalty in pairs(LOGISTIC) if "tail" in averages_of(penalty)]
each_pair = pytest.mark.parametrize(("rule", "penalty"), PAIRS, ids=brief)


def compare(rule: Any, penalty: Any, data: Stream, stops: list[int]) -> None:
    slow = dense(rule, penalty, LOGISTIC, data.X.shape[1])
    iterates: list[Any] = []
    at: dict[int, list[Any]] = {}
    for i in range(len(data)):
        if i in stops:
            at[i] = iterates.copy()
        if data.w[i] > 0.0:
            iterates.append(slow.w)
            slow.step(data.X[i], data.y[i], data.w[i])
    at[len(data)] = iterates
    for name, average in AVERAGES.items():
        model = estimator(rule, penalty, LOGISTIC, average=name)
        start = 0
        for stop in [*stops, len(data)]:
            model.learn_rows(data.rows[start:stop], data.y[start:stop], data.w[start:stop])
            expected = average(at[stop])
            close(model.coef(data.X.shape[1]), expected)
            assert model.nonzero == np.count_nonzero(model.coef(data.X.shape[1]))
            close(model.score_rows(data.rows[:5]), data.X[:5] @ expected)
            start = stop


@each_pair
def test_averages_are_dense_averages(rule: Any, penalty: Any) -> None:
    unweighed = stream_for(LOGISTIC, weighed=False)
    compare(rule, penalty, unweighed, [1, 2, 3, 4, 8, 9, 31, 32, 63, 64, 65])
    compare(rule, penalty, stream_for(LOGISTIC), [5, 40])


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (sl.rules.DualAveraging(), sl.penalties.L1(0.005)),
        (sl.rules.ForwardBackward(sl.rules.schedules.InverseSqrt(0.5)), sl.penalties.L1(0.01)),
        (sl.rules.ForwardBackward(0.1), sl.penalties.ElasticNet(0.003, 0.1)),
        (sl.rules.TruncatedGradient(0.1, 3, 0.3), sl.penalties.L1(0.01)),
        (sl.rules.Pegasos(), sl.penalties.L2(0.05)),
        (sl.rules.Adaptive(1.0), sl.penalties.Zero()),
        (sl.rules.GradientDescent(0.2), sl.penalties.Ball(0.5)),
        (sl.rules.Mixture(), sl.penalties.Zero()),
        (sl.rules.AcceleratedDualAveraging(), sl.penalties.L1(0.005)),
    ],
    ids=brief,
)
@pytest.mark.parametrize("n", [N, 1500])
def test_averages_outlive_the_ledger(rule: Any, penalty: Any, n: int) -> None:
    """The steps kept for slots left alone are settled when they are as many as 1024 or n."""
    if n > N and not rule.averages_lazily:
        return
    data = stream("binary", events=1060 + (0 if n == N else n), n=n, weighed=False)
    compare(rule, penalty, data, [1000, 1023, 1024, 1025, len(data) - 20])


@each_pair
def test_averages_of_slots_that_come_late(rule: Any, penalty: Any) -> None:
    """A slot met at event `late` had weight 0 before."""
    late = 17
    if penalty.on_simplex or rule == sl.rules.PNormDualAveraging():
        return  # what is not yet known does count there
    data = stream_for(LOGISTIC, weighed=False)
    X = data.X.copy()
    X[:late, N // 2 :] = 0.0
    for name in AVERAGES:
        grown, known = (estimator(rule, penalty, LOGISTIC, average=name) for _ in range(2))
        known.learn_rows(X, data.y)
        grown.learn_rows(X[:late, : N // 2], data.y[:late])
        grown.learn_rows(X[late:], data.y[late:])
        close(grown.coef(N), known.coef(N))


@pytest.mark.parametrize("c", [2.0, 4.0])
def test_averages_when_a_step_forgets_everything(c: float) -> None:
    """Step c/t with c l2 = t makes the factor 1 - step l2 exactly 0 at t."""
    data = stream_for(LOGISTIC, weighed=False)
    rule = sl.rules.GradientDescent(sl.rules.schedules.Inverse(c))
    compare(rule, sl.penalties.L2(1.0), data, [1, 2, 3, 4, 5, 6, 40])


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (sl.rules.ForwardBackward(0.5), sl.penalties.L2(0.5)),
        (sl.rules.ForwardBackward(0.5), sl.penalties.ElasticNet(0.001, 0.5)),
        (sl.rules.GradientDescent(0.5), sl.penalties.L2(0.5)),
    ],
    ids=brief,
)
def test_averages_when_weights_decay_fast(rule: Any, penalty: Any) -> None:
    """The common scale falls geometrically: its sum since a late step must not cancel."""
    compare(rule, penalty, stream_for(LOGISTIC, events=400, weighed=False), [64, 200, 300])


@each_pair
def test_random_is_one_of_the_iterates(rule: Any, penalty: Any) -> None:
    data = stream_for(LOGISTIC)
    last = estimator(rule, penalty, LOGISTIC)
    iterates: list[Any] = []
    for i in range(len(data)):
        know_all(last)
        if data.w[i] > 0.0:
            iterates.append(last.coef(N))
        last.learn_rows(data.rows[i : i + 1], data.y[i : i + 1], data.w[i : i + 1])
    for seed in range(4):
        model = estimator(rule, penalty, LOGISTIC, average="random", seed=seed)
        model.learn_rows(data.rows, data.y, data.w)
        assert any(np.array_equal(model.coef(N), w) for w in iterates)


def test_random_is_uniform() -> None:
    data = stream_for(LOGISTIC, events=10, weighed=False)
    rule, penalty = sl.rules.GradientDescent(0.3), sl.penalties.Zero()
    last = estimator(rule, penalty, LOGISTIC)
    iterates: list[Any] = []
    for i in range(10):
        iterates.append(last.coef(N))
        last.learn_rows(data.rows[i : i + 1], data.y[i : i + 1])
    drawn = np.zeros(10)
    for seed in range(1000):
        model = estimator(rule, penalty, LOGISTIC, average="random", seed=seed)
        model.learn_rows(data.rows, data.y)
        drawn += [np.array_equal(model.coef(N), w) for w in iterates]
    assert drawn.sum() == 1000
    # chi-square with 9 degrees of freedom exceeds 33 once in 7000 times
    assert np.sum((drawn - 100.0) ** 2 / 100.0) < 33.0
