"""Labels as text, and which of two is the positive one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

BOOLEAN_TEXTS = {"true": True, "false": False}


def label_text(label: Any) -> str:
    """Return a label as the key of a JSON object.

    >>> label_text("spam"), label_text(True), label_text(3)
    ('spam', 'true', '3')
    """
    return label if isinstance(label, str) else msgspec.json.encode(label, enc_hook=str).decode()


def spelled(text: str) -> float | bool | None:
    """Return the number or boolean that a text writes, or None.

    >>> spelled("1"), spelled("True"), spelled("spam")
    (1, True, None)
    """
    if text.lower() in BOOLEAN_TEXTS:
        return BOOLEAN_TEXTS[text.lower()]
    try:
        found = msgspec.json.decode(text.encode())  # not the text, which may be an enum's
    except (msgspec.DecodeError, UnicodeEncodeError):  # also half of a surrogate pair
        return None
    return found if isinstance(found, int | float) else None


def positive_last(labels: Sequence[Any]) -> list[Any]:
    """Return labels, seen in this order, with the positive one of two last.

    It is the greater of two numbers or booleans, also of texts that write them; otherwise the one
    that was seen second.

    >>> positive_last([1, 0]), positive_last(["true", "false"]), positive_last(["spam", "ham"])
    ([0, 1], ['false', 'true'], ['spam', 'ham'])
    """
    if len(labels) != 2:
        return list(labels)
    first, second = labels
    texts = isinstance(first, str) and isinstance(second, str)
    one, two = (spelled(first), spelled(second)) if texts else (first, second)
    if not isinstance(one, int | float) or not isinstance(two, int | float):
        return [first, second]
    return [second, first] if one > two else [first, second]


def is_positive_alone(label: Any) -> bool:
    """Return whether a label is probably the positive one, before another one was seen.

    >>> is_positive_alone(1), is_positive_alone("true"), is_positive_alone("spam")
    (True, True, False)
    """
    value = spelled(label) if isinstance(label, str) else label
    return isinstance(value, int | float) and value == 1
