"""What users hand over, as arrays: matrices, labels and data frames; and predictions as frames.

pandas is loaded only when a data frame comes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse

from streamlearn.errors import InvalidEventError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import pandas as pd

    from streamlearn.engine.model import Model
    from streamlearn.engine.rows import Rows

Array = np.ndarray[Any, Any]


class RowTable(Protocol):
    """Rows that an estimator can learn: those of a data frame or of a matrix."""

    n: int

    def rows(self, model: Model, *, grow: bool) -> Rows:
        """The rows; `grow`: new names get slots."""


class Frame:
    """A data frame, whose columns are the fields of its rows.

    What is missing in a column whose type knows that (text, categories, nullable numbers) is
    missing in the row; a NaN among floats may be a mistake, and is refused.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        if not hasattr(X, "columns") or not hasattr(X, "iloc"):
            raise ValueError(
                f"X must be a data frame, got {type(X).__name__}: for arrays and sparse matrices "
                "there are learn_rows and score_rows"
            )
        self.names = list(X.columns)
        if len(set(self.names)) < len(self.names):
            raise InvalidEventError("two columns of the data frame have one name")
        self.columns = [X.iloc[:, k] for k in range(len(self.names))]
        self.n = len(X)

    def rows(self, model: Model, *, grow: bool) -> Rows:
        """The rows; `grow`: new names get slots."""
        columns = []
        # what a full table of names turns away is counted as often as it comes
        bounds = [model.reader.params.get(name) for name in ("max_names", "max_bytes")]
        whole = bool(model.reader.interactions) or any(bound is not None for bound in bounds)
        for name, column in zip(self.names, self.columns, strict=True):
            cells = None if whole else numbers(column) or texts(column)
            if cells is None:
                return model.listed(self.events(), grow)
            columns.append((name, *cells))
        return model.table(columns, self.n, grow)

    def events(self) -> list[dict[Any, Any]]:
        """The rows as events."""
        if not self.columns:
            return [{} for _ in range(self.n)]
        columns = [values(column) for column in self.columns]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]


class Matrix:
    """A sparse matrix or an array; column j is the feature named j."""

    def __init__(self, X: Any) -> None:
        self.X = matrix(X)
        self.n: int = self.X.shape[0]

    def rows(self, model: Model, *, grow: bool) -> Rows:
        """The rows; `grow`: new columns get slots."""
        return model.rows(self.X, grow)


def values(column: pd.Series[Any]) -> list[Any]:
    """The values of a column; None for those that are missing by its type."""
    values = column.tolist()
    if isinstance(column.dtype, np.dtype):
        return values
    return [
        None if gone else value for value, gone in zip(values, column.isna().tolist(), strict=True)
    ]


def numbers(column: pd.Series[Any]) -> tuple[Array, None] | None:
    """A column of finite numbers, NaN where its type says that one is missing; else None."""
    kind = column.dtype
    if getattr(kind, "kind", "O") not in "biuf" or getattr(kind, "itemsize", 8) > 8:
        return None
    if isinstance(kind, np.dtype):
        cells = column.to_numpy(dtype=float)
        return (cells, None) if np.isfinite(cells).all() else None
    gone = column.isna().to_numpy()
    cells = column.to_numpy(dtype=float, na_value=np.nan)
    return (cells, None) if np.isfinite(cells[~gone]).all() else None


def texts(column: pd.Series[Any]) -> tuple[Array, list[str]] | None:
    """Which of some texts each row of a column holds, -1 where one is missing; else None."""
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return None
    try:
        places, found = column.factorize()
    except TypeError:  # a list, for instance
        return None
    listed: list[Any] = found.tolist()
    if not all(type(text) is str for text in listed):
        return None
    if column.dtype == object and any(one is not None for one in column[places < 0]):
        return None
    return places, listed


def table(values: Array, labels: list[Any], X: pd.DataFrame) -> pd.DataFrame:
    """A row of numbers for each row of X, with a column for each label."""
    import pandas as pd  # noqa: PLC0415 - see the module

    return pd.DataFrame(values, index=X.index, columns=pd.Index(labels, tupleize_cols=False))


def series(values: list[Any], name: Hashable, X: pd.DataFrame) -> pd.Series[Any]:
    """A value for each row of X."""
    import pandas as pd  # noqa: PLC0415 - see the module

    return pd.Series(values, index=X.index, name=name)


def matrix(X: Any) -> Any:
    """X as a sparse matrix or an array with rows and columns."""
    if not scipy.sparse.issparse(X):
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            raise InvalidEventError(
                "X has masked values, which a row of an array cannot leave out: fill them, or give "
                "a sparse matrix without them"
            )
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns, got {X.ndim}")
    return X


def label_array(y: Any, n: int) -> Array:
    """Labels as an array with n items; of objects, unless all are strings or all numbers."""
    if not isinstance(y, np.ndarray):
        values = list(y)
        kinds = {type(value) for value in values}
        if kinds <= {str} or all(issubclass(kind, bool | int | float) for kind in kinds):
            y = np.asarray(values)
        if not isinstance(y, np.ndarray) or (values and y.dtype.kind not in "biufU"):
            y = np.empty(len(values), dtype=object)
            y[:] = values
    labels: Array = y
    if labels.shape != (n,):
        raise ValueError(f"y must have one label for each of {n} rows, got shape {labels.shape}")
    return labels


def checked_weight(w: float) -> float:
    """Return the weight of an event; ValueError unless it is finite and at least 0."""
    try:
        if 0.0 <= w < math.inf:
            return float(w)
    except TypeError:
        pass
    raise ValueError(f"the weight of an event must be a number >= 0 and finite, got {w!r}")


def checked_weights(w: Any, n: int) -> Array | None:
    """Return the weights of n events as an array; None if none are given."""
    if w is None:
        return None
    weights: Array = np.array(w, dtype=float, order="C")
    if weights.shape != (n,):
        raise ValueError(f"w must have one weight for each of {n} rows, got shape {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise ValueError("the weights of events must be >= 0 and finite")
    return weights


def missing(label: Any) -> bool:
    """Whether a label is none: None, a NaN, and pandas' NA."""
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 - a NaN is not itself
    except TypeError:  # NA does not say whether it is itself
        return True


def distinct(labels: Iterable[Any]) -> list[Any]:
    """Each label once, in the order of their first appearance."""
    try:
        return list(dict.fromkeys(labels))
    except TypeError:
        raise InvalidEventError("a label is not hashable") from None
