"""What users hand over, as arrays: matrices, labels and data frames; and predictions as frames.

pandas is loaded only when a data frame comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from streamlearn.errors import BadEvent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import pandas as pd

Array = np.ndarray[Any, Any]


def events(X: pd.DataFrame) -> list[dict[Any, Any]]:
    """The rows as events named by the columns.

    What is missing in a column whose type knows that (text, categories, nullable numbers) is
    missing in the event; a NaN among floats may be a mistake, and stays one.
    """
    if not hasattr(X, "columns") or not hasattr(X, "iloc"):
        raise ValueError(
            f"X must be a data frame, got {type(X).__name__}: for arrays and sparse matrices there "
            "are learn_rows and score_rows"
        )
    names = list(X.columns)
    if len(set(names)) < len(names):
        raise BadEvent("two columns of the data frame have one name")
    columns = [cells(X.iloc[:, k]) for k in range(len(names))]
    if not columns:
        return [{} for _ in range(len(X))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def cells(column: pd.Series[Any]) -> list[Any]:
    """The values of a column; None for those that are missing by its type."""
    values = column.tolist()
    if isinstance(column.dtype, np.dtype):
        return values
    return [
        None if gone else value for value, gone in zip(values, column.isna().tolist(), strict=True)
    ]


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
            raise BadEvent(
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


def listed(y: Any, n: int) -> list[Any]:
    """Labels of a data frame's rows as a list."""
    values = y.tolist() if hasattr(y, "tolist") else list(y)
    if len(values) != n:
        raise ValueError(f"y must have one label for each of {n} rows, got {len(values)}")
    return values


def distinct(labels: Iterable[Any]) -> list[Any]:
    """Each label once, in the order of their first appearance."""
    try:
        return list(dict.fromkeys(labels))
    except TypeError:
        raise BadEvent("a label is not hashable") from None
