"""streamlearn: linear models from event streams, with known regret and exact sparsity.

Names are imported on first use, so that `import streamlearn` and every `--help` are fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlearn import hindsight, losses, penalties, regret, rules, serving, sklearn
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
        AROWClassifier,
        DualAveragingClassifier,
        DualAveragingRegressor,
        FTRLClassifier,
        FTRLRegressor,
        GradientDescentClassifier,
        GradientDescentRegressor,
        LinearClassifier,
        LinearRegressor,
        PassiveAggressiveClassifier,
        PassiveAggressiveRegressor,
        PegasosClassifier,
        PegasosRegressor,
        PrimalGradientClassifier,
        PrimalGradientRegressor,
        ProximalClassifier,
        ProximalRegressor,
        SparseClassifier,
        SparseRegressor,
    )
    from streamlearn.features import Hashing, Names, fields
    from streamlearn.late import DelayedLabels

__version__ = "0.1.0"

__all__ = [
    "AROWClassifier",
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
    "PassiveAggressiveClassifier",
    "PassiveAggressiveRegressor",
    "PegasosClassifier",
    "PegasosRegressor",
    "PrimalGradientClassifier",
    "PrimalGradientRegressor",
    "ProximalClassifier",
    "ProximalRegressor",
    "SparseClassifier",
    "SparseRegressor",
    "StreamlearnError",
    "fields",
    "hindsight",
    "losses",
    "penalties",
    "regret",
    "rules",
    "serving",
    "sklearn",
]


def __getattr__(name: str) -> Any:
    """Import a name on its first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name.islower():
            module = "features.fields" if name == "fields" else name
            return importlib.import_module(f"{__name__}.{module}")
        value = getattr(importlib.import_module(f"{__name__}.{_module_of(name)}"), name)
    except ModuleNotFoundError as missing:
        if not str(missing.name).startswith("streamlearn."):
            raise
        raise ImportError(
            "streamlearn is imported from its sources, which are not compiled here; leave this "
            "directory, or run `pip install -e .` in it"
        ) from missing
    globals()[name] = value
    return value


def _module_of(name: str) -> str:
    """Return the module that exports a class."""
    if name.endswith("Error"):
        return "errors"
    return {"Hashing": "features", "Names": "features", "DelayedLabels": "late"}.get(
        name, "estimators"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
