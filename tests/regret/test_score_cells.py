"""The cells of scores, and the weights of all events in them."""

import math
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.regret import Tracker
from streamlearn.regret.progressive_sums import ProgressiveSums
from streamlearn.regret.reservoir import Reservoir
from streamlearn.regret.strata import in_order

L = sl.losses
N = 1000
DIGITS = 8  # cells for each doubling


def cell(score: float, positive: bool) -> int:
    """Return the cell of a score, in plain Python."""
    fraction, exponent = math.frexp(abs(score))
    size = DIGITS * (exponent - 1 + 32) + int((2.0 * fraction - 1.0) * DIGITS)
    size = min(max(size, 0), 64 * DIGITS - 1) if score else 0
    return 4 * size + 2 * (math.copysign(1.0, score) < 0.0) + positive


def observed(loss: Any, scores: Any, labels: Any, weights: Any) -> ProgressiveSums:
    width = labels.shape[1] if labels.ndim == 2 else 1
    sums = ProgressiveSums(loss, Reservoir(None, 0, width))
    sums.observe(np.zeros(len(scores) + 1, int), [], [], labels, weights, scores)
    return sums


def expected(scores: Any, positive: Any, weights: Any) -> tuple[list[int], Any]:
    cells = [cell(*one) for one in zip(scores.tolist(), positive.tolist(), strict=True)]
    return cells, np.bincount(cells, weights, 256 * DIGITS)


def values(seed: int) -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(seed)
    scores = draw.normal(size=N) * np.exp(draw.normal(size=N) * 12.0)
    scores[:3] = [0.0, -0.0, 1.0]
    return scores, draw.choice([-1.0, 1.0], N), draw.choice([1.0, 0.5, 3.0], N)


def test_cells_are_scores_and_classes() -> None:
    scores, labels, weights = values(1)
    sums = observed(L.Hinge(), scores, labels, weights)
    cells, total = expected(scores, labels > 0.0, weights)
    np.testing.assert_array_equal(sums.cells.samples()[1], cells)
    np.testing.assert_array_equal(sums.cell_weights(), total)


def test_cells_of_numbers_are_residuals() -> None:
    scores, labels, weights = values(2)
    sums = observed(L.Huber(), scores, labels, weights)
    cells, total = expected(labels - scores, np.zeros(N, bool), weights)
    np.testing.assert_array_equal(sums.cells.samples()[1], cells)
    np.testing.assert_array_equal(sums.cell_weights(), total)


@pytest.mark.parametrize("loss", [L.Softmax(), L.MultiSquared()], ids=repr)
def test_cells_of_several_scores_are_losses(loss: Any) -> None:
    draw, weights = np.random.default_rng(3), values(3)[2]
    scores = draw.normal(size=(N, 3))
    labels = (
        draw.normal(size=(N, 3)) if loss.kind == "multitarget" else draw.integers(0, 3, N) + 0.0
    )
    sums = observed(loss, scores, labels, weights)
    losses = np.array([loss.value(scores[i], labels[i]) for i in range(N)]).ravel()
    # the last digit of a loss may differ, and with it the cell
    total = expected(losses, np.zeros(N, bool), weights)[1]
    assert sums.cell_weights().sum() == total.sum() == weights.sum()
    assert np.abs(sums.cell_weights() - total).sum() < 0.01 * weights.sum()


def test_swapped_classes_have_the_cells_of_their_opposites() -> None:
    scores, labels, weights = values(4)
    sums = observed(L.Logistic(), scores, labels, weights)
    loss = sums.progressive_loss
    sums.swap_classes()
    opposite = observed(L.Logistic(), -scores, -labels, weights)
    np.testing.assert_array_equal(sums.cell_weights(), opposite.cell_weights())
    for ours, theirs in zip(sums.cells.samples(), opposite.cells.samples(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert sums.progressive_loss == loss


@pytest.mark.parametrize("names", [(3, 7), (7, 3)])
def test_the_sign_of_the_first_class_may_turn_out_later(names: tuple[int, int]) -> None:
    draw = np.random.default_rng(5)
    X = draw.normal(size=(300, 3))
    labels = np.where((np.arange(300) < 100) | (X[:, 0] > 0.0), *names)
    tracker = Tracker(sl.LinearClassifier(), 10_000, 0)
    for x, y in zip(X, labels.tolist(), strict=True):
        tracker.learn_one(dict(enumerate(x.tolist())), y)
    weights, sums = tracker.ledger.sums.cell_weights(), tracker.ledger.sums
    positive = tracker.estimator.labels[1]  # type: ignore[union-attr]
    assert weights[1::2].sum() == np.count_nonzero(labels == positive)
    places, cells, _ = sums.cells.current_samples()
    np.testing.assert_array_equal(cells % 2 == 1, labels[places] == positive)


def test_neighbors_in_order_have_similar_scores() -> None:
    order = in_order(256 * DIGITS)
    scores = np.sort(np.random.default_rng(6).normal(size=N) * 10.0)
    for positive in (False, True):
        places = np.argsort(order)[[cell(score, positive) for score in scores.tolist()]]
        assert np.all(np.diff(places) >= 0)
        assert np.all((places >= len(order) // 2) == positive)
