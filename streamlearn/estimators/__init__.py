"""Linear models as river estimators, presets of the papers' algorithms, and model files."""

from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.presets import (
    AdaGradClassifier,
    AdaGradRegressor,
    AdaptiveClassifier,
    AdaptiveRegressor,
    AROWClassifier,
    DualAveragingClassifier,
    DualAveragingRegressor,
    FTRLClassifier,
    FTRLRegressor,
    GradientDescentClassifier,
    GradientDescentRegressor,
    PassiveAggressiveClassifier,
    PassiveAggressiveRegressor,
    PegasosClassifier,
    PegasosRegressor,
    PrimalGradientClassifier,
    PrimalGradientRegressor,
    ProximalClassifier,
    ProximalRegressor,
)
from streamlearn.estimators.regressor import LinearRegressor

__all__ = [
    "AROWClassifier",
    "AdaGradClassifier",
    "AdaGradRegressor",
    "AdaptiveClassifier",
    "AdaptiveRegressor",
    "DualAveragingClassifier",
    "DualAveragingRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "GradientDescentClassifier",
    "GradientDescentRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "PassiveAggressiveClassifier",
    "PassiveAggressiveRegressor",
    "PegasosClassifier",
    "PegasosRegressor",
    "PrimalGradientClassifier",
    "PrimalGradientRegressor",
    "ProximalClassifier",
    "ProximalRegressor",
]
