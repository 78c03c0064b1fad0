"""streamlearn: linear models from event streams, with known regret and exact sparsity.

Names are imported when they are first used, so that `import streamlearn` and every `--help` return
immediately.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlearn import hindsight, losses, penalties, regret, rules
    from streamlearn.errors import (
        DivergenceError,
        IncompatibleError,
        InvalidEventError,
        ModelFileError,
        StreamlearnError,
    )
    from streamlearn.estimators import (
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
        LinearClassifier,
        LinearRegressor,
        PegasosClassifier,
        PegasosRegressor,
        PrimalGradientClassifier,
        PrimalGradientRegressor,
        ProximalClassifier,
        ProximalRegressor,
    )
    from streamlearn.features import Hashing, Names
    from streamlearn.late import DelayedLabels

__version__ = "0.1.0"

__all__ = [
    "AdaGradClassifier",
    "AdaGradRegressor",
    "AdaptiveClassifier",
    "AdaptiveRegressor",
    "DelayedLabels",
    "DivergenceError",
    "DualAveragingClassifier",
    "DualAveragingRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "GradientDescentClassifier",
    "GradientDescentRegressor",
    "Hashing",
    "IncompatibleError",
    "InvalidEventError",
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
    "StreamlearnError",
    "hindsight",
    "losses",
    "penalties",
    "regret",
    "rules",
]


def __getattr__(name: str) -> Any:
    """Import what is used for the first time."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name.islower():
            return importlib.import_module(f"{__name__}.{name}")
        value = getattr(importlib.import_module(f"{__name__}.{_home(name)}"), name)
    except ModuleNotFoundError as missing:
        if not str(missing.name).startswith("streamlearn."):
            raise
        raise ImportError(
            "streamlearn is imported from its sources, whose modules are not compiled here: leave "
            "this directory, or `pip install -e .` in it"
        ) from missing
    globals()[name] = value
    return value


def _home(name: str) -> str:
    """The package that a class is of."""
    if name.endswith("Error"):
        return "errors"
    return {"Hashing": "features", "Names": "features", "DelayedLabels": "late"}.get(
        name, "estimators"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
