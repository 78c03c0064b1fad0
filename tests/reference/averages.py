"""Averages over the iterates [w_1, ..., w_t], the points at which the t events were met."""

from collections.abc import Sequence

import numpy as np

from .rule import Vector


def uniform(iterates: Sequence[Vector]) -> Vector:
    """[Xiao10] Theorem 3: (w_1 + ... + w_t)/t; w_{t+1} is not in it."""
    return np.asarray(np.mean(np.stack(iterates), axis=0))


def tail(iterates: Sequence[Vector]) -> Vector:
    """[Takac13] Theorem 1 on a stream: the mean over 2^(k-1) < tau <= t, for 2^k <= t < 2^(k+1)."""
    t = len(iterates)
    k = t.bit_length() - 1
    first = 2 ** (k - 1) if k > 0 else 0
    return uniform(iterates[first:])
