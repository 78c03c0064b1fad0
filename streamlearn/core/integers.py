"""Integers among parameters: Python's and NumPy's, but not bool."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether a value is an integer.

    >>> is_integer(2), is_integer(np.int64(2)), is_integer(True), is_integer(2.0)
    (True, True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def integer(name: str, value: Any, low: int) -> int:
    """Return the value as an int, or raise a ValueError that names the parameter.

    >>> integer("threads", 2, 1)
    2
    """
    if not is_integer(value) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}")
    return int(value)
