"""Guesses of fields whose values are numbers, or text that writes numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.features.calendar import date_seconds
from streamlearn.features.fields import Category, Ignore, Number
from streamlearn.guesses import shapes
from streamlearn.guesses.column import Column, Guess
from streamlearn.guesses.times import SECONDS, UNITS, parts_of
from streamlearn.guesses.words import means_id, means_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array

FEW = 32  # values of a field that are categories, whatever they mean
EACH = 20  # rows that each of them needs
EACH_CODE = 5  # rows of each value, in the mean, that make numbers codes
COMMON_ZERO = 0.1  # share of zeros from which zero is not a value like others


def guess_numbers(column: Column, x: Array) -> Guess:
    """Return the first guess that applies."""
    for rule in RULES:
        found = rule(column, x)
        if found is not None:
            return found
    return quantity(column, x)


def constant(column: Column, x: Array) -> Guess | None:  # noqa: ARG001 - a rule's
    """All values are the same: other values will be categories."""
    return Guess(Category(), "constant so far") if column.distinct == 1 else None


def moment(column: Column, x: Array) -> Guess | None:
    """Seconds since 1970, or a smaller unit, of our decades: if named so, or ascending."""
    for unit, scale in UNITS.items():
        seconds = x * scale
        if SECONDS[0] <= seconds.min() and seconds.max() <= SECONDS[1]:
            ascending = float((np.diff(x) >= 0.0).mean()) > 0.9 and not means_id(column.name)
            if column.distinct > 2 and (means_time(column.name) or ascending):
                return Guess(parts_of(seconds, unit), f"times in {unit} since 1970")
    return None


def day(column: Column, x: Array) -> Guess | None:
    """Dates that are written as numbers, such as 20260131."""
    if x.min() < 1900_01_01 or x.max() > 2100_12_31 or column.distinct <= 2:
        return None
    seconds = [date_seconds(value, "ymd") for value in x.tolist()]
    if None in seconds:
        return None
    return Guess(parts_of(np.array(seconds), order="ymd"), "dates as YYYYMMDD")


def key(column: Column, x: Array) -> Guess | None:
    """No value occurs twice, or decimals grow by row: nothing can be learned from one row."""
    whole = is_whole(x)
    if not column.is_unique and (whole or column.distinct <= FEW):
        return None
    if shapes.is_straight(x):  # decimals may repeat when they are rounded
        unique = "unique, " if column.is_unique else ""
        return Guess(Ignore(), f"{unique}{'ascending' if x[-1] > x[0] else 'descending'} by row")
    if not column.is_unique:
        return None
    if whole and means_id(column.name):
        return Guess(Ignore(), "unique integers, named as an id")
    if whole and (shapes.is_key(x, column.distinct) or shapes.is_spread_evenly(x)):
        return Guess(Ignore(), "unique integers, as of a key")
    return None


def named_id(column: Column, x: Array) -> Guess | None:
    """Integers of a field that is named as an id or a code."""
    if not is_whole(x) or not means_id(column.name):
        return None
    return Guess(Category(), f"integers, {column.distinct:,} distinct; named as an id")


def padded(column: Column, x: Array) -> Guess | None:  # noqa: ARG001 - a rule's
    """Digits with leading zeros are codes."""
    if not column.has_leading_zeros:
        return None
    return Guess(Category(), f"digits with leading zeros, {column.distinct:,} distinct")


def flag(column: Column, x: Array) -> Guess | None:
    """0 or 1."""
    return (
        number(column, x, "0 or 1")
        if column.distinct == 2 and {x.min(), x.max()} == {0.0, 1.0}
        else None
    )


def year(column: Column, x: Array) -> Guess | None:
    """Years of our centuries."""
    if is_whole(x) and x.min() >= 1800.0 and x.max() <= 2100.0 and column.distinct > 2:
        return number(column, x, f"integers, {x.min():.0f} to {x.max():.0f}: years")
    return None


def count(column: Column, x: Array) -> Guess | None:
    """Mostly zero, and never negative: counts and amounts."""
    zeros = float((x == 0.0).mean())
    return number(column, x, f"{zeros:.0%} zeros") if zeros > 0.5 and x.min() == 0.0 else None


def few_integers(column: Column, x: Array) -> Guess | None:
    """Integers of few values, with many rows each."""
    n = column.distinct
    if not is_whole(x) or n > FEW or len(x) < EACH * n:
        return None
    return Guess(Category(), f"integers, {n} distinct")


def code(column: Column, x: Array) -> Guess | None:
    """Integers that repeat as codes do: some far more often than their neighbors, or far from 0."""
    n = column.distinct
    if not is_whole(x) or len(x) < EACH * FEW:
        return None
    repeated = float(column.counts[column.counts > 1].sum()) > 0.5 * len(x)
    offset = x.min() > 3.0 * (x.max() - x.min()) and len(x) >= EACH_CODE * n
    if (repeated and shapes.is_irregular(x)) or offset:
        return Guess(Category(), f"integers, {n:,} distinct, distributed as codes")
    return None


def quantity(column: Column, x: Array) -> Guess:
    """Any other numbers."""
    if is_whole(x):
        return number(column, x, f"integers, {column.distinct:,} distinct")
    return number(column, x, "numbers")


RULES: tuple[Callable[[Column, Array], Guess | None], ...] = (
    constant,
    moment,
    day,
    key,
    padded,
    flag,
    year,
    named_id,
    count,
    few_integers,
    code,
)


def number(column: Column, x: Array, reason: str) -> Guess:
    """Return a number, centered, so that a missing one counts as average, unless zero is common."""
    log1p = shapes.has_heavy_tail(x)
    values = np.log1p(x) if log1p else x
    with np.errstate(over="ignore", invalid="ignore"):  # beside 1e300 the spread is infinite
        spread, middle = float(values.std()), float(values.mean())
    center = 0.0
    mostly_missing = column.missing > 0.5
    if abs(middle) > 0.5 * spread and not mostly_missing and (x == 0.0).mean() < COMMON_ZERO:
        center = round(middle, 1 - math.floor(math.log10(spread)))
    indicator = 0.0 < column.missing <= 0.5
    reasons = [reason, *(["heavy tail"] if log1p else [])]
    if column.missing:
        reasons.append(
            f"{column.missing:.0%} missing" if column.missing >= 0.01 else "some missing"
        )
    field = Number(log1p=log1p, center=center, indicator=indicator, invalid="category")
    return Guess(field, ", ".join(reasons))


def is_whole(x: Array) -> bool:
    """Return whether all numbers are integers."""
    return bool((x == np.floor(x)).all())
