"""The losses l(p, y) of a prediction p for a label y ([Teo07] Tables 1 and 2)."""

from streamlearn.losses.count import Poisson
from streamlearn.losses.distance import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    Quantile,
    Squared,
)
from streamlearn.losses.loss import Loss, VectorLoss
from streamlearn.losses.margin import (
    Exponential,
    Hinge,
    Logistic,
    Novelty,
    SquaredHinge,
)
from streamlearn.losses.vector import MulticlassHinge, MultiSquared, Softmax

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MultiSquared",
    "MulticlassHinge",
    "Novelty",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "VectorLoss",
]
