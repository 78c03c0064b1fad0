"""streamlearn: linear models from event streams, with known regret and exact sparsity."""

try:
    from streamlearn import hindsight, losses, penalties, regret, rules
    from streamlearn.rules import schedules
except ModuleNotFoundError as missing:
    if not str(missing.name).startswith("streamlearn."):
        raise
    raise ImportError(
        "streamlearn is imported from its sources, whose modules are not compiled here: leave this "
        "directory, or `pip install -e .` in it"
    ) from missing
from streamlearn.errors import BadEvent, Diverged, ModelFileError, StreamlearnError
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.presets import (
    AdaGradClassifier,
    AdaGradRegressor,
    AdaptiveClassifier,
    AdaptiveRegressor,
    DualAveragingClassifier,
    DualAveragingRegressor,
    FTRLClassifier,
    FTRLRegressor,
    GradientDescentClassifier,
    GradientDescentRegressor,
    PegasosClassifier,
    PegasosRegressor,
    PrimalGradientClassifier,
    PrimalGradientRegressor,
    ProximalClassifier,
    ProximalRegressor,
)
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.features import Hashing, Names
from streamlearn.late import LateLabels
from streamlearn.rules import Refused

__version__ = "0.1.0"

__all__ = [
    "AdaGradClassifier",
    "AdaGradRegressor",
    "AdaptiveClassifier",
    "AdaptiveRegressor",
    "BadEvent",
    "Diverged",
    "DualAveragingClassifier",
    "DualAveragingRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "GradientDescentClassifier",
    "GradientDescentRegressor",
    "Hashing",
    "LateLabels",
    "LinearClassifier",
    "LinearRegressor",
    "ModelFileError",
    "Names",
    "PegasosClassifier",
    "PegasosRegressor",
    "PrimalGradientClassifier",
    "PrimalGradientRegressor",
    "ProximalClassifier",
    "ProximalRegressor",
    "Refused",
    "StreamlearnError",
    "hindsight",
    "losses",
    "penalties",
    "regret",
    "rules",
    "schedules",
]
