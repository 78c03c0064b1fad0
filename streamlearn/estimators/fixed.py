"""A model with given weights, such as the best fixed model of a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.losses import VectorLoss
from streamlearn.rules import GradientDescent
from streamlearn.rules.schedules import InverseSqrt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.features import Reader
    from streamlearn.losses import Loss

STEP = 0.1  # of the first event that the model would learn


def fixed_model(
    loss: Loss | VectorLoss,
    features: Reader,
    w: Array,
    intercept: Any,
    labels: Sequence[Any],
    events: float,
) -> LinearClassifier | LinearRegressor:
    """Return a model that predicts with these weights, by slot of `features`.

    w has a row for each of several outputs, whose `labels` are in the same order; of two classes,
    the positive one is last. If the model learns more, it does so by gradient descent, as after so
    many `events`.
    """
    kind = LinearClassifier if loss.kind in ("binary", "multiclass") else LinearRegressor
    model = kind(GradientDescent(InverseSqrt(STEP)), loss=loss, features=features)
    model.reader.restore(features.state())
    state = model.state()
    weights = np.atleast_2d(w)
    outputs, slots = weights.shape
    learner = state["learner"]
    learner["features"] = slots
    if isinstance(loss, VectorLoss):
        learner["outputs"] = outputs
        learner["batch"]["n"], learner["intercept_batch"]["n"] = outputs * slots, outputs
    for name, cells in (("weights", weights.T.ravel()), ("intercept", np.ravel(intercept))):
        square = float(np.square(cells).sum())
        learner[name]["rule"] |= {
            "t": float(events),
            "square": square,
            "peak": square,
            "changes": float(events),
            "cells": np.array(cells, dtype=float).reshape(-1, 1),
        }
    if isinstance(model, LinearClassifier):
        state["labels"] = list(labels)
        codes = range(outputs) if isinstance(loss, VectorLoss) else (-1.0, 1.0)
        state["codes"] = [float(code) for code in codes]
    model.restore(state)
    return model
