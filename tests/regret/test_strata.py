"""Totals from a sample that is post-stratified by a learner's scores, and their standard errors."""

import math

import numpy as np
import pytest

from streamlearn.regret.strata import Strata

CELLS = 256
EVENTS, ROWS, DRAWS = 20_000, 1_000, 200


def drawn(weights: np.ndarray, cells: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Return the errors of the totals of samples in standard errors, and how large these are."""
    total, all_weights = float(weights @ losses), np.bincount(cells, weights, CELLS)
    found = []
    for seed in range(DRAWS):
        rows = np.random.default_rng(seed).choice(EVENTS, ROWS, replace=False)
        strata = Strata(cells[rows], weights[rows], all_weights)
        error = strata.error(losses[rows]) * math.sqrt(1.0 - ROWS / EVENTS)
        plain = Strata.single(weights[rows], float(weights.sum())).error(losses[rows])
        off = float(strata.calibrated() @ losses[rows]) - total
        found.append((off / error, error / plain))
    return np.array(found).T


@pytest.mark.parametrize("shape", ["normal", "heavy"])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_as_large_as_they_say(shape: str, weighted: bool) -> None:
    draw = np.random.default_rng(1)
    scores = draw.normal(size=EVENTS)
    if shape == "heavy":  # the first events, before a learner has learned anything
        scores[: EVENTS // 500] *= 1000.0
    cells = 4 * np.clip(np.log2(np.abs(scores)) * 4.0 + 32.0, 0, 63).astype(int)
    losses = np.minimum(scores**2, 9.0) + 0.2 * draw.normal(size=EVENTS)
    weights = draw.exponential(size=EVENTS) if weighted else np.ones(EVENTS)
    off, smaller = drawn(weights, cells, losses)
    assert np.mean(np.abs(off) < 2.0) > 0.91
    assert abs(off.mean()) < 0.3
    assert off.std() == pytest.approx(1.0, abs=0.15)
    assert smaller.mean() < 0.5


def test_scores_that_explain_nothing_cost_little() -> None:
    draw = np.random.default_rng(2)
    cells = draw.integers(0, CELLS, EVENTS)
    off, smaller = drawn(np.ones(EVENTS), cells, draw.exponential(size=EVENTS))
    assert off.std() == pytest.approx(1.0, abs=0.15)
    assert smaller.mean() < 1.1


def test_calibrated_weights_are_those_of_all_events() -> None:
    draw = np.random.default_rng(3)
    cells, weights = draw.integers(0, CELLS, EVENTS), draw.exponential(size=EVENTS)
    all_weights = np.bincount(cells, weights, CELLS)
    strata = Strata(cells[:ROWS], weights[:ROWS], all_weights)
    assert strata.calibrated().sum() == pytest.approx(weights.sum())
    rest = strata.without(slice(100, 300))
    assert len(rest.cells) == ROWS - 200
    assert rest.calibrated().sum() == pytest.approx(weights.sum() - weights[100:300].sum())
    everything = Strata(cells, weights, all_weights)
    np.testing.assert_allclose(everything.calibrated(), weights)
    few = everything.part(slice(7))
    assert few.calibrated() / few.weights == pytest.approx(weights.sum() / few.weights.sum())
