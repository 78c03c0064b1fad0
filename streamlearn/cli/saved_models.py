"""Load saved models with their notes: how the events of the training were read."""

from __future__ import annotations

import contextlib
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import streamlearn
from streamlearn import config
from streamlearn.config import effective
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.linear import Event, Linear
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.storage import is_url
from streamlearn.stream import CSVDecoder, Decoder
from streamlearn.stream.formats.label_set import LabelSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.features.fields import FieldSpec

Model = LinearClassifier | LinearRegressor


def load(path: str, learner: str | None = None) -> tuple[Model, dict[str, Any]]:
    """Load a model file, or a learner of a daemon's `checkpoint.path`, with its notes."""
    if is_url(path) or Path(path).is_dir():
        data = checkpoints.model(path, learner)
        return cast("Model", Linear.from_file_data(data, path)), data["notes"]
    data = model_file.read(path)
    if learner is not None:
        raise ValueError(f"{path} is a model file; --learner needs a checkpoint.path")
    notes = data.get("notes", {}) if isinstance(data, dict) else {}
    return cast("Model", Linear.from_file_data(data, path)), notes


def origin(
    settings: config.Config, command: Sequence[str], decoder: dict[str, Any]
) -> dict[str, Any]:
    """Return the notes to save with a model: its origin, and how to read such events."""
    line = shlex.join(["streamlearn", *command])
    table = effective.plain(settings.format)
    return {
        "made by": f"{line} (streamlearn {streamlearn.__version__})",
        "made at": datetime.now(UTC).isoformat(" ", "seconds"),
        "format": {f"format.{key}": item for key, item in table.items()},
        "decoder": decoder,
    }


def recall(decoder: Decoder, notes: dict[str, Any]) -> None:
    """Restore labels and column types; new files have headers of their own."""
    state = notes.get("decoder")
    if state is not None:
        Decoder.restore(decoder, state)
        if isinstance(decoder, CSVDecoder):
            decoder.set_types(state.get("table", {}).get("types", {}))


def features(event: dict[str, Any], notes: dict[str, Any], fields: FieldSpec) -> Event:
    """Return the features of an event as in training: without label, with the column types.

    `fields` are those that the model declares.
    """
    found = event
    if "format" in notes:
        given = {"source.kind": "file", "source.paths": ("events",), **notes["format"]}
        settings = config.parse("", "", given, environ={})
        found, _ = config.event_fields(settings.format).declared(fields).split(event)
        if settings.format.kind == "svmlight":  # feature names are numbers, which JSON lacks
            return {int(name) if name.isdecimal() else name: found[name] for name in found}
    types = dict(notes.get("decoder", {}).get("table", {}).get("types", {}))
    for name in fields:  # what they are does not depend on the type
        types.pop(name, None)
    return {name: converted(value, types.get(name)) for name, value in found.items()}


def converted(value: Any, kind: str | None) -> Any:
    """Convert a value to the type of its column; None leaves it unchanged.

    >>> converted(80331, "text"), converted("2.5", "numbers"), converted(True, None)
    ('80331', 2.5, True)
    """
    if kind == "text" and isinstance(value, bool | int | float):
        return json.dumps(value)
    if kind == "numbers" and isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
    return value


def positive_of(notes: dict[str, Any]) -> object:
    """Return the positive values that a model was trained with, as in its settings."""
    given = {"source.kind": "file", "source.paths": ("events",), **notes["format"]}
    return config.parse("", "", given, environ={}).format.positive


def labels_of(model: Model, notes: dict[str, Any]) -> LabelSet:
    """Return the labels of a model that only predicts."""
    kept = notes.get("decoder", {}).get("labels", {})
    known = model.labels if isinstance(model, LinearClassifier) else []
    return LabelSet.complete(kept["labels"] if kept.get("closed") else known)
