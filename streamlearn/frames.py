"""Data frames as events, and predictions as data frames; pandas is loaded only when used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def events(X: pd.DataFrame) -> Iterator[dict[Any, Any]]:
    """The rows as events named by the columns."""
    names = list(X.columns)
    columns = [X[name].tolist() for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def table(rows: list[dict[Any, float]], X: pd.DataFrame) -> pd.DataFrame:
    """A row of numbers for each row of X."""
    import pandas as pd

    return pd.DataFrame(rows, index=X.index)


def series(values: list[Any], X: pd.DataFrame) -> pd.Series:
    """A value for each row of X."""
    import pandas as pd

    return pd.Series(values, index=X.index)
