"""The first rows of a source, before they are learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.errors import InvalidEventError
from streamlearn.guesses.column import Column, columns_of
from streamlearn.stream.formats.csv import BLANKS, DELIMITERS, MISSING, split_row, with_point

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streamlearn.stream import Fields

ROWS = 10_000
VALUES = 2_000_000  # of a wide table: fewer rows


class TableSample:
    """The columns of the first rows: those of features, and the label's.

    Parameters
    ----------
    records
        The first records.
    kind
        `"csv"`, or a format whose records are JSON objects, also those of rows of columns.
    roles
        The roles of fields; only fields without one are features.
    delimiter, columns, decimal
        Of CSV: what separates values, the names of columns without a header, and what is before
        the decimals of numbers; None: it is guessed.
    """

    def __init__(
        self,
        records: Sequence[bytes],
        kind: str,
        roles: Fields,
        *,
        delimiter: str = ",",
        columns: Sequence[str] = (),
        decimal: str | None = ".",
    ) -> None:
        rows = rows_of_csv(records, delimiter, columns) if kind == "csv" else rows_of_json(records)
        found, width = [], 0
        for row in rows:
            found.append(row)
            width = max(width, len(row))
            if len(found) >= ROWS or len(found) * width >= VALUES:
                break
        self.rows = len(found)
        split = [roles.split(row) for row in found]
        self.columns = columns_of(features for features, _ in split)
        self.labels = Column(roles.label or "", [found.get("label") for _, found in split])
        every = [*self.columns, self.labels]
        self.decimal = guess_decimal(every) if decimal is None else decimal
        if self.decimal == ",":
            self.columns = [column.with_points for column in self.columns]
            self.labels = self.labels.with_points


def rows_of_csv(
    records: Sequence[bytes], delimiter: str, columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of CSV by column, None where a value is missing; invalid rows are left out."""
    order = list(columns)
    for record in records:
        try:
            row = split_row(record, delimiter)
        except InvalidEventError:
            continue
        names = [name.strip(BLANKS) for name in row]
        if not order or sorted(names) == sorted(order):  # the header of the first or a later file
            order = names
        elif len(row) == len(order):
            yield {
                name: None if value.strip(BLANKS).lower() in MISSING else value
                for name, value in zip(order, row, strict=True)
            }


def rows_of_json(records: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines; invalid ones are left out."""
    decoder = msgspec.json.Decoder()
    for record in records:
        try:
            found = decoder.decode(record)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def guess_delimiter(record: bytes, label: str | None) -> str:
    r"""Return what separates the values of a header: what gives most columns, with the label.

    >>> guess_delimiter(b'"city, state";price;y', "y"), guess_delimiter(b"text\ty", "y")
    (';', '\t')
    """
    best = (False, 1, ",")
    for delimiter in f",{DELIMITERS}":
        try:
            names = [name.strip(BLANKS) for name in split_row(record, delimiter)]
        except InvalidEventError:
            continue
        best = max(best, (label in names, len(names), delimiter), key=lambda one: one[:2])
    return best[2]


def guess_decimal(columns: Iterable[Column]) -> str:
    """Return what is before the decimals of numbers: a comma if numbers have it in some column.

    >>> guess_decimal([Column("price", ["2,50", "1.000,00"]), Column("n", ["1", "2"])])
    ','
    >>> guess_decimal([Column("price", ["2,50", "free"]), Column("x", ["0.5"])])
    '.'
    """
    found = "."
    for column in columns:
        texts = [value for value in column.present if isinstance(value, str)]
        if column.numbers is not None and any("." in x and with_point(x) == x for x in texts):
            return "."  # 1.5; but 1.500 may have a point between groups of digits
        if column.with_points is not column and any("," in text for text in texts):
            found = ","
    return found
