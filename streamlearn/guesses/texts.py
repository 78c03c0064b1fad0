"""Guesses of fields whose values are text, or of several types."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from streamlearn.features.fields import Auto, Category, Ignore, List, Text
from streamlearn.guesses.column import Column, Guess
from streamlearn.guesses.times import ordered_dates, parts_of, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array

WORDS = 2.5  # of a value, in the mean, from which it is a text
DISTINCT = 0.2  # share of values of texts that are distinct
LONG = 8.0  # words of a value that is a text, even if it repeats
FEW = 100  # distinct values that are categories, however long
SEPARATORS = "|;,"
UUID = re.compile(r"\{?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?")


def guess_text(column: Column) -> Guess:
    """Return the first guess that applies."""
    for rule in RULES:
        found = rule(column)
        if found is not None:
            return found
    return category(column)


def bools(column: Column) -> Guess | None:
    """True or false."""
    return Guess(Category(), "true or false") if column.types == {bool} else None


def lists(column: Column) -> Guess | None:
    """Lists: sets of categories, unless their items are measurements or objects."""
    if not column.types & {list, tuple}:
        return None
    items = [item for value in column.present if isinstance(value, list | tuple) for item in value]
    kinds = set(map(type, items)) - {type(None)}
    if not kinds:
        return Guess(Auto(), "empty lists so far")
    if kinds <= {str, int, bool}:
        return Guess(List(invalid="missing"), f"lists, {len(set(items)):,} distinct items")
    return Guess(Ignore(), "lists of numbers or objects")


def times(column: Column) -> Guess | None:
    """Dates and times in ISO 8601, or of such a type."""
    seconds = seconds_of(column.present)
    return None if seconds is None else Guess(parts_of(seconds), what_times(seconds))


def dates(column: Column) -> Guess | None:
    """Dates and times in another form, if it is clear what is the day, and what is the month."""
    found = ordered_dates(column.present)
    if found is None:
        return None
    seconds, orders = found
    if len(orders) > 1:
        ways = " or ".join(f"time(order={order})" for order in orders)
        return Guess(Category(), f"{what_times(seconds)}, day or month first? declare {ways}")
    return Guess(parts_of(seconds, order=orders[0]), f"{what_times(seconds)}, {orders[0]}")


def what_times(seconds: Array) -> str:
    """Return whether times are days."""
    return "dates" if not (seconds % 86400).any() else "times"


def mixed(column: Column) -> Guess | None:
    """Values of several types have only their text in common."""
    if column.types <= {str}:
        return None
    if column.types <= {str, int, float, bool}:
        return Guess(Category(), f"several types, {column.distinct:,} distinct")
    return Guess(Ignore(), f"of type {min(one.__name__ for one in column.types)}")


def constant(column: Column) -> Guess | None:
    """All values are the same: other values will be categories."""
    return Guess(Category(), "constant so far") if column.distinct == 1 else None


def prose(column: Column) -> Guess | None:
    """Values of several words that rarely repeat."""
    words = sum(len(text.split()) for text in column.present) / len(column.present)
    links = sum("://" in text for text in column.present) > 0.9 * len(column.present)
    some = column.distinct > DISTINCT * len(column.present)
    if not (some and (words >= WORDS or links)) and not (words >= LONG and column.distinct > FEW):
        return None
    what = "links" if links else f"{words:.0f} words each"
    return Guess(Text(normalized=True), f"{what}, {column.distinct:,} distinct")


def sets(column: Column) -> Guess | None:
    """Several items between separators, without spaces, that recur in other values."""
    if any(" " in text for text in column.present[:1000]):
        return None
    for separator in SEPARATORS:
        if sum(separator in text for text in column.present) < 0.3 * len(column.present):
            continue
        items = Counter(item for text in column.present for item in text.split(separator))
        once = sum(1 for count in items.values() if count == 1)
        if once < 0.05 * items.total():
            field = List(separator=separator, invalid="missing")
            return Guess(field, f"lists, {len(items):,} distinct items")
    return None


def key(column: Column) -> Guess | None:
    """No value occurs twice: nothing can be learned from one row."""
    if not column.is_unique:
        return None
    ids = all(UUID.fullmatch(text.strip()) for text in column.present[:100])
    return Guess(Ignore(), "unique UUIDs" if ids else "unique")


def category(column: Column) -> Guess:
    """Any other text."""
    return Guess(Category(), f"text, {column.distinct:,} distinct")


RULES: tuple[Callable[[Column], Guess | None], ...] = (
    bools,
    lists,
    times,
    dates,
    mixed,
    constant,
    sets,
    prose,
    key,
)
