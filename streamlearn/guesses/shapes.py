"""Shapes of samples: what distinguishes ids and codes from quantities, by their values alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

STRAIGHT = 0.05  # of the range: the distance of a counter from a straight line
UNEVEN = 0.2  # of 0, where frequencies change little, to 1, where each is its own
HEAPED = 0.3  # of the repeated values of a quantity end with the same digit, such as 0 or 9
HEAVY = 8.0  # times the median is the 99th percentile of a heavy tail


def is_straight(x: Array) -> bool:
    """Return whether numbers never turn back, and grow as row numbers or arrival times do.

    >>> is_straight(np.array([5.0, 6.0, 7.0, 9.0, 10.0])), is_straight(2.0 ** np.arange(9))
    (True, False)
    """
    steps, growth = np.diff(x), abs(float(x[-1] - x[0]))
    if not ((steps >= 0.0).all() or (steps <= 0.0).all()) or not growth:
        return False
    line = np.linspace(x[0], x[-1], len(x))
    return float(np.abs(x - line).max()) < max(STRAIGHT, 1.0 / len(x)) * growth


def is_key(x: Array, distinct: int) -> bool:
    """Return whether numbers repeat far less than chance would, as keys do.

    >>> rng = np.random.default_rng(0)
    >>> is_key(rng.permutation(1000).astype(float), 1000)
    True
    >>> is_key(rng.integers(10_000_000, size=1000).astype(float), 1000)  # chance repeats few
    False
    """
    n = len(x)
    by_chance = n * n / (2.0 * (x.max() - x.min() + 1.0))  # pairs
    return bool(by_chance > 10.0 and n - distinct < 0.1 * by_chance)


def is_spread_evenly(x: Array) -> bool:
    """Return whether numbers are spread evenly over a large range, as random keys are."""
    low, high = x.min(), x.max()
    if high - low < 1e8:
        return False
    ranks = (np.sort(x) - low) / (high - low)
    return float(np.abs(ranks - np.linspace(0.0, 1.0, len(x))).max()) < 0.05


def is_irregular(x: Array) -> bool:
    """Return whether some values occur far more often than their neighbors, as ids and codes do.

    The frequencies of a quantity change little from a value to the next, but for zero and for
    values that people round to.

    >>> rng = np.random.default_rng(0)
    >>> codes = rng.permutation(300)[rng.zipf(1.5, 5000) % 300].astype(float)
    >>> ages = rng.normal(40.0, 12.0, 5000).round()
    >>> is_irregular(codes), is_irregular(ages)
    (True, False)
    """
    values, counts = np.unique(x[x != 0.0], return_counts=True)
    if len(values) < 3:
        return False
    before, after = counts[:-1].astype(float), counts[1:].astype(float)
    noise = before + after  # the variance of a difference that is only chance
    uneven = float(((before - after) ** 2 - noise).sum() / (before**2 + after**2).sum())
    digits = np.bincount((np.abs(values[counts > 1]) % 10.0).astype(np.intp), minlength=10)
    return bool(uneven > UNEVEN and digits.max() <= HEAPED * max(digits.sum(), 1))


def has_heavy_tail(x: Array) -> bool:
    """Return whether numbers, none of them negative, have a heavy tail.

    >>> rng = np.random.default_rng(0)
    >>> has_heavy_tail(rng.lognormal(3.0, 1.0, 5000)), has_heavy_tail(rng.uniform(0.0, 9.0, 5000))
    (True, False)
    """
    positive = x[x > 0.0]
    if x.min() < 0.0 or len(positive) < 50:
        return False
    middle, high = np.quantile(positive, [0.5, 0.99])
    return bool(high > HEAVY * middle)
