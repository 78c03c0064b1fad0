"""Scores and the choice of the best: the same whatever the batches, and what they say they are."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from streamlearn.daemon.scores import BestLearner, ProgressiveMean, block_layout, comparable_means
from streamlearn.estimators import model_file

RNG = np.random.default_rng(3)


def batches(n: int, sizes: list[int]) -> list[slice]:
    found: list[slice] = []
    start = 0
    for size in itertools.cycle(sizes):
        if start >= n:
            return found
        found.append(slice(start, min(start + size, n)))
        start += size
    return found


@pytest.mark.parametrize("window", [1, 7, 100, 950, 10_000])
def test_means_do_not_depend_on_batches(window: int) -> None:
    values = RNG.exponential(size=1500) * 10.0 ** RNG.integers(-8, 8, 1500)
    weights = RNG.integers(1, 4, 1500).astype(float)
    states = set()
    for sizes in ([2], [3, 200, 1], [1500], [99, 1]):
        progress = ProgressiveMean(window)
        for piece in batches(1500, sizes):
            progress.add(values[piece], weights[piece])
            again = ProgressiveMean(window)
            again.restore(model_file.unpack(model_file.pack(progress.state())))
            progress = again
        states.add(model_file.pack(progress.state()))
    assert len(states) == 1
    assert math.isclose(progress.mean, np.average(values, weights=weights), rel_tol=1e-12)
    size, capacity = block_layout(window)
    start = (1500 // size - capacity) * size  # the full blocks, and what has come since
    recent = slice(max(start, 0), None)
    expected = np.average(values[recent], weights=weights[recent])
    assert math.isclose(progress.recent, expected, rel_tol=1e-12)


def test_means_without_events_are_nan() -> None:
    assert math.isnan(ProgressiveMean(100).mean)
    assert math.isnan(ProgressiveMean(100).recent)


def test_changed_window_starts_empty_and_keeps_lifetime_means() -> None:
    progress = ProgressiveMean(100)
    progress.add(np.ones(50), np.ones(50))
    wider = ProgressiveMean(1000)
    wider.restore(progress.state())
    assert wider.mean == 1.0
    assert math.isnan(wider.recent)


def chosen(values: Any, sizes: list[int], window: int, hysteresis: float) -> tuple[Any, bytes]:
    choice = BestLearner(["a", "b", "c"], window, hysteresis)
    changes = []
    for piece in batches(values.shape[1], sizes):
        changes += [(piece.start + at, name) for at, name in choice.add(values[:, piece])]
        again = BestLearner(["a", "b", "c"], window, hysteresis)
        again.restore(model_file.unpack(model_file.pack(choice.state())))
        choice = again
    return changes, model_file.pack(choice.state())


def test_choice_follows_the_means_for_any_batches() -> None:
    n, window = 2400, 300
    values = RNG.random((3, n)) + 0.3 * np.sin(np.arange(n) / 180.0 + np.array([[0], [2], [4]]))
    values[1, ::20] = np.nan  # one that diverges now and then
    results = [chosen(values, sizes, window, 0.05) for sizes in ([3], [7, 300], [n], [20])]
    assert len({state for _, state in results}) == 1
    assert all(changes == results[0][0] for changes, _ in results)
    size, _ = block_layout(window)
    now, expected = 0, []
    for stop in range(size, n + 1, size):
        means = np.nanmean(values[:, max(stop - window, 0) : stop], axis=1)
        best = int(np.argmin(means))
        if best != now and means[best] < 0.95 * means[now]:
            now = best
            expected.append((stop, "abc"[best]))
    assert results[0][0] == expected
    assert len(expected) > 3


def test_means_are_compared_for_similar_counts_only() -> None:
    sums, counts = np.array([[4.0], [4.5], [1.0], [0.0]]), np.array([[10.0], [9.0], [8.0], [0.0]])
    assert comparable_means(sums, counts).ravel().tolist() == [0.4, 0.5, math.inf, math.inf]


def test_new_learner_is_compared_once_it_has_as_many_events() -> None:
    old = BestLearner(["a", "b"], 1000, 0.0)
    old.add(np.array([[0.5], [0.4]]).repeat(1500, axis=1))
    assert old.name == "b"
    choice = BestLearner(["a", "new", "b"], 1000, 0.0)
    choice.restore(old.state())
    assert choice.name == "b"
    changes = choice.add(np.array([[0.5], [0.1], [0.4]]).repeat(2000, axis=1))
    assert [name for _, name in changes] == ["new"]
    assert 800 <= changes[0][0] <= 1000
    gone = BestLearner(["a"], 1000, 0.0)
    gone.restore(choice.state())
    assert gone.name == "a"
