"""Saved models, and the notes that the command which made one keeps beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from streamlearn import modelfile
from streamlearn.classifier import LinearClassifier
from streamlearn.linear import Linear
from streamlearn.regressor import LinearRegressor

Model = LinearClassifier | LinearRegressor


def load(path: str, learner: str | None = None) -> tuple[Model, dict[str, Any]]:
    """The model of a file or a directory of checkpoints, and its notes (none of checkpoints)."""
    if Path(path).is_dir():
        return cast("Model", Linear.load(path, learner=learner)), {}
    if learner is not None:
        raise ValueError(f"{path} holds one model; --learner is for a directory of checkpoints")
    data = modelfile.read(path)
    notes = data.get("notes", {}) if isinstance(data, dict) else {}
    return cast("Model", Linear.revived(data, path)), notes


def outputs(model: Model) -> list[Any]:
    """What each output is the score of: labels, or targets."""
    if isinstance(model, LinearClassifier):
        return model.labels
    return list(model._targets or [])  # noqa: SLF001 - one of us
