"""The loss of the best constant prediction, known in hindsight: what a model has to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.losses import Loss

MAX_SCORE = 50.0  # of a score that is no label: beyond, a probability is 0 or 1


def constant_loss(loss: Loss, labels: Array, weights: Array) -> float:
    """Return the least mean loss of a constant score.

    >>> from streamlearn.losses import Absolute, Logistic
    >>> constant_loss(Absolute(), np.array([1.0, 2.0, 9.0]), np.ones(3)).__round__(6)
    2.666667
    >>> constant_loss(Logistic(), np.array([-1.0, 1.0]), np.array([3.0, 1.0])).__round__(6)
    0.562335
    >>> entropy(np.array([3.0, 0.0]))
    0.0
    """
    shares = weights / weights.sum()

    def mean(score: float) -> float:
        return float(np.dot(loss.value(np.full(len(labels), score), labels), shares))

    low, high = -MAX_SCORE, MAX_SCORE
    if loss.score_is_label:
        low, high = float(labels.min()), float(labels.max())
    found = minimize_scalar(
        mean, bounds=(low, high), method="bounded", options={"xatol": 1e-9 * (high - low)}
    )
    return min(mean(low), mean(high), float(found.fun))


def entropy(weights: Array) -> float:
    """Return the mean log-loss of predicting each class with its share.

    >>> entropy(np.array([3.0, 1.0, 0.0])).__round__(6)
    0.562335
    """
    shares = weights[weights > 0.0] / weights.sum()
    return float(0.0 - np.dot(shares, np.log(shares)))  # never -0
