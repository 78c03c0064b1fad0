"""What labels are: classes or numbers, and when all classes are known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from streamlearn.guesses.numbers import is_whole

if TYPE_CHECKING:
    from streamlearn.guesses.column import Column

MOST_CLASSES = 50  # distinct integers that may be classes
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

    A third label that occurs once beside two classes is taken for a stray one, and is not counted.

    >>> from streamlearn.guesses import Column
    >>> last_new_class(Column("y", [0, 1, 0, 1, "typo"]))
    2
    >>> last_new_class(Column("y", [6, 5, 6, 5, 7, 7, 9]))
    7
    """
    counts = Counter(labels.present)
    classes = {label for label, count in counts.items() if count > 1}
    if len(classes) > 2:
        classes = set(counts)
    first: dict[Any, int] = {}
    for number, label in enumerate(labels.present, 1):
        first.setdefault(label, number)
    return max((first[label] for label in classes), default=0)
