"""What a loss may be built with: each check returns the parameter or says what is allowed."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def limited(
    value: object, what: str, low: float, high: float = math.inf, *, inside: bool = False
) -> float:
    """`value` as a number of [low, high], or of (low, high) if `inside`."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if math.isfinite(number) and low <= number <= high and not (inside and number in {low, high}):
        return number
    allowed = f"{'>' if inside else '>='} {low:g}"
    if high < math.inf:
        allowed += f" and {'<' if inside else '<='} {high:g}"
    raise ValueError(f"{what} is {value!r}; it must be a finite number {allowed}")


def square(matrix: Any, what: str) -> NDArray[np.float64]:
    """`matrix` as a finite square array."""
    try:
        array = np.array(matrix, np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"{what} is {matrix!r}; it must be a square array of numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} is {matrix!r}; its numbers must be finite")
    return array


def semidefinite(matrix: Any, what: str) -> tuple[NDArray[np.float64], float]:
    """`matrix` as a positive semidefinite array, and its largest eigenvalue."""
    array = square(matrix, what)
    rounding = 1e-12 * float(np.abs(array).max())
    if np.abs(array - array.T).max() > rounding:
        raise ValueError(f"{what} is {matrix!r}; it must be symmetric")
    eigenvalues = np.linalg.eigvalsh(array)
    if eigenvalues[0] < -rounding * len(array):
        raise ValueError(
            f"{what} has the eigenvalue {eigenvalues[0]:g}; it must be positive semidefinite"
        )
    return array, max(0.0, float(eigenvalues[-1]))


def prices(true: Hashable, row: Any, power: float) -> dict[Hashable, float]:
    """The costs Delta(true, guess) of each guess; their powers must be finite too."""
    if not isinstance(row, Mapping):
        raise ValueError(f"the costs of {true!r} are {row!r}; they must be a mapping from labels")
    result = {}
    for guess, cost in row.items():
        what = f"the cost of predicting {guess!r} for {true!r}"
        delta = limited(cost, what, 0.0)
        if true == guess and delta != 0:
            raise ValueError(f"{what} is {cost!r}; it must be 0")
        try:
            delta**power
        except OverflowError:
            raise ValueError(f"{what} is {cost!r}; its power {power!r} must be finite") from None
        result[guess] = delta
    return result
