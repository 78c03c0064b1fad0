"""Input as arrays (matrices, data frames, labels, weights), and predictions as data frames.

pandas is imported only if a data frame is given.
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

    from streamlearn.core.arrays import Array
    from streamlearn.engine.model import Model
    from streamlearn.engine.rows import Rows


class RowTable(Protocol):
    """The rows of a data frame or a matrix, which an estimator can learn."""

    n: int

    def rows(self, engine: Model, *, grow: bool) -> Rows:
        """The rows; `grow`: new names get slots."""


class Frame:
    """The rows of a data frame; each column is a field.

    Missing values of nullable columns (text, categories, nullable numbers) are missing fields. A
    NaN in a float column is refused, because it may be a mistake.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        if not hasattr(X, "columns") or not hasattr(X, "iloc"):
            raise ValueError(
                f"X must be a data frame, got {type(X).__name__}; for arrays and sparse matrices "
                "use learn_rows and score_rows"
            )
        self.names = list(X.columns)
        if len(set(self.names)) < len(self.names):
            raise InvalidEventError("two columns of the data frame have the same name")
        self.columns = [X.iloc[:, k] for k in range(len(self.names))]
        self.n = len(X)

    def rows(self, engine: Model, *, grow: bool) -> Rows:
        """The rows; `grow`: new names get slots."""
        columns = []
        # With bounded names, rejected features are counted event by event.
        bounds = [engine.reader.params.get(name) for name in ("max_names", "max_bytes")]
        as_events = bool(engine.reader.fields) or any(bound is not None for bound in bounds)
        for name, column in zip(self.names, self.columns, strict=True):
            cells = None if as_events else numbers(column) or texts(column)
            if cells is None:
                return engine.rows_from_events(self.events(), grow)
            columns.append((name, *cells))
        return engine.rows_from_columns(columns, self.n, grow)

    def events(self) -> list[dict[Any, Any]]:
        """Return the rows as events."""
        if not self.columns:
            return [{} for _ in range(self.n)]
        columns = [values(column) for column in self.columns]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]


class Matrix:
    """A sparse matrix or an array; column j is the feature named j."""

    def __init__(self, X: Any) -> None:
        self.X = matrix(X)
        self.n: int = self.X.shape[0]

    def rows(self, engine: Model, *, grow: bool) -> Rows:
        """The rows; `grow`: new columns get slots."""
        return engine.rows_from_matrix(self.X, grow)


def values(column: pd.Series[Any]) -> list[Any]:
    """Return the values of a column; None for those that its type marks as missing."""
    values = column.tolist()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind != "M":  # NaT is missing
        return values
    return [
        None if absent else value
        for value, absent in zip(values, column.isna().tolist(), strict=True)
    ]


def numbers(column: pd.Series[Any]) -> tuple[Array, None] | None:
    """Return a column of finite numbers, NaN where one is missing; None for other columns."""
    kind = column.dtype
    if getattr(kind, "kind", "O") not in "biuf" or getattr(kind, "itemsize", 8) > 8:
        return None
    if isinstance(kind, np.dtype):
        cells = column.to_numpy(dtype=float)
        return (cells, None) if np.isfinite(cells).all() else None
    absent = column.isna().to_numpy()
    cells = column.to_numpy(dtype=float, na_value=np.nan)
    return (cells, None) if np.isfinite(cells[~absent]).all() else None


def texts(column: pd.Series[Any]) -> tuple[Array, list[str]] | None:
    """Return a column of texts as codes (-1: missing) and the texts; None for other columns."""
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return None
    try:
        codes, categories = column.factorize()
    except TypeError:  # a list, for instance
        return None
    listed: list[Any] = categories.tolist()
    if not all(type(text) is str for text in listed):
        return None
    if column.dtype == object and any(value is not None for value in column[codes < 0]):
        return None
    return codes, listed


def table(values: Array, labels: list[Any], X: pd.DataFrame) -> pd.DataFrame:
    """Return a data frame with the rows of X and a column for each label."""
    import pandas as pd  # noqa: PLC0415 - see the module docstring

    return pd.DataFrame(values, index=X.index, columns=pd.Index(labels, tupleize_cols=False))


def series(values: list[Any], name: Hashable, X: pd.DataFrame) -> pd.Series[Any]:
    """Return a series with a value for each row of X."""
    import pandas as pd  # noqa: PLC0415 - see the module docstring

    return pd.Series(values, index=X.index, name=name)


def matrix(X: Any) -> Any:
    """Return X as a sparse matrix or an array with two dimensions."""
    if not scipy.sparse.issparse(X):
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            raise InvalidEventError(
                "X has masked values, which an array cannot leave out; fill them, or use a sparse "
                "matrix without them"
            )
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns, got {X.ndim}")
    return X


def label_array(y: Any, n: int) -> Array:
    """Return n labels as an array; of objects, unless all are strings or all are numbers."""
    if not isinstance(y, np.ndarray):
        values = list(y)
        kinds = {type(value) for value in values}
        if kinds <= {str} or all(issubclass(kind, bool | int | float) for kind in kinds):
            y = np.asarray(values)
        if not isinstance(y, np.ndarray) or (values and y.dtype.kind not in "biufU"):
            y = np.empty(len(values), dtype=object)
            for i, label in enumerate(values):  # at once, tuples would become columns
                y[i] = label
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


def is_missing(label: Any) -> bool:
    """Return whether a label is missing: None, NaN or pandas' NA."""
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 - a NaN is not itself
    except TypeError:  # the truth value of NA is undefined
        return True


def distinct(labels: Iterable[Any]) -> list[Any]:
    """Return the distinct labels in order of first appearance."""
    try:
        return list(dict.fromkeys(labels))
    except TypeError:
        raise InvalidEventError("a label is not hashable") from None
