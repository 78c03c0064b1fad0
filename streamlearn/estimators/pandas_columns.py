"""The columns of a pandas frame in the layout of Arrow, for which pandas itself needs pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.columns.batch import batch_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from streamlearn.columns.batch import ColumnBatch
    from streamlearn.core.arrays import Array

    Column = tuple[str, bytes, Sequence[Array | None], tuple[bytes, Sequence[Array | None]] | None]

FORMATS = {
    "b": b"b", "i1": b"c", "u1": b"C", "i2": b"s", "u2": b"S", "i4": b"i", "u4": b"I", "i8": b"l",
    "u8": b"L", "f2": b"e", "f4": b"f", "f8": b"g",
}  # fmt: skip
UNITS = {"s": b"tss:", "ms": b"tsm:", "us": b"tsu:", "ns": b"tsn:"}
LARGEST = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}


def batch_of_pandas(X: pd.DataFrame) -> ColumnBatch | None:
    """Return the rows of a frame; None if a column holds objects that are no text."""
    columns = []
    for k, name in enumerate(X.columns):
        column = column_of(name, X.iloc[:, k]) if type(name) is str else None
        if column is None:
            return None
        columns.append(column)
    return batch_of(len(X), columns)


def column_of(name: str, column: pd.Series[Any]) -> Column | None:
    """Return a column; None if it holds objects that are no text."""
    kind = getattr(column.dtype, "kind", "O")
    if kind == "M" and (isinstance(column.dtype, np.dtype) or hasattr(column.dtype, "tz")):
        return times(name, column)
    if kind in LARGEST and getattr(column.dtype, "itemsize", 8) <= 8:
        return numbers(name, column)
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return None
    return texts(name, column)


def numbers(name: str, column: pd.Series[Any]) -> Column:
    """Return a column of numbers or bools; NaN is missing."""
    validity = None
    if isinstance(column.dtype, np.dtype):
        cells = column.to_numpy()
    else:
        cells = column.to_numpy(dtype=LARGEST[column.dtype.kind], na_value=0)
        validity = bits(~column.isna().to_numpy(dtype=bool))
    if cells.dtype.kind == "b":
        return name, b"b", [validity, bits(cells)], None
    form = FORMATS[f"{cells.dtype.kind}{cells.dtype.itemsize}"]
    return name, form, [validity, cells.astype(cells.dtype.newbyteorder("="), copy=False)], None


def times(name: str, column: pd.Series[Any]) -> Column:
    """Return a column of times; those without a zone are in UTC."""
    if not isinstance(column.dtype, np.dtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    cells = column.to_numpy()
    unit = np.datetime_data(cells.dtype)[0]
    if unit not in UNITS:
        cells, unit = cells.astype("datetime64[s]"), "s"
    return name, UNITS[unit], [None, cells.view(np.int64)], None


def texts(name: str, column: pd.Series[Any]) -> Column | None:
    """Return a column of texts, each of which is stored once; None if some are no texts."""
    try:
        codes, categories = column.factorize()
        listed: list[Any] = categories.tolist()
        if not all(type(text) is str for text in listed):
            return None
        encoded = [text.encode() for text in listed]
    except (TypeError, UnicodeEncodeError):  # a list, for instance; a lone surrogate
        return None
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    data = np.frombuffer(b"".join(encoded) or b"\0", dtype=np.uint8)
    cells = codes.astype(np.int64, copy=False)
    return name, b"l", [bits(cells >= 0), cells], (b"U", [None, ends, data])


def bits(cells: Array) -> Array:
    """Return bools as bits, the first one lowest."""
    return np.packbits(cells, bitorder="little")
