"""Weights of events: numbers from 0 to 1e100."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

MAX_WEIGHT = 1e100  # so that sums of weights times losses, and their squares, are finite


def checked_weight(w: Any) -> float:
    """Return the weight of an event; ValueError unless it is from 0 to 1e100."""
    try:
        # as a float: infinity of 32 bits is not more than 1e100 of 32 bits
        weight = math.nan if isinstance(w, str | bytes | bytearray) else float(w)
    except (TypeError, ValueError, OverflowError):
        weight = math.nan
    if 0.0 <= weight <= MAX_WEIGHT:
        return weight
    raise ValueError(f"the weight of an event must be a number from 0 to {MAX_WEIGHT:g}, got {w!r}")


def checked_weights(w: Any, n: int) -> Array | None:
    """Return the weights of n events as an array; None if none are given."""
    if w is None:
        return None
    weights: Array = np.array(w, dtype=float, order="C")
    if not weights.ndim:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"w must have one weight for each of {n} rows, got shape {weights.shape}")
    if not ((weights >= 0.0) & (weights <= MAX_WEIGHT)).all():
        raise ValueError(f"the weights of events must be numbers from 0 to {MAX_WEIGHT:g}")
    return weights
