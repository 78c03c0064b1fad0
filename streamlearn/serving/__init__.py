"""Predictions from the model that is learning.

scorer       scores from the arrays of a snapshot
export       what a model needs to score, as plain data and arrays
arrays       a JSON header and plain arrays in a file
directory    a directory of snapshots
snapshot     Snapshot: a file that predicts
publisher    snapshots of the models that the daemon is learning
split        A/B tests: which arm a user is in
promotions   which learner serves everybody, and the history
build        what publishes and serves, from a configuration
http/        the server
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn.features import Names
from streamlearn.serving import directory, snapshot_content
from streamlearn.serving.snapshot import Snapshot, Version

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from streamlearn.serving.snapshot_content import Model

__all__ = ["Snapshot", "Version", "save"]


def save(
    model: Model,
    path: str | os.PathLike[str],
    learner: str = "model",
    *,
    version: Version | None = None,
    fields: Mapping[str, Any] | None = None,
) -> None:
    """Write a snapshot of a model, and beside it the names of its features, if it keeps them.

    Without a `version` it is that of epoch 0 and the model's steps. `fields` are the roles of an
    event's fields that are not features.
    """
    to = Path(path)
    header, arrays = snapshot_content.copy(model, model.reader).content()
    names_file = f"{to.name}.names.jsonl"
    if isinstance(model.reader, Names):
        directory.append_names(to.with_name(names_file), model.reader.saved_names(), start=True)
    header["fields"] = dict(fields or {})
    directory.write(
        to,
        header,
        arrays,
        learner=learner,
        version=version or Version(0, model.steps),
        names_file=names_file,
    )
