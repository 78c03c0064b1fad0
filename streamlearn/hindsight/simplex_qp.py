"""The quadratic program (12) of 004: a concave quadratic over the probability simplex.

An active-set method of its own, because the bundle methods ask for something that general solvers
do not give: one program after the other, each with one more plane, few of them with weight. Warm
started it takes a handful of Cholesky factorisations of the size of the support, about a
millisecond; an interior point method starts from nothing and factors all planes twenty times.
Whatever it returns is feasible, and says how far from the maximum it is at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector

# the smallest curvature a factorisation is given, of the largest: planes may depend on each other
RIDGE = 1e-12


def simplex_qp(H: Vector, d: Vector, x: Vector, tolerance: float) -> Vector:
    """The x >= 0 with sum x = 1 that minimizes 1/2 x'Hx - d'x, from a feasible `x`.

    H is positive semidefinite. Stops when the linear model says that no feasible point is better
    by more than `tolerance`, or when rounding lets nothing more be gained.

    >>> simplex_qp(np.eye(2), np.array([0.5, 0.0]), np.array([1.0, 0.0]), 1e-12)
    array([0.75, 0.25])
    """
    x = x.copy()
    gradient = H @ x - d
    # beside the curvature there may be none: then d says how far is far
    least = RIDGE * float(np.trace(H)) + 1e-3 * RIDGE * float(np.ptp(d)) + 1e-300
    ridge = least
    for _ in range(20 * len(x) + 100):
        best = int(np.argmin(gradient))
        if float(x @ gradient) - gradient[best] <= tolerance:
            break
        support = np.union1d(np.flatnonzero(x), [best])
        moved = _step(H, d, x, support, ridge)
        gradient_there = H @ moved - d
        # 1/2 (moved - x)'(gradients' sum) is the exact rise of a quadratic
        rise = 0.5 * float((moved - x) @ (gradient + gradient_there))
        if rise >= 0.0:
            if ridge > 1e6 * least or not np.any(moved != x):
                break
            ridge *= 100.0
            continue
        x, gradient = moved, gradient_there
    return x


def _step(H: Vector, d: Vector, x: Vector, support: Vector, ridge: float) -> Vector:
    """The minimizer over the faces of `support`, leaving those that the way there runs into."""
    x = x.copy()
    while len(support) > 1:
        target = _face(H, d, x, support, ridge)
        here = x[support]
        if target.min() >= 0.0:
            x[support] = target
            break
        down = target < 0.0
        ratio = np.where(down, here / np.where(down, here - target, 1.0), np.inf)
        at = int(np.argmin(ratio))
        here = np.maximum(here + ratio[at] * (target - here), 0.0)
        here[at] = 0.0
        x[support] = here
        support = np.delete(support, at)
    total = float(x.sum())
    return x / total if total > 0.0 else x


def _face(H: Vector, d: Vector, x: Vector, support: Vector, ridge: float) -> Vector:
    """The minimizer over sum x = 1 with the given support, of any sign.

    H + level 11' is the same function where the sum is 1. The ridge is centered at x, so that
    repeated steps go to the minimizer of H itself.
    """
    from scipy.linalg.lapack import dposv  # noqa: PLC0415 - a while that others don't pay

    block = H[np.ix_(support, support)]
    level = float(np.mean(np.diagonal(block))) + ridge
    sides = np.empty((len(support), 2), order="F")
    sides[:, 0] = 1.0
    sides[:, 1] = d[support] + ridge * x[support]
    while True:
        matrix = block + level
        matrix[np.diag_indices_from(matrix)] += ridge
        _, solved, info = dposv(matrix, sides)
        if info == 0:
            break
        ridge *= 100.0
        sides[:, 1] = d[support] + ridge * x[support]
    unit, free = solved[:, 0], solved[:, 1]
    target: Vector = free + unit * ((1.0 - free.sum()) / unit.sum())
    return target
