"""Saved models, and the notes that the command which made one keeps beside it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, cast

from streamlearn import config
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.linear import Event, Linear
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.stream import CSVDecoder, Decoder
from streamlearn.stream.formats.label_set import LabelSet

Model = LinearClassifier | LinearRegressor


def load(path: str, learner: str | None = None) -> tuple[Model, dict[str, Any]]:
    """The model of a file or a directory of checkpoints, and its notes."""
    if Path(path).is_dir():
        data = checkpoints.model(path, learner)
        return cast("Model", Linear.revived(data, path)), data["notes"]
    if learner is not None:
        raise ValueError(f"{path} holds one model; --learner is for a directory of checkpoints")
    data = model_file.read(path)
    notes = data.get("notes", {}) if isinstance(data, dict) else {}
    return cast("Model", Linear.revived(data, path)), notes


def recall(decoder: Decoder, notes: dict[str, Any]) -> None:
    """What is known of labels and columns; the files begin anew, with headers of their own."""
    state = notes.get("decoder")
    if state is not None:
        Decoder.restore(decoder, state)
        if isinstance(decoder, CSVDecoder):
            decoder.know(state.get("table", {}).get("types", {}))


def features(event: dict[str, Any], notes: dict[str, Any]) -> Event:
    """The features of an event as the model learned them: without its label, texts as texts."""
    found = event
    if "format" in notes:
        given = {"source.kind": "stdin", **notes["format"]}
        settings = config.parse("", "", given, environ={})
        found, _ = config.fields(settings.format).split(event)
        if settings.format.kind == "svmlight":  # whose features are numbers, which JSON has not
            return {int(name) if name.isdecimal() else name: found[name] for name in found}
    types = notes.get("decoder", {}).get("table", {}).get("types", {})
    return {name: cell(value, types.get(name)) for name, value in found.items()}


def cell(value: Any, kind: str | None) -> Any:
    """A value as it is read from a column of numbers or text; kind None: as it is.

    >>> cell(80331, "text"), cell("2.5", "numbers"), cell(True, None)
    ('80331', 2.5, True)
    """
    if kind == "text" and isinstance(value, bool | int | float):
        return json.dumps(value)
    if kind == "numbers" and isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
    return value


def labels_of(model: Model, notes: dict[str, Any]) -> LabelSet:
    """The labels of a model that learns no more: as its stream had them, if they were closed."""
    kept = notes.get("decoder", {}).get("labels", {})
    known = model.labels if isinstance(model, LinearClassifier) else []
    return LabelSet.complete(kept["labels"] if kept.get("closed") else known)
