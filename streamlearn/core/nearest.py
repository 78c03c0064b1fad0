"""Hints for misspelled names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint for an unknown name: the closest valid name, or all of them.

    >>> nearest("topcis", ["topics", "pattern"])
    'did you mean topics?'
    >>> nearest("xyz", ["topics", "pattern"])
    'valid: pattern, topics'
    """
    choices = sorted(names)
    folded = {choice.lower().replace("_", "").replace("-", ""): choice for choice in choices}
    key = name.lower().replace("_", "").replace("-", "")
    close = difflib.get_close_matches(key, folded, 1, 0.6)
    if close:
        return f"did you mean {folded[close[0]]}?"
    few = choices if len(choices) <= 30 else [*choices[:30], ".."]
    return f"valid: {', '.join(few)}" if few else "none is valid here"
