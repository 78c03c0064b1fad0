"""What labels are: classes or numbers, and when all classes are known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from streamlearn.guesses.numbers import is_whole
from streamlearn.stream.formats.csv import number
from streamlearn.stream.formats.fields import Label

if TYPE_CHECKING:
    from streamlearn.guesses.column import Column

MOST_CLASSES = 50  # distinct integers that may be classes
BOOLEANS = {"true": True, "false": False}
MOST_FRACTIONS = 20  # distinct numbers that are no integers, and may be classes


def are_numbers(labels: Column) -> bool:
    """Return whether labels are numbers to predict rather than classes.

    >>> from streamlearn.guesses import Column
    >>> are_numbers(Column("price", [n + 0.5 for n in range(100)]))
    True
    >>> are_numbers(Column("clicked", [0, 1] * 50))
    False
    """
    x = labels.numbers
    if x is None or len(x) < MOST_FRACTIONS:
        return False
    most = MOST_CLASSES if is_whole(x) else MOST_FRACTIONS
    return labels.distinct > min(most, len(x) // 2)


def last_new_class(labels: Column) -> int:
    """Return after how many labels all classes of the sample are known.

    >>> from streamlearn.guesses import Column
    >>> last_new_class(Column("y", [6, 5, 6, 5, 7, 7, 9]))
    7
    """
    first: dict[Label, int] = {}
    for place, label in enumerate(valid_labels(labels), 1):
        first.setdefault(label, place)
    return max(first.values(), default=0)


def classes_beside_strays(labels: Column) -> list[Label]:
    """Return the two classes of the sample if other labels are mistakes, or spell them otherwise.

    A label that occurs once beside two classes is a mistake. Empty if there is no other label, or
    if there are more classes.

    >>> from streamlearn.guesses import Column
    >>> classes_beside_strays(Column("y", ["typo", "0", "1", "0", "1"]))
    [0, 1]
    >>> classes_beside_strays(Column("y", [6, 5, 6, 5, 7, 7, 9])), classes_beside_strays(
    ...     Column("y", [False, True, "false", True, False])
    ... )
    ([], [False, True])
    """
    valid = valid_labels(labels)
    counts = Counter(map(spelled, valid))
    classes = [label for label, count in counts.items() if count > 1]
    if len(classes) != 2 or len(set(valid)) == 2:
        return []
    numbers = [number(label) if isinstance(label, str) else None for label in classes]
    return classes if None in numbers else [n for n in numbers if n is not None]


def valid_labels(labels: Column) -> list[Label]:
    """Return the labels of a type that a label may have."""
    return [label for label in labels.present if isinstance(label, Label)]


def spelled(label: Label) -> Label:
    """Return the label that a text stands for: true and false are booleans."""
    return BOOLEANS.get(label.strip().lower(), label) if isinstance(label, str) else label
