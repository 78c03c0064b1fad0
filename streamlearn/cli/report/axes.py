"""Axes: numbers to places in a picture, and the ticks beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array

PROBABILITIES = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True)
class Axis:
    """One axis, from `low` to `high` in the numbers that `scale` returns."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]  # place and text
    scale: Callable[[Array], Array] = np.asarray

    def share(self, values: Array) -> Array:
        """Return values as shares of the axis, between 0 and 1."""
        places = (self.scale(np.asarray(values, dtype=float)) - self.low) / (self.high - self.low)
        shares: Array = np.clip(places, 0.0, 1.0)
        return shares


def linear(title: str, low: float, high: float, count: int = 5) -> Axis:
    """Return an axis with round ticks.

    >>> [text for _, text in linear("loss", 0.0, 0.43).ticks]
    ['0', '0.1', '0.2', '0.3', '0.4']
    """
    if not high > low:
        low, high = low - abs(low) / 2.0 - 0.5, high + abs(high) / 2.0 + 0.5
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= count)
    places = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step
    return Axis(title, low, high, tuple((place, short(place)) for place in places.tolist()))


def shares(title: str) -> Axis:
    """Return an axis of shares, from 0 to 1."""
    return Axis(title, 0.0, 1.0, tuple((tick / 4, f"{tick / 4:g}") for tick in range(5)))


def log_odds(title: str, low: float, high: float) -> Axis:
    """Return an axis of probabilities by their log-odds, between two probabilities.

    >>> [text for _, text in log_odds("p", 0.004, 0.6).ticks]
    ['0.01', '0.1', '0.5']
    """
    first, last = float(logit(np.array(low))), float(logit(np.array(high)))
    if last - first < 1.0:
        first, last = first - 0.5, last + 0.5
    ticks = [(float(logit(np.array(p))), f"{p:g}") for p in PROBABILITIES]
    inside = tuple(tick for tick in ticks if first <= tick[0] <= last)
    return Axis(title, first, last, inside, logit)


def logit(probabilities: Array) -> Array:
    """Return log-odds, finite for 0 and 1."""
    inside = np.clip(probabilities, 1e-9, 1.0 - 1e-9)
    odds: Array = np.log(inside / (1.0 - inside))
    return odds


def short(value: float) -> str:
    """Return a number in few characters.

    >>> short(2_500_000.0), short(0.25), short(-12_000.0), short(0.30000000000000004)
    ('2.5M', '0.25', '-12k', '0.3')
    """
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10_000.0 and abs(value) >= size:
            return f"{value / size:.4g}{sign}"
    return f"{value:.4g}" if abs(value) > 1e-12 else "0"
