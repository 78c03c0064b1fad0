"""Validation of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def whole_number(name: str, value: Any, low: int) -> int:
    """Return the value as an int, or raise a ValueError that names the parameter.

    >>> whole_number("threads", 2, 1)
    2
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"{name} must be a whole number >= {low}, got {value!r}")
    return int(value)
