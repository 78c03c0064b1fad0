"""The quadratic program (12) of [Teo07]: a concave quadratic over the probability simplex.

The bundle methods solve a sequence of programs, each with one more plane, few of them with weight.
A warm-started active-set method suits this better than a general solver: it takes a few Cholesky
factorizations of the size of the support, about a millisecond, whereas an interior-point method
starts cold and factors all planes twenty times. The result is always feasible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector

# smallest curvature of a factorization, relative to the largest: planes may be dependent
RIDGE = 1e-12


def simplex_qp(H: Vector, d: Vector, x: Vector, tolerance: float) -> Vector:
    """Minimize 1/2 x'Hx - d'x over x >= 0 with sum x = 1, starting from a feasible `x`.

    H is positive semidefinite. Stops when by the linear model no feasible point is better by more
    than `tolerance`, or when rounding error prevents further descent.

    >>> simplex_qp(np.eye(2), np.array([0.5, 0.0]), np.array([1.0, 0.0]), 1e-12)
    array([0.75, 0.25])
    """
    x = x.copy()
    gradient = H @ x - d
    # the curvature may be zero: then d gives the scale
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
    """Minimize over the face of `support`, dropping coordinates that reach 0 on the way."""
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
    """Minimize over sum x = 1 with the given support, of any sign.

    H + level 11' is the same function where the sum is 1. The ridge is centered at x, so that
    repeated steps converge to the minimizer of H itself.
    """
    from scipy.linalg.lapack import dposv  # noqa: PLC0415 - slow to import

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
