"""OWL-QN: L-BFGS for smooth losses under l1 [Andrew07].

A step stays in its orthant, where l1 is linear: a weight that would change its sign becomes 0.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.hindsight.bounds import dual_bound
from streamlearn.hindsight.coordinate_scales import coordinate_scales
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.solution import Progress, Solution

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import RowProblem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback

BOUND_EVERY = 5
SUFFICIENT = 1e-4  # Armijo's share of the expected descent
HALVINGS = 60


class LBFGSMemory:
    """The L-BFGS model of the curvature: the last steps, and the gradient's change along them."""

    def __init__(self, memory: int, scales: Vector) -> None:
        self.scales = scales
        self.squares = scales * scales  # the initial inverse
        self.pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=memory)

    def update(self, step: Vector, change: Vector) -> None:
        """Add a step if the gradient rose along it."""
        rise = inner(step, change)
        if rise > 1e-14 * inner(change, change):
            self.pairs.append((step, change, rise))

    def scaled_norm(self, g: Vector) -> float:
        """Return the norm of a gradient in units of the scales."""
        scaled = self.scales * g
        return max(math.sqrt(inner(scaled, scaled)), 1e-300)

    def solve(self, g: Vector) -> Vector:
        """Return the inverse of the model times g (Nocedal's two-loop recursion)."""
        q = g.copy()
        shares = []
        for step, change, rise in reversed(self.pairs):
            share = inner(step, q) / rise
            shares.append(share)
            q -= share * change
        q *= self.squares
        if self.pairs:
            _, change, rise = self.pairs[-1]
            q *= rise / inner(change, self.squares * change)
        for (step, change, rise), share in zip(self.pairs, reversed(shares), strict=True):
            q += step * (share - inner(change, q) / rise)
        return q


def owlqn(
    problem: RowProblem,
    *,
    gap: float,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
    memory: int = 10,
) -> Solution:
    """Minimize with a curvature model of the last `memory` steps, in units of `coordinate_scales`.

    The bound is the dual value at the slopes of w, scaled down until no feature's correlation with
    them exceeds the strength of l1.
    """
    memory = int(number("owlqn", "memory", memory, low=1.0))
    progress = Progress(problem, "owlqn", gap=gap, callback=callback)
    with progress:
        w = problem.start(start)
        _descend(problem, w, progress, 10_000 if max_iter is None else max_iter, memory)
        if progress.w is not None:
            progress.raise_bound(dual_bound(problem, progress.w))
    return progress.solution()


def _descend(
    problem: RowProblem, w: Vector, progress: Progress, max_iter: int, memory: int
) -> None:
    strength = np.zeros(problem.size)
    problem.penalized(strength)[:] = problem.penalty.l1
    curvature = LBFGSMemory(memory, coordinate_scales(problem))
    value, g = _smooth_part(problem, w)
    total = value + inner(strength, np.abs(w))
    for iteration in range(max_iter + 1):
        bound = dual_bound(problem, w) if iteration % BOUND_EVERY == 0 else -np.inf
        if progress.record(iteration, w, total, bound) or iteration == max_iter:
            return
        slope = minimum_norm_subgradient(w, g, strength)
        found = None
        while found is None:
            direction = -curvature.solve(slope)
            direction[direction * slope >= 0.0] = 0.0
            first = 1.0 if curvature.pairs else min(1.0, 1.0 / curvature.scaled_norm(slope))
            found = _search(problem, w, total, slope, direction, strength, first)
            if found is None and not curvature.pairs:
                return  # no descent above rounding error
            if found is None:
                curvature.pairs.clear()
        after, total, rest = found
        curvature.update(after - w, rest - g)
        w, g = after, rest


def _smooth_part(problem: RowProblem, w: Vector) -> tuple[float, Vector]:
    """Return the objective without its l1 part, and its gradient."""
    value, g = problem.risk.value_and_gradient(w)
    weights, l2 = problem.penalized(w), problem.penalty.l2
    problem.penalized(g)[:] += l2 * weights
    return value + 0.5 * l2 * inner(weights, weights), g


def minimum_norm_subgradient(w: Vector, g: Vector, strength: Vector) -> Vector:
    """Return the subgradient of minimum norm: 0 where l1 keeps a weight at 0."""
    at_zero = np.sign(g) * np.maximum(np.abs(g) - strength, 0.0)
    return np.where(w != 0.0, g + strength * np.sign(w), at_zero)


def _search(
    problem: RowProblem,
    w: Vector,
    total: float,
    slope: Vector,
    direction: Vector,
    strength: Vector,
    step: float,
) -> tuple[Vector, float, Vector] | None:
    """Return a point of the orthant with sufficient descent, its objective and smooth gradient."""
    orthant = np.where(w != 0.0, np.sign(w), -np.sign(slope))
    for _ in range(HALVINGS):
        after = w + step * direction
        after[(strength > 0.0) & (after * orthant <= 0.0)] = 0.0
        promised = inner(slope, after - w)
        if promised >= 0.0:
            return None
        value, g = _smooth_part(problem, after)
        new = value + inner(strength, np.abs(after))
        if new <= total + SUFFICIENT * promised:
            return after, new, g
        step *= 0.5
    return None
