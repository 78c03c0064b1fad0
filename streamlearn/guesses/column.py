"""The first values of a field, and what they have in common."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamlearn.stream.formats.csv import dots, with_point

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.features.fields import Field

EXACT = 2.0**53  # a float64 holds integers up to here
MOST_STRAYS = 0.05  # of the values of a field of numbers
MOST_DIGITS = 40  # characters of a number
NEARLY = 0.98  # of the values of a unique field are distinct: keys may be delivered twice


class Guess(NamedTuple):
    """What a field is taken for, and why."""

    field: Field
    reason: str


@dataclass
class Column:
    """The values of a field in the first rows, None where it is missing.

    >>> column = Column("age", ["41", None, "17", "41"])
    >>> column.numbers, column.distinct, column.missing
    (array([41., 17., 41.]), 2, 0.25)
    """

    name: str
    values: list[Any]

    @cached_property
    def present(self) -> list[Any]:
        """The values that are not missing."""
        return [value for value in self.values if value is not None]

    @property
    def missing(self) -> float:
        """The share of rows without the field."""
        return 1.0 - len(self.present) / max(len(self.values), 1)

    @cached_property
    def types(self) -> set[type]:
        """The types of the values."""
        return set(map(type, self.present))

    @cached_property
    def numbers(self) -> Array | None:
        """The values as numbers, in their order; None if some are neither numbers nor such text."""
        if not self.present or not self.types <= {int, float, Decimal, str}:
            return None
        texts = [text for text in self.present if isinstance(text, str)]
        if any(len(text) > MOST_DIGITS or "_" in text for text in texts):
            return None  # Python reads 1_000
        try:
            found = np.array(self.present).astype(float)
        except (TypeError, ValueError, OverflowError):
            return None
        return found if np.isfinite(found).all() else None

    @cached_property
    def without_strays(self) -> Column | None:
        """The column without a little text among its numbers; None if they are not numbers."""
        found = [value for value in self.present if is_number(value)]
        strays = len(self.present) - len(found)
        if not strays or strays > MOST_STRAYS * len(self.present):
            return None
        return Column(self.name, [value if is_number(value) else None for value in self.values])

    @cached_property
    def with_points(self) -> Column:
        """The column with decimal points in the place of commas, if its values are such numbers."""
        texts = [with_point(value) if isinstance(value, str) else value for value in self.values]
        found = Column(self.name, texts)
        return self if found.numbers is None and found.without_strays is None else found

    @cached_property
    def counts(self) -> Array:
        """How often each distinct value occurs; numbers ascending."""
        x = self.numbers
        if x is not None and np.abs(x).max() < EXACT:
            return np.unique(x, return_counts=True)[1]
        return np.array(list(Counter(map(str, self.present)).values()))

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return len(self.counts)

    @property
    def has_leading_zeros(self) -> bool:
        """Whether text such as 007 shows that the digits are a code."""
        return any(
            isinstance(text, str) and len(text) > 1 and text[0] == "0" and text.isdigit()
            for text in self.present
        )

    @property
    def is_unique(self) -> bool:
        """Whether (nearly) no value occurs twice."""
        return self.distinct >= NEARLY * len(self.present)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, or text that writes one.

    >>> is_number("1e3"), is_number("n/a"), is_number(True)
    (True, False, False)
    """
    if isinstance(value, bool) or (
        isinstance(value, str) and (len(value) > MOST_DIGITS or "_" in value)
    ):
        return False
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def columns_of(rows: Iterable[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of rows; inner fields have dotted names.

    >>> rows = [{"user": None}, {"user": {"id": 1}}, {"ad": "shoes"}]
    >>> [column.name for column in columns_of(rows)]
    ['user.id', 'ad']
    """
    found: dict[str, dict[int, Any]] = {}
    count = 0
    for row in rows:
        for name, value in flat(row, ""):
            kept = found.setdefault(name, {})
            if value is not None and value == value:  # noqa: PLR0124 - NaN is not
                kept[count] = value
        count += 1
    outer = {name[:end] for name in found for end in dots(name)[:-1]}
    return [
        Column(name, [values.get(i) for i in range(count)])
        for name, values in found.items()
        if values or name not in outer  # an object that some rows lack is no field of its own
    ]


def flat(row: Mapping[str, Any], before: str) -> Iterable[tuple[str, Any]]:
    """Yield the fields of a row by their dotted names."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
