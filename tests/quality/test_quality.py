"""Numbers of one pass equal those of scikit-learn on all events at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn import metrics

import streamlearn as sl
from streamlearn.engine.events import Events
from streamlearn.errors import InvalidEventError
from streamlearn.quality import ClassifierQuality, RegressorQuality, bins, quality_of
from streamlearn.quality.bins import Bins
from streamlearn.quality.ranking import (
    Ranking,
    average_precision,
    calibration,
    calibration_ratio,
    groups_of,
    precision_recall,
    roc_area,
    roc_curve,
)
from streamlearn.quality.segments import LossSegments
from streamlearn.stream import JSONDecoder
from streamlearn.stream.formats.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array

N = 1500
Labels = list[Any]


def batches(model: Any, labels: Labels, weights: Array, size: int) -> list[Events]:
    """Return events with two numbers that tell something of the label."""
    draw = np.random.default_rng(0)
    numbers = draw.normal(size=(len(labels), 2))
    decoder = JSONDecoder(model.reader, Fields(label="y", weight="w"), [model])
    found = []
    for start in range(0, len(labels), size):
        events = Events()
        rows = zip(numbers, labels, weights, strict=True)
        lines = [
            json.dumps({"a": a + hash_of(y), "b": b, "y": y, "w": w}).encode()
            for (a, b), y, w in list(rows)[start : start + size]
        ]
        decoder.decode(lines, events)
        assert not events.invalid
        found.append(events)
    return found


def hash_of(label: Any) -> float:
    """Return a number that depends on the label."""
    return float(label) if isinstance(label, int | float) else float(sum(map(ord, label)) % 7)


def progressive(model: Any, labels: Labels, weights: Array, size: int) -> tuple[Any, Array]:
    """Learn, and return the quality and the scores."""
    quality, scores = quality_of(model), []
    for events in batches(model, labels, weights, size):
        scored = model.progressive_events(events, model.score_measures)
        scores.append(scored.scores)
        quality.add(events, scored)
    return quality, np.concatenate(scores)


def test_bins_hold_numbers_of_any_magnitude() -> None:
    values = np.array([0.0, -0.0, 1e-30, -1e-30, 5e-324, 0.5, -3.0, 7e5, -1e300, 1e308, np.inf])
    one = Bins(1)
    one.add(values, np.ones(len(values)))
    found, (weights,) = one.used()
    assert found.tolist() == np.unique(np.minimum(values, 1.7976931348623157e308)).tolist()
    assert weights.tolist() == [2.0 if value == 0.0 else 1.0 for value in found]
    one.mirror()
    assert one.used()[0].tolist() == (-found[::-1]).tolist()


@pytest.mark.parametrize(("center", "spread"), [(0.0, 1.0), (-7.0, 1e-6), (1e6, 50.0)])
def test_bins_are_narrow_where_the_numbers_are(
    center: float, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bins, "MAX_BINS", 1 << 10)
    monkeypatch.setattr(bins, "BUFFER", 1 << 12)
    draw = np.random.default_rng(0)
    values = draw.normal(center, spread, 20_000)
    weights = draw.integers(1, 5, len(values)).astype(float)
    found = []
    for parts, order in ((1, 1), (7, 1), (300, -1)):
        one = Bins(2)
        for rows in np.array_split(np.arange(len(values))[::order], parts):
            one.add(values[rows], weights[rows], weights[rows] * (values[rows] - center))
        found.append(one.used())
    for middle, (sums, moments) in found:
        assert len(middle) <= 1 << 10
        np.testing.assert_array_equal(middle, found[0][0])
        np.testing.assert_array_equal(sums, found[0][1][0])
        # the middle of a bin is beside its numbers
        assert np.abs(middle - center - moments / sums).max() < 0.02 * spread * 50.0**0.5
    ranks = np.searchsorted(found[0][0], values)
    assert np.bincount(ranks).max() < 0.02 * len(values)


@pytest.mark.parametrize("weighted", [False, True])
def test_ranking_equals_scikit_learn(weighted: bool) -> None:
    draw = np.random.default_rng(1)
    scores = np.concatenate([draw.normal(-4.0, 1.5, N), np.full(200, -2.0)])  # with ties
    positive = draw.random(len(scores)) < 1.0 / (1.0 + np.exp(-scores))
    weights = draw.integers(1, 5, len(scores)).astype(float) if weighted else np.ones(len(scores))
    shares = 1.0 / (1.0 + np.exp(-0.5 * scores))
    ranking = Ranking()
    for rows in np.array_split(np.arange(len(scores)), 7):
        ranking.add(scores[rows], positive[rows], shares[rows], weights[rows])
    groups = ranking.groups()
    given: dict[str, Any] = {"sample_weight": weights}
    assert roc_area(groups) == pytest.approx(
        metrics.roc_auc_score(positive, scores, **given), abs=1e-4
    )
    assert average_precision(groups) == pytest.approx(
        metrics.average_precision_score(positive, scores, **given), rel=1e-2
    )
    want = metrics.roc_curve(positive, scores, **given, drop_intermediate=False)
    rates = np.linspace(0.05, 1.0, 50)
    np.testing.assert_allclose(
        np.interp(rates, *roc_curve(groups)), np.interp(rates, *want[:2]), atol=0.02
    )
    assert precision_recall(groups)[0][-1] == pytest.approx(1.0)
    assert calibration_ratio(groups) == pytest.approx(
        np.dot(shares, weights) / np.dot(positive, weights)
    )


def test_calibration_error_is_that_of_bins_of_equal_weight() -> None:
    draw = np.random.default_rng(2)
    scores = draw.normal(size=15 * 200)
    positive = draw.random(len(scores)) < 1.0 / (1.0 + np.exp(-2.0 * scores))
    shares = 1.0 / (1.0 + np.exp(-scores))
    order = np.argsort(scores).reshape(15, 200)
    want = np.abs(shares[order].mean(axis=1) - positive[order].mean(axis=1)).mean()
    assert calibration(
        groups_of(scores, positive, shares, np.ones(len(scores)))
    ).error == pytest.approx(want)
    ranking = Ranking()
    ranking.add(scores, positive, shares, np.ones(len(scores)))
    assert calibration(ranking.groups()).error == pytest.approx(want, rel=0.05)


def test_without_one_class_the_area_is_unknown() -> None:
    scores, shares, weights = np.array([1.0, 2.0]), np.array([0.5, 0.5]), np.ones(2)
    one = groups_of(scores, np.array([True, True]), shares, weights)
    assert roc_area(one) is None
    assert average_precision(one) == 1.0
    other = groups_of(scores, np.array([False, False]), shares, weights)
    assert roc_area(other) is average_precision(other) is calibration_ratio(other) is None


@pytest.mark.parametrize("first", [1, 2])  # the second label is the lower one, or the higher one
@pytest.mark.parametrize("size", [1, 250, N])
def test_numbers_of_two_classes(first: int, size: int) -> None:
    draw = np.random.default_rng(3)
    labels = [first] * 5 + (1 + (draw.random(N - 5) < 0.3)).tolist()
    weights = draw.integers(1, 3, N).astype(float)
    quality, _ = progressive(sl.LinearClassifier(), labels, weights, size)
    model = sl.LinearClassifier()
    singly, scores = progressive(model, labels, weights, 1)
    facts = quality.facts()
    assert facts == pytest.approx(singly.facts(), rel=1e-12)
    known = next(i for i, label in enumerate(labels) if label != first)
    scores[:known] *= -1.0  # until the second label, the first one was taken for the other class
    positive = np.array(labels) == 2
    shares = 1.0 / (1.0 + np.exp(-scores))
    given: dict[str, Any] = {"sample_weight": weights}
    base = np.average(positive, weights=weights)
    assert facts["loss"] == pytest.approx(metrics.log_loss(positive, shares, **given))
    assert facts["constant's loss"] == pytest.approx(
        metrics.log_loss(positive, np.full(N, base), **given)
    )
    assert facts["ROC area"] == pytest.approx(
        metrics.roc_auc_score(positive, scores, **given), abs=1e-4
    )
    assert facts["calibration ratio"] == pytest.approx(
        np.dot(shares, weights) / np.dot(positive, weights)
    )
    assert facts["constant's error rate"] == pytest.approx(base)
    assert facts["error rate"] == pytest.approx(
        metrics.zero_one_loss(positive, scores > 0.0, **given),
        abs=2.0 / N,  # the score of the first event is 0
    )


@pytest.mark.parametrize(
    "make",
    [
        sl.LinearClassifier,
        lambda: sl.LinearClassifier(loss=sl.losses.Softmax(), rule=sl.rules.AdaGrad()),
        lambda: sl.LinearClassifier(loss=sl.losses.Hinge(), rule=sl.rules.AdaGrad()),
    ],
)
def test_numbers_of_several_classes(make: Callable[[], Any]) -> None:
    draw = np.random.default_rng(4)
    labels = ["red", "red", "blue", *draw.choice(["red", "green", "blue"], N - 3).tolist()]
    weights = np.ones(N)
    model = make()
    quality, scores = progressive(model, labels, weights, 100)
    assert isinstance(quality, ClassifierQuality)
    facts = quality.facts()
    counts = np.array([labels.count(label) for label in model.labels])
    np.testing.assert_array_equal(quality.confusion.sum(axis=1), counts)
    assert facts["constant's error rate"] == 1.0 - counts.max() / N
    right = quality.confusion.trace() / N
    assert facts["error rate"] == pytest.approx(1.0 - right)
    assert right > counts.max() / N
    loss = facts["log loss"] if "log loss" in facts else facts["loss"]
    assert loss is not None
    entropy = -np.dot(counts / N, np.log(counts / N))
    name = "constant's log loss" if "log loss" in facts else "constant's loss"
    assert facts[name] == pytest.approx(entropy)
    assert "ROC area" not in facts
    assert len(scores) == N


def test_labels_by_prediction_keep_their_weight() -> None:
    draw = np.random.default_rng(5)
    labels, weights = draw.normal(size=N).tolist(), np.full(N, 1e-3)
    quality, scores = progressive(sl.LinearRegressor(), labels, weights, 100)
    assert isinstance(quality, RegressorQuality)
    bins, predicted, true = quality.by_prediction()
    assert bins.sum() == pytest.approx(weights.sum())
    assert bins @ predicted == pytest.approx(weights @ scores)
    assert bins @ true == pytest.approx(weights @ np.array(labels))
    assert (np.diff(predicted) > 0.0).all()
    assert bins == pytest.approx(np.full(15, weights.sum() / 15), rel=0.05)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_numbers_of_a_regressor(offset: float) -> None:
    draw = np.random.default_rng(5)
    labels = (offset + draw.normal(3.0, 2.0, N)).tolist()
    weights = draw.integers(1, 3, N).astype(float)
    quality, scores = progressive(sl.LinearRegressor(), labels, weights, 100)
    assert isinstance(quality, RegressorQuality)
    facts, given = quality.facts(), {"sample_weight": weights}
    mean = np.full(N, np.average(labels, weights=weights))
    assert facts["MAE"] == pytest.approx(metrics.mean_absolute_error(labels, scores, **given))
    assert facts["RMSE"] == pytest.approx(metrics.root_mean_squared_error(labels, scores, **given))
    assert facts["R2"] == pytest.approx(metrics.r2_score(labels, scores, **given), rel=1e-6)
    assert facts["mean's RMSE"] == pytest.approx(
        metrics.root_mean_squared_error(labels, mean, **given), rel=1e-6
    )
    assert facts["mean's MAE"] == pytest.approx(
        metrics.mean_absolute_error(labels, mean, **given), rel=1e-6
    )
    assert facts["constant's loss"] == pytest.approx(
        metrics.mean_squared_error(labels, mean, **given) / 2.0, rel=1e-6
    )


def test_what_is_too_large_for_a_float_is_unknown() -> None:
    labels = [1.0] * 50 + [1e308] + [2.0] * 50
    quality, _ = progressive(sl.LinearRegressor(), labels, np.ones(101), 10)
    facts = quality.facts()
    assert (facts["RMSE"], facts["mean's RMSE"], facts["R2"]) == (None, None, None)
    assert facts["MAE"] == pytest.approx(1e308 / 101)


def test_the_constant_of_any_loss_is_the_best_one() -> None:
    draw = np.random.default_rng(6)
    labels = draw.exponential(2.0, N).tolist()
    for loss, best in (
        (sl.losses.Absolute(), np.median(labels)),
        (sl.losses.Quantile(0.9), np.quantile(labels, 0.9)),
    ):
        model = sl.LinearRegressor(loss=loss)
        quality, _ = progressive(model, labels, np.ones(N), N)
        want = loss.value(np.full(N, best), np.array(labels)).mean()
        assert quality.facts()["constant's loss"] == pytest.approx(want, rel=1e-4)
    hinge = sl.PegasosClassifier(l2=1e-3)
    quality, _ = progressive(hinge, [0, 1, 1, 1] * 50, np.ones(200), 50)
    assert quality.facts()["constant's loss"] == pytest.approx(0.5)
    assert "calibration ratio" not in quality.facts()


def test_scores_without_learning() -> None:
    draw = np.random.default_rng(7)
    labels = [0, 1, *draw.integers(0, 2, N - 2).tolist()]
    model = sl.LinearClassifier()
    events = batches(model, labels, np.ones(N), N)[0]
    model.progressive_events(events)
    before = model.weights
    events.weights[:10] = 0.0
    scored = model.score_events(events, model.score_measures)
    scores, measures = scored.scores, scored.measures
    assert model.weights == before
    assert np.isnan(measures["loss"][:10]).all()
    positive = np.array(labels[10:]) == 1
    assert measures["loss"][10:].mean() == pytest.approx(
        metrics.log_loss(positive, 1.0 / (1.0 + np.exp(-scores[10:])))
    )
    quality = quality_of(model)
    assert quality.facts() == {"loss": None}
    quality.add(events, scored)
    assert quality.events == N - 10
    other = batches(sl.LinearClassifier(), ["x", "y"], np.ones(2), 2)[0]
    with pytest.raises(InvalidEventError):
        model.score_events(other)


def test_a_short_last_segment_is_part_of_the_one_before() -> None:
    segments = LossSegments()
    segments.add(np.arange(1025.0), np.ones(1025))  # 64 segments of 16, and one event
    ends, means = segments.means()
    assert ends.tolist() == [*range(16, 1009, 16), 1025]
    assert means[-1] == np.arange(1008.0, 1025.0).mean()
    segments.add(np.arange(7.0), np.ones(7))
    assert segments.means()[0].tolist() == [*range(16, 1025, 16), 1032]
