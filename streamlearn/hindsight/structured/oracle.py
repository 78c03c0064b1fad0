"""User-defined risks: structured estimation through an oracle ([Teo07] section 3.3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamlearn.core.integers import integer
from streamlearn.core.parameters import number
from streamlearn.hindsight.methods import METHODS
from streamlearn.hindsight.problem import Objective

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback, Solution
    from streamlearn.penalties import Penalty

# the methods that need only values and slopes
ORACLE_METHODS = ("bundle", "proximal-bundle")


class Oracle(Protocol):
    """A user-defined convex function of w."""

    @property
    def size(self) -> int:
        """The length of w."""

    def value_and_slope(self, w: Vector) -> tuple[float, Any]:
        """Return the value at w and a subgradient there: `size` numbers."""


class StructuredRisk:
    """An oracle as a Risk; its results are validated."""

    def __init__(self, oracle: Oracle, lowest: float) -> None:
        if not callable(getattr(oracle, "value_and_slope", None)):
            raise ValueError(f"{oracle!r} must have a method value_and_slope(w)")
        self.oracle = oracle
        self.size = integer("the oracle's size", getattr(oracle, "size", None), 1)
        self.lowest = lowest

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Call the oracle with a copy of w and validate the result."""
        answer, slope = self.oracle.value_and_slope(w.copy())
        value, gradient = float(answer), np.array(slope, dtype=float)
        if gradient.shape != (self.size,):
            raise ValueError(
                f"the oracle's slope has shape {gradient.shape}; it must have {self.size} numbers"
            )
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            raise ValueError(f"the oracle's value {value} and slope must be finite for every w")
        if value < self.lowest - 1e-9 * (1.0 + abs(self.lowest)):
            raise ValueError(
                f"the oracle's value {value} is below lowest={self.lowest}; decrease lowest"
            )
        return value, gradient


def solve_risk(
    oracle: Oracle,
    penalty: Penalty,
    *,
    lowest: float = 0.0,
    intercepts: int = 0,
    method: str = "bundle",
    gap: float = 1e-4,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimize a user-defined convex function plus Psi(w), with a certified gap.

    Parameters
    ----------
    oracle
        An object with the `size` of w and a method `value_and_slope(w)` that returns the
        function's value and a subgradient. For a structured loss the slope is
        phi(x, y') - phi(x, y) at the y' that attains the maximum, or its expectation.
    penalty
        L2, L1, ElasticNet or Ball.
    lowest
        A lower bound on the function.
    intercepts
        How many numbers at the end of w are not penalized.
    method, gap, max_iter, start, callback
        As for `solve`; the method is "bundle" or "proximal-bundle".

    Examples
    --------
    >>> import streamlearn as sl
    >>> class Distance:
    ...     size = 2
    ...
    ...     def value_and_slope(self, w):
    ...         away = w - [3.0, 0.5]
    ...         return abs(away).sum(), [1.0 if x > 0 else -1.0 for x in away]
    >>> solution = sl.hindsight.solve_risk(Distance(), sl.penalties.L2(1.0))
    >>> solution.w.round(3).tolist(), round(solution.objective, 3)
    ([1.0, 0.5], 2.625)
    """
    lowest = number("solve_risk", "lowest", lowest)
    gap = number("solve_risk", "gap", gap, low=0.0)
    if method not in ORACLE_METHODS:
        raise ValueError(f"method must be one of {', '.join(ORACLE_METHODS)}, got {method!r}")
    risk = StructuredRisk(oracle, lowest)
    if isinstance(intercepts, bool) or not 0 <= intercepts < risk.size:
        raise ValueError(f"intercepts must be from 0 to size - 1, got {intercepts!r}")
    problem = Objective(risk, penalty, lowest=lowest, intercepts=intercepts)
    chosen = METHODS[method]
    if not chosen.takes_penalty(penalty):
        raise ValueError(f"{method} supports {chosen.penalties}, not {penalty!r}")
    return chosen(problem, gap=gap, max_iter=max_iter, start=start, callback=callback)
