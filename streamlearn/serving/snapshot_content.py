"""The content of a snapshot: what a model needs to score, and nothing of what it needs to learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamlearn.features import Names, Reader
from streamlearn.serving.scorer import SPREAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.estimators.classifier import LinearClassifier
    from streamlearn.estimators.regressor import LinearRegressor

    Model = LinearClassifier | LinearRegressor

FORMAT = 1
DECISIVE = ("weight", "wealth")  # a slot where these columns are 0 adds nothing to a score


class Copy(NamedTuple):
    """A copy of what a model needs to score, taken between two batches."""

    header: dict[str, Any]
    columns: list[Array]
    decisive: list[int]  # the columns of `DECISIVE`
    shift: int  # 1 if the first slot is the intercept
    free_intercept: Array | None

    def content(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header's part for the model, and the arrays of a snapshot."""
        arrays: dict[str, Array] = {}
        if self.shift:
            arrays["intercept"] = np.array([column[0] for column in self.columns])
        if self.free_intercept is not None:
            arrays["free_intercept"] = self.free_intercept
        arrays |= table([column[self.shift :] for column in self.columns], self.decisive)
        return self.header, arrays


def copy(model: Model, reader: Reader) -> Copy:
    """Copy what predictions need."""
    learner = model.engine.learner
    forms, free_intercept = learner.scoring()
    columns: list[Array] = []
    decisive: set[int] = set()
    header = {
        "format": FORMAT,
        "model": model.description(),
        "forms": [number_columns(form, columns, decisive) for form in forms],
        "slots": max(learner.features, reader.size),
        "features": feature_state(reader),
        "names": reader.name_count if isinstance(reader, Names) else None,
    }
    return Copy(header, columns, sorted(decisive), learner.shift, free_intercept)


def feature_state(reader: Reader) -> dict[str, Any]:
    """Return the state of the features without their names."""
    if not isinstance(reader, Names):
        return reader.state()
    # a count that changes with every event, and no prediction
    return {**reader.state(names=False), "rejected_features": 0}


def number_columns(
    form: Mapping[str, Any], columns: list[Array], decisive: set[int]
) -> dict[str, Any]:
    """Return a form with the numbers of its columns, which are added to `columns`."""
    if "members" in form:
        members = [number_columns(member, columns, decisive) for member in form["members"]]
        return {**form, "members": members}
    found: dict[str, int] = {}
    for name, column in form["columns"].items():
        same = [k for k, known in enumerate(columns) if known is column]
        found[name] = same[0] if same else len(columns)
        if not same:
            columns.append(column)
        if name in DECISIVE:
            decisive.add(found[name])
    return {**form, "columns": found}


def table(columns: Sequence[Array], decisive: Sequence[int]) -> dict[str, Array]:
    """Return the table of all slots, or of those that count, whichever is smaller."""
    n, width = len(columns[0]), len(columns)
    nonzero = columns[decisive[0]] != 0.0
    for k in decisive[1:]:
        nonzero = nonzero | (columns[k] != 0.0)
    stored = np.flatnonzero(nonzero)
    size = 1 << max(2 * len(stored), 2).bit_length()
    if len(stored) * (8 * width + 4) + 4 * size >= n * 8 * width:
        return {"table": stack(columns, None)}
    return {
        "table": stack(columns, stored),
        "stored": stored.astype(np.int32),
        "index": index(stored, size),
    }


def stack(columns: Sequence[Array], rows: Array | None) -> Array:
    """Return columns as the rows of a table."""
    count = len(columns[0]) if rows is None else len(rows)
    found = np.empty((count, len(columns)))
    for k, column in enumerate(columns):
        found[:, k] = column if rows is None else column[rows]
    return found


def index(slots: Array, size: int) -> Array:
    """Return a hash table of `size` cells: the row of each slot plus one, 0 for a free cell.

    A slot's cell is the first free one from (slot * SPREAD mod 2^32) / 2^32 * size on.
    """
    cells = np.zeros(size, dtype=np.uint32)
    shift = 32 - (size - 1).bit_length()
    places = (slots.astype(np.uint64) * SPREAD & 0xFFFFFFFF) >> shift
    left = np.arange(len(slots))
    while len(left):
        at = places[left].astype(np.int64)
        free = cells[at] == 0
        cells[at[free]] = left[free] + 1  # of several, the last one stays
        settled = cells[at] == left + 1
        left = left[~settled]
        places[left] = (places[left] + 1) & (size - 1)
    return cells
