"""All fields of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.features.fields import Auto, Category, Number
from streamlearn.guesses.column import Column, Guess
from streamlearn.guesses.numbers import guess_numbers, number
from streamlearn.guesses.texts import guess_text

if TYPE_CHECKING:
    from collections.abc import Iterable

FEWEST_ROWS = 20  # fewer do not tell what a field is


def guess_fields(columns: Iterable[Column], *, typed: bool = True) -> dict[str, Guess]:
    """Return what each field is taken for; nothing if there are too few rows to tell.

    `typed`: whether values have types, which CSV lacks.

    >>> guess_fields([Column("x", [1, 2, 3])])
    {}
    """
    return {
        column.name: guess_field(column, typed=typed)
        for column in columns
        if len(column.values) >= FEWEST_ROWS
    }


def guess_field(column: Column, *, typed: bool) -> Guess:
    """Return what a field is taken for."""
    if not column.present:
        return Guess(Auto() if typed else Number(invalid="category"), "empty so far")
    if len(column.present) < FEWEST_ROWS:
        return guess_from_few(column)
    if column.numbers is not None:
        return guess_numbers(column, column.numbers)
    rest = column.without_strays
    if rest is not None and rest.numbers is not None:
        found = guess_numbers(rest, rest.numbers)
        if isinstance(found.field, Number):
            return Guess(found.field, f"{found.reason}, and a little text")
    return guess_text(column)


def guess_from_few(column: Column) -> Guess:
    """Return what a field is taken for that nearly all rows lack."""
    x = column.numbers
    if x is not None:
        return number(column, x, "numbers")
    if column.types <= {str, int, float, bool}:
        return Guess(Category(), f"text, {column.missing:.0%} missing")
    return guess_text(column)
