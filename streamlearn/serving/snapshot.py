"""Snapshots: the weights that serve, immutable and mapped into memory."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamlearn.errors import ModelFileError
from streamlearn.estimators import model_file
from streamlearn.estimators.linear import Contribution, Linear, contributions
from streamlearn.features import Names, from_state
from streamlearn.losses import VectorLoss
from streamlearn.serving import arrays, directory, snapshot_content
from streamlearn.serving.scorer import Scorer

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.features import Reader
    from streamlearn.serving.snapshot_content import Model


class Version(NamedTuple):
    """The version of a snapshot: it is never used again.

    >>> str(Version(3, 120000))
    '3-120000'
    """

    epoch: int
    events: int  # learned; after a crash it may go back, but then the epoch is higher

    def __str__(self) -> str:
        return f"{self.epoch}-{self.events}"


class Snapshot:
    """A model that predicts, and does not learn: a file that the daemon or `save` wrote.

    It can be used by several threads. Its scores equal those of the model that it was taken from,
    bit for bit.

    Parameters
    ----------
    path
        The file, or a directory of snapshots, of which the newest is taken.
    learner
        The learner, in a directory with several.

    Examples
    --------
    >>> import streamlearn as sl
    >>> model = sl.LinearClassifier()
    >>> for _ in range(20):
    ...     model.learn_one({"word": "free", "length": 12}, "spam")
    ...     model.learn_one({"word": "hello", "length": 48}, "ham")
    >>> sl.serving.save(model, "/tmp/spam.snapshot")
    >>> snapshot = sl.serving.Snapshot("/tmp/spam.snapshot")
    >>> event = {"word": "free", "length": 12}
    >>> snapshot.predict(event), snapshot.score(event) == model.score_one(event)
    ('spam', True)
    >>> snapshot.why(event)[0].name
    'word=free'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        learner: str | None = None,
        *,
        before: Snapshot | None = None,
        content: tuple[Any, dict[str, Array]] | None = None,
    ) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            self.path = directory.newest(self.path, learner)
        self.header, found = arrays.read(self.path) if content is None else content
        if self.header.get("format") != snapshot_content.FORMAT:
            raise ModelFileError(
                f"{self.path} has snapshot format {self.header.get('format')}, but this version "
                f"of streamlearn reads {snapshot_content.FORMAT}; upgrade streamlearn"
            )
        self.learner: str = self.header["learner"]
        self.version = Version(*self.header["version"])
        self.written: float = self.header["written"]
        self.bytes = sum(array.nbytes for array in found.values())
        self.model = self._model(before)
        self.reader, self.lock = self._reader(before)
        intercept, free = found.get("intercept"), found.get("free_intercept")
        self.scorer = Scorer(
            self.header["forms"],
            self.header["slots"],
            found["table"],
            found.get("stored"),
            found.get("index"),
            intercept,
            free,
        )
        self.single = self.scorer.outputs == 1 and not isinstance(self.model.loss, VectorLoss)

    def _model(self, before: Snapshot | None) -> Model:
        """Return the model without weights: that of the version before, if nothing changed."""
        if before is not None and before.header["model"] == self.header["model"]:
            return before.model
        described = model_file.decode(self.header["model"], memoryview(b""))
        model: Any = Linear.from_description(described)
        return model  # type: ignore[no-any-return]

    def _reader(self, before: Snapshot | None) -> tuple[Reader, threading.Lock]:
        """Return the features: those of the version before with the names that are new."""
        state, count = self.header["features"], self.header["names"]
        if count is None:
            if before is not None and before.header["features"] == state:
                return before.reader, before.lock
            return from_state(state), threading.Lock()
        names = self.header["names_file"]
        if before is not None and before.header["features"] == state:
            reader = before.reader
            same = before.header["names_file"] == names and before.path.parent == self.path.parent
            if same and isinstance(reader, Names) and not reader.full:
                known = reader.name_count
                new = directory.read_names(self.path.parent / names, known, count)
                with before.lock:
                    reader.extend(new)
                return reader, before.lock
        known_names = directory.read_names(self.path.parent / names, 0, count)
        return from_state({**state, "names": known_names}), threading.Lock()

    def scores(self, event: Mapping[Any, Any]) -> list[float]:
        """Return the score of each output."""
        with self.lock:
            return self.scorer.score_event(self.reader, event)

    def score(self, event: Mapping[Any, Any]) -> Any:
        """Return the score of an event; with several outputs, by label or target."""
        found = self.scores(event)
        if self.single:
            return found[0]
        return dict(zip(self.model.outputs, found, strict=False))

    def predict(self, event: Mapping[Any, Any]) -> Any:
        """Return the most likely label, or the number; None before the first label."""
        found = self.scores(event)
        return self.prediction(found)

    def prediction(self, scores: list[float]) -> Any:
        """Return the prediction for the scores of an event."""
        if self.single:
            return self.model.prediction(scores[0])
        if not self.model.outputs or self.model.learns != "classes":
            return dict(zip(self.model.outputs, scores, strict=False))
        return self.model.prediction(np.array(scores))

    def why(self, event: Mapping[Any, Any], output: Any = None) -> list[Contribution]:
        """Return what the intercept and each feature add to an event's score, largest first.

        Of several classes, explain `output`, or the predicted one. The name of the intercept is
        None.
        """
        if output is None and self.model.learns == "classes":
            output = self.predict(event)
        k = self.model.output_index(output)
        with self.lock:
            return contributions(self.reader, event, lambda slot: self.scorer.weight(k, slot))

    def __repr__(self) -> str:
        return f"Snapshot({str(self.path)!r}, learner={self.learner!r}, version={self.version})"
