"""Estimates of the regret, compared with solves over all events (docs/concepts/regret.md)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.regret import Report, Tracker
from streamlearn.regret.extrapolation import correction, growth

L, P, R = sl.losses, sl.penalties, sl.rules
N = 12_000
SEEDS = 100

Stream = tuple[Any, Any]


def dense(seed: int, drift: bool = False) -> Stream:
    """Generate rows of 20 normal values."""
    draw = np.random.default_rng(seed)
    X = scipy.sparse.csr_array(draw.normal(size=(N, 20)))
    w = draw.normal(size=(2, 20)) / 3.0
    scores = np.where(np.arange(N) < N // 2, X @ w[0], X @ w[int(drift)])
    return X, np.where(scores + draw.logistic(size=N) > 0.0, 1.0, -1.0)


def categories(seed: int, names: int, fields: int = 6) -> Stream:
    """Generate rows with one name of each field; names are as frequent as words in a text."""
    draw = np.random.default_rng(seed)
    width = names // fields
    shares = 1.0 / np.arange(1, width + 1)
    picks = draw.choice(width, size=(N, fields), p=shares / shares.sum())
    slots = (picks + width * np.arange(fields)).astype(np.int32)
    w = draw.normal(size=names) * 0.7
    y = np.where(w[slots].sum(axis=1) + draw.logistic(size=N) > 0.0, 1.0, -1.0)
    starts = np.arange(N + 1) * fields
    X = scipy.sparse.csr_array((np.ones(N * fields), slots.ravel(), starts), shape=(N, names))
    return X, y


@dataclass(frozen=True)
class Scenario:
    """A stream, a learner, and a memory that is too small for all events."""

    stream: Callable[[], Stream]
    learner: Callable[[], Any]
    memory_bytes: int


def logistic(rule: Any, penalty: Any, loss: Any = None) -> Any:
    return sl.LinearClassifier(rule, loss or L.Logistic(), penalty)


SCENARIOS = {
    "dense, l2": Scenario(lambda: dense(1), lambda: logistic(R.Pegasos(), P.L2(1e-2)), 500_000),
    "dense, no penalty": Scenario(lambda: dense(2), sl.LinearClassifier, 500_000),
    "dense, drift": Scenario(lambda: dense(3, drift=True), sl.LinearClassifier, 500_000),
    "dense, hinge": Scenario(
        lambda: dense(4), lambda: logistic(R.Pegasos(), P.L2(1e-2), L.Hinge()), 800_000
    ),
    "dense, squared": Scenario(
        lambda: dense(5),
        lambda: sl.LinearRegressor(R.DualAveraging("auto"), L.Squared(), P.L2(1e-2)),
        500_000,
    ),
    "sparse, l1": Scenario(
        lambda: categories(6, 600), lambda: logistic(R.DualAveraging(), P.L1(2e-3)), 150_000
    ),
    "sparse, l1 near its largest": Scenario(
        lambda: categories(7, 600), lambda: logistic(R.DualAveraging(), P.L1(2e-2)), 150_000
    ),
    "sparse, no penalty": Scenario(lambda: categories(8, 600), sl.LinearClassifier, 300_000),
    "more names than events, l2": Scenario(
        lambda: categories(9, 24_000), lambda: logistic(R.Pegasos(), P.L2(1e-3)), 300_000
    ),
}


def tracked(scenario: Scenario, memory_bytes: int | None, seed: int = 0) -> Report:
    X, y = scenario.stream()
    tracker = Tracker(scenario.learner(), memory_bytes, seed, gap=1e-5)
    tracker.learn_rows(X, y)
    return tracker.report(60.0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_estimates_agree_with_the_full_solve(name: str) -> None:
    scenario = SCENARIOS[name]
    full = tracked(scenario, None)
    assert full.regret_high is not None
    assert full.regret is not None
    truth, inside, errors = 0.5 * (full.regret + full.regret_high), 0, []
    for seed in range(SEEDS):
        report = tracked(scenario, scenario.memory_bytes, seed)
        assert not report.certified
        assert 300 < report.sampled < 0.7 * N
        assert report.regret is not None, report.why_unknown
        assert report.regret_low is not None
        assert report.regret_high is not None
        assert report.regret_high - report.regret_low < 0.2 * abs(full.objective)
        inside += report.regret_low <= truth <= report.regret_high
        errors.append((report.regret - truth) / max(report.stderr, 0.005 * full.objective))
    assert inside >= 0.9 * SEEDS
    assert np.abs(errors).max() < 4.0
    assert abs(np.mean(errors)) < 1.5


def test_an_unknown_regret_says_how_much_memory_would_do() -> None:
    scenario = Scenario(lambda: categories(9, 24_000), sl.LinearClassifier, 100_000)
    report = tracked(scenario, 100_000)
    assert report.regret is None
    assert report.regret_low is None
    assert report.regret_high is None
    assert report.comparator is None
    assert "memory for about" in str(report.why_unknown)
    for _ in range(3):  # an extrapolation, which a larger sample corrects
        memory = float(str(report.why_unknown).rsplit("memory_bytes=", 1)[1].rstrip(")"))
        assert 2 * 100_000 < memory < 10 * 100_000
        report = tracked(scenario, int(memory))
        if report.regret is not None:
            break
    assert report.regret is not None


def test_the_correction_is_exact_for_means() -> None:
    """The minimum of the squared distance to a constant has G(m) = variance (m - 1) / 2."""
    draw = np.random.default_rng(0)
    n, events, found, corrections = 200, 1000, [], []
    for _ in range(2000):
        y = draw.normal(size=n)
        least = [0.5 * len(part) * part.var() for part in (y, *np.split(y, 2))]
        quarters = [0.5 * 50 * part.var() for part in np.split(y[:100], 2)]
        excess, earlier = least[0] - sum(least[1:]), 2.0 * (least[1] - sum(quarters))
        chance = 0.5 * events * float(y @ y) / n  # of the sample, for the best constant: 0
        corrections.append(events / n * max(excess, 0.0) * growth(0.5, math.log2(events / n)))
        found.append((least[0] * events / n - chance, correction(excess, earlier, n, events)))
    # without chance, the minimum over all events is -1/2 and that over the sample -N/n / 2
    assert np.mean([value for value, _ in found]) == pytest.approx(-2.5, abs=0.3)
    settled = np.array(corrections)
    assert np.mean([value for value, _ in found] + settled) == pytest.approx(-0.5, abs=0.3)
    ends = np.array([[fixed.least, fixed.middle, fixed.most] for _, fixed in found])
    assert np.all(np.diff(ends, axis=1) >= 0.0)
    assert np.all(np.isclose(ends[:, [0, 2]], settled[:, None]).any(axis=1))


def test_growth_is_the_sum_over_doublings() -> None:
    for decay in (0.5, 0.8):
        assert growth(decay, 3.0) == pytest.approx(decay + decay**2 + decay**3)
    assert growth(0.5, math.log2(10.0)) == pytest.approx(0.9)
