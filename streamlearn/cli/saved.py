"""Saved models, and the notes that the command which made one keeps beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from streamlearn import checkpoints, modelfile
from streamlearn.classifier import LinearClassifier
from streamlearn.linear import Linear
from streamlearn.regressor import LinearRegressor
from streamlearn.stream import CSVDecoder, Decoder

Model = LinearClassifier | LinearRegressor


def load(path: str, learner: str | None = None) -> tuple[Model, dict[str, Any]]:
    """The model of a file or a directory of checkpoints, and its notes."""
    if Path(path).is_dir():
        data = checkpoints.model(path, learner)
        return cast("Model", Linear.revived(data, path)), data["notes"]
    if learner is not None:
        raise ValueError(f"{path} holds one model; --learner is for a directory of checkpoints")
    data = modelfile.read(path)
    notes = data.get("notes", {}) if isinstance(data, dict) else {}
    return cast("Model", Linear.revived(data, path)), notes


def recall(decoder: Decoder, notes: dict[str, Any]) -> None:
    """What is known of labels and columns; the files begin anew, with headers of their own."""
    state = notes.get("decoder")
    if state is not None:
        Decoder.restore(decoder, state)
        if isinstance(decoder, CSVDecoder):
            decoder.know(state.get("table", {}).get("types", {}))
