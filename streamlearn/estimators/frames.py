"""Input as arrays (matrices, data frames, labels, weights), and predictions as data frames.

pandas is imported only if a data frame is given.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse

from streamlearn.columns.batch import batches
from streamlearn.core.weights import checked_weights
from streamlearn.errors import InvalidEventError
from streamlearn.estimators.pandas_columns import batch_of_pandas

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    import pandas as pd

    from streamlearn.columns.batch import ColumnBatch
    from streamlearn.core.arrays import Array
    from streamlearn.engine.event_learner import EventLearner
    from streamlearn.engine.rows import Rows

CHUNK = 1 << 16  # rows of a stream that are read together


class RowTable(Protocol):
    """The rows of a data frame or a matrix, which an estimator can learn."""

    n: int

    def rows(self, engine: EventLearner, *, grow: bool, weights: Array | None = None) -> Rows:
        """The rows; `grow`: new names of those that have a weight get slots."""


class Frame:
    """The rows of a data frame; each column is a field.

    Missing values are missing fields: nulls, and NaN.

    Parameters
    ----------
    X
        A data frame of any library that narwhals knows.
    """

    def __init__(self, X: Any) -> None:
        frame = data_frame(X)
        if frame is None:
            raise ValueError(f"X must be a data frame, got {type(X).__name__}")
        self.native = X
        self.n = len(frame)
        self.is_pandas = frame.implementation.is_pandas_like()

    def rows(self, engine: EventLearner, *, grow: bool, weights: Array | None = None) -> Rows:
        """The rows; `grow`: new names of those that have a weight get slots."""
        found: Iterable[ColumnBatch] = ()
        if self.is_pandas:
            batch = batch_of_pandas(self.native)
            if batch is None:
                return engine.rows_from_events(self.events(), grow, weights)
            found = [batch]
        else:
            found = batches(self.native)
        return engine.rows_from_batches(found, grow, weights=weights)

    def events(self) -> list[dict[Any, Any]]:
        """Return the rows of a pandas frame as events."""
        names = list(self.native.columns)
        if not names:
            return [{} for _ in range(self.n)]
        columns = [values(self.native.iloc[:, k]) for k in range(len(names))]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


class Chunk:
    """The rows of one batch of a stream.

    aside: names of columns that are not features.
    """

    def __init__(self, batch: ColumnBatch, aside: AbstractSet[str] = frozenset()) -> None:
        self.batch = batch
        self.n = len(batch)
        self.aside = aside

    def rows(self, engine: EventLearner, *, grow: bool, weights: Array | None = None) -> Rows:
        """The rows; `grow`: new names of those that have a weight get slots."""
        return engine.rows_from_batches([self.batch], grow, self.aside, weights)


def chunks(X: Any, aside: AbstractSet[str] = frozenset()) -> Iterator[Chunk]:
    """Yield the rows of what hands over batches of columns, a limited number at a time."""
    data_frame(X)  # refuses columns of the same name
    for batch in batches(X):
        for start in range(0, len(batch), CHUNK):
            yield Chunk(batch.part(start, min(start + CHUNK, len(batch))), aside)


def data_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a data frame as narwhals sees it, None for anything else.

    InvalidEventError if two columns have the same name, which only some libraries allow.
    """
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        twice = next(name for name, count in Counter(column_names(X)).items() if count > 1)
        raise InvalidEventError(
            f"two columns of the data frame have the name {twice!r}: rename one"
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


def column_names(X: Any) -> list[Hashable]:
    """Return the names of the columns of a data frame; in pyarrow, `columns` are their values."""
    return list(getattr(X, "column_names", X.columns))


def is_stream(X: Any) -> bool:
    """Return whether columns come batch by batch: X is not a data frame, but hands over columns."""
    if data_frame(X) is not None:
        return False
    if not hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__arrow_c_array__"):
        raise ValueError(
            f"X must be a data frame, or columns by the Arrow interface, got {type(X).__name__}; "
            "for arrays and sparse matrices use learn_rows and score_rows, for dicts learn_one and "
            "score_one"
        )
    return True


class Matrix:
    """A sparse matrix or an array; column j is the feature named j."""

    def __init__(self, X: Any) -> None:
        self.X = matrix(X)
        self.n: int = self.X.shape[0]

    def rows(self, engine: EventLearner, *, grow: bool, weights: Array | None = None) -> Rows:  # noqa: ARG002 - columns have slots, whatever the rows
        """The rows; `grow`: new columns get slots."""
        return engine.rows_from_matrix(self.X, grow)


def values(column: pd.Series[Any]) -> list[Any]:
    """Return the values of a column, None for missing ones."""
    return [
        None if absent is True else value
        for value, absent in zip(column.tolist(), column.isna().tolist(), strict=True)
    ]


def table(values: Array, labels: list[Any], X: Any) -> Any:
    """Return a data frame like X with a column for each label, or a pyarrow table."""
    if not is_pandas(X):
        columns = {str(label): values[:, k] for k, label in enumerate(labels)}
        return nw.from_dict(columns, backend=backend(X)).to_native()
    import pandas as pd  # noqa: PLC0415 - see the module docstring

    return pd.DataFrame(values, index=X.index, columns=pd.Index(labels, tupleize_cols=False))


def series(values: list[Any], name: Hashable, X: Any) -> Any:
    """Return a series like the columns of X with a value for each row, or a pyarrow array."""
    if not is_pandas(X):
        name = "" if name is None else str(name)
        return nw.new_series(name, values, backend=backend(X)).to_native()
    import pandas as pd  # noqa: PLC0415 - see the module docstring

    return pd.Series(values, index=X.index, name=name)


def is_pandas(X: Any) -> bool:
    """Return whether X is a data frame of pandas, or of a library like it."""
    frame = data_frame(X)
    return frame is not None and frame.implementation.is_pandas_like()


def backend(X: Any) -> Any:
    """Return what makes data frames like X; pyarrow if X is a stream."""
    frame = data_frame(X)
    return "pyarrow" if frame is None else frame.implementation


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
    """Return n labels as an array; of objects, unless an array of numbers holds them exactly."""
    if not isinstance(y, np.ndarray):
        values = label_list(y)
        y = np.empty(len(values), dtype=object)
        kinds = set(map(type, values))
        if values and all(issubclass(kind, bool | int | float) for kind in kinds):
            numbers = np.asarray(values)
            # float64 cannot tell 2**53 + 1 from 2**53, which are beside 0.5
            exact = numbers.dtype.kind in "biu" or kinds <= {float} or numbers.tolist() == values
            y = numbers if exact else y
        if y.dtype.kind == "O":
            for i, label in enumerate(values):  # at once, tuples would become columns
                y[i] = label
    labels: Array = y
    if labels.shape != (n,):
        raise ValueError(f"y must have one label for each of {n} rows, got shape {labels.shape}")
    return labels


def label_list(y: Any) -> list[Any]:
    """Return the labels of a series, a column of Arrow or any iterable as Python's objects."""
    if hasattr(y, "to_pylist"):  # of pyarrow, whose own items are scalars
        return list(y.to_pylist())
    given = nw.from_native(y, series_only=True, pass_through=True)
    known = isinstance(given, nw.Series) and not given.implementation.is_pandas_like()
    return given.to_list() if known else list(y)


def labels_and_weights(
    batch: ColumnBatch, label: str, weight: str | None
) -> tuple[Array, Array | None]:
    """Return the labels and weights in columns of a batch; where there is no label, weight 0."""
    labels = batch.column(label)
    given = [1.0] * len(labels) if weight is None else batch.column(weight)
    known = next((one for one in labels if one is not None), 0.0)
    if weight is None and None not in labels:
        return label_array(labels, len(labels)), None
    weights = [
        0.0 if one is None else 1.0 if w is None else w
        for one, w in zip(labels, given, strict=True)
    ]
    labels = [known if one is None else one for one in labels]
    return label_array(labels, len(labels)), checked_weights(weights, len(weights))


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
