"""Checks of loss parameters: each returns the checked value or raises ValueError."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.core.parameters import number


def square_matrix(matrix: Any, name: str) -> NDArray[np.float64]:
    """Return `matrix` as a finite square array."""
    try:
        array = np.array(matrix, np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"{name} must be a square array of numbers, got {matrix!r}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must contain only finite numbers, got {matrix!r}")
    return array


def semidefinite(matrix: Any, name: str) -> tuple[NDArray[np.float64], float]:
    """Return `matrix` as a positive semidefinite array, and its largest eigenvalue."""
    array = square_matrix(matrix, name)
    rounding = 1e-12 * float(np.abs(array).max())
    if np.abs(array - array.T).max() > rounding:
        raise ValueError(f"{name} must be symmetric, got {matrix!r}")
    eigenvalues = np.linalg.eigvalsh(array)
    if eigenvalues[0] < -rounding * len(array):
        raise ValueError(
            f"{name} must be positive semidefinite, but has the eigenvalue {eigenvalues[0]:g}"
        )
    return array, max(0.0, float(eigenvalues[-1]))


def checked_costs(true: Hashable, row: Any, power: float) -> dict[Hashable, float]:
    """Return the costs Delta(true, predicted) by prediction; their powers must be finite too."""
    if not isinstance(row, Mapping):
        raise ValueError(f"the costs of {true!r} must be a mapping from labels, got {row!r}")
    costs = {}
    for predicted, cost in row.items():
        name = f"the cost of predicting {predicted!r} for {true!r}"
        delta = number("cost", name, cost, low=0.0)
        if true == predicted and delta != 0:
            raise ValueError(f"cost: {name} must be 0, got {cost!r}")
        try:
            delta**power
        except OverflowError:
            raise ValueError(
                f"cost: {name} must have a finite power {power!r}, got {cost!r}"
            ) from None
        costs[predicted] = delta
    return costs
