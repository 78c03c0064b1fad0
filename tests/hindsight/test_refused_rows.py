"""Rows that have no best fixed model are refused, with what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.hindsight import ArrayShard, solve, solve_shards
from streamlearn.hindsight.structured.multivariate.loss import checked_scores

L, P, M = sl.losses, sl.penalties, sl.hindsight.multivariate
X = np.random.default_rng(3).normal(size=(90, 6))
SIGNS = np.where(X[:, 0] > 0.0, 1, -1)
CLASSES = np.digitize(X[:, 0], [-1.0, 1.0])
GROUPS = np.arange(90) // 9
TARGETS = np.stack([X[:, 0], X[:, 1]], axis=1)


@pytest.mark.parametrize(
    ("loss", "y", "more", "named"),
    [
        (M.ROCArea(), SIGNS, {"groups": np.full(90, np.nan)}, "groups"),
        (M.ROCArea(), SIGNS, {"groups": GROUPS[1:]}, "groups"),
        (M.ROCArea(), SIGNS, {"weights": np.ones(90)}, "weights"),
        (M.FBeta(), SIGNS, {"groups": GROUPS}, "groups"),
        (M.ROCArea(), CLASSES, {}, "two"),
        (M.ROCArea(), SIGNS.reshape(-1, 1), {}, "shape"),
        (M.ROCArea(), ["a"] * 90, {}, "numbers"),
        (M.ROCArea(), np.where(SIGNS > 0, np.nan, 1.0), {}, "row"),
        (L.MultiSquared(metric=np.eye(3)), TARGETS, {}, "3 targets"),
        (L.MultiSquared(), X[:, 0], {}, "row of targets"),
        (L.Squared(), TARGETS, {}, "one label"),
        (L.Squared(), ["a"] * 90, {}, "numbers"),
        (L.Squared(), np.where(SIGNS > 0, np.inf, 1.0), {}, "row"),
        (L.MulticlassHinge(1.0 - np.eye(3)), CLASSES + 1, {}, "label 3"),
        (L.MulticlassHinge(1.0 - np.eye(3)), ["a", "b", "c"] * 30, {}, "label 'a'"),
        (L.Softmax(), CLASSES, {"method": "sdca"}, "sdca"),
        (L.MulticlassHinge(), CLASSES, {"method": "newton"}, "newton"),
    ],
)
def test_rows_are_refused_by_what_is_wrong(loss: Any, y: Any, more: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        solve(X, y, loss, P.L2(0.1), **more)


@pytest.mark.parametrize(
    ("shard", "loss", "named"),
    [
        (ArrayShard(X, SIGNS, np.zeros(90), name="b"), L.Logistic(), "b: weights"),
        (ArrayShard(X, SIGNS[1:], groups=GROUPS, name="b"), M.ROCArea(), "b: y"),
        (ArrayShard(X, CLASSES, groups=GROUPS, name="b"), M.ROCArea(), "b: y"),
        (ArrayShard(X, SIGNS, groups=GROUPS[1:], name="b"), M.ROCArea(), "b: groups"),
    ],
)
def test_shards_are_refused_by_name(shard: ArrayShard, loss: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        solve_shards([shard], loss, P.L2(0.1))


def test_labels_of_all_shards_count() -> None:
    """Each shard has two of three labels, which the loss does not support together."""
    parts = []
    for k in (0, 2):
        rows, y = X[k != CLASSES], CLASSES[k != CLASSES]
        parts.append(ArrayShard(rows, y, groups=GROUPS[: len(y)] + 100 * k))
    with pytest.raises(ValueError, match="two labels"):
        solve_shards(parts, M.ROCArea(), P.L2(0.1))
    with pytest.raises(ValueError, match="classes"):
        solve_shards([ArrayShard(part.X, part.y) for part in parts], L.Logistic(), P.L2(0.1))


def test_costs_are_of_the_labels_from_zero_on() -> None:
    # a label that does not occur has its costs
    some = CLASSES < 2
    found = solve(X[some], CLASSES[some], L.MulticlassHinge(1.0 - np.eye(3)), P.L2(0.1))
    assert np.shape(found.w)[0] == 3


def test_scores_are_one_for_each_label() -> None:
    assert checked_scores([1, 2], [0.0, 1.0]).tolist() == [1.0, 2.0]
    for scores in ([1.0], 1.0, [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="2 labels"):
            checked_scores(scores, [0.0, 1.0])


def test_what_is_held_for_delayed_labels_is_one_number_or_class() -> None:
    several = sl.LinearRegressor(sl.rules.AdaGrad(), loss=L.MultiSquared())
    with pytest.raises(sl.IncompatibleError):
        sl.DelayedLabels(several)
    with pytest.raises(sl.InvalidEventError):
        sl.DelayedLabels(sl.LinearRegressor(), on_timeout="x")
    late = sl.DelayedLabels(sl.LinearRegressor(), on_timeout=np.float64(2.0))
    assert np.isnan(late.now)
    late.predict_one("e", {"a": 1.0}, t=50.0)
    assert late.now == 50.0
