"""A model with given weights predicts with them, and can be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.estimators.fixed import fixed_model

if TYPE_CHECKING:
    from pathlib import Path

L = sl.losses
RNG = np.random.default_rng(2)


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        (L.Logistic(), ["no", "yes"]),
        (L.Hinge(), [0, 1]),
        (L.Softmax(), ["a", "b", "c"]),
        (L.MulticlassHinge(), [3, 1, 2]),
        (L.Squared(), []),
    ],
)
def test_scores_are_those_of_the_weights(tmp_path: Path, loss: Any, labels: list[Any]) -> None:
    features = sl.Names()
    features.extend(["age", "price"])
    several = (3,) if len(labels) == 3 else ()
    w, intercept = RNG.normal(size=(*several, 2)), RNG.normal(size=several)
    model = fixed_model(loss, features, w, intercept, labels, 100.0)
    expected = w @ [2.0, 3.0] + intercept
    event = {"age": 2.0, "price": 3.0, "new": 1.0}
    scores = model.score_one(event)
    if several:
        scores = [scores[label] for label in labels]
    np.testing.assert_allclose(scores, expected)
    if labels:
        best = int(np.argmax(expected)) if several else int(expected > 0)
        assert model.predict_one(event) == labels[best]
    model.save(tmp_path / "fixed.model")
    again = type(model).load(tmp_path / "fixed.model")
    np.testing.assert_array_equal(again.coefficients(), model.coefficients())
    again.learn_one(event, labels[0] if labels else 1.0)
    assert not np.array_equal(again.coefficients(), model.coefficients())


def test_it_learns_on_from_the_side_of_each_label() -> None:
    features = sl.Names()
    features.extend(["age", "price"])
    w, labels, event = np.array([0.3, -0.2]), ["no", "yes"], {"age": 2.0, "price": 1.0}
    moves = {}
    for label in labels:
        model = fixed_model(L.Logistic(), features, w, 0.1, labels, 100.0)
        model.learn_one(event, label)
        moves[label] = model.coefficients()[0] - w
    score = w @ [2.0, 1.0] + 0.1
    # the slopes of the logistic loss are 1 - p(yes) and -p(yes)
    assert moves["yes"] == pytest.approx(-np.exp(-score) * moves["no"])
    assert moves["yes"] @ [2.0, 1.0] > 0.0
