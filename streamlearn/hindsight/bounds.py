"""Lower bounds on the objective: planes ([Teo07] Lemmas 1 and 5) and dual values.

For slopes a_i and weights c_i of the rows, and g = sum c_i a_i x_i + linear,

    J(w) >= - sum c_i l*(a_i, y_i) - Psi*(-g)    for every w,

for any a_i, with equality at the slopes of the optimum. With a free intercept the a_i must be
balanced, sum c_i a_i = 0, and under l1 no |g_j| may exceed the strength. The slopes at a w that is
not optimal violate this, so they are first moved into the feasible set. Like all values here,
bounds are exact up to rounding.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.balancing import Balance, Unchanged, balance, conjugate_sum, slope_totals
from streamlearn.hindsight.inner import inner

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.hindsight.points import LazyPoint
    from streamlearn.hindsight.problem import Objective, Problem, RowProblem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.penalties import Penalty


def minus_conjugate(penalty: Penalty, g: Vector) -> float:
    """Return -Psi*(-g), the minimum over w of <g, w> + Psi(w), for Zero, L1, L2, ElasticNet."""
    excess = np.maximum(np.abs(g) - penalty.l1, 0.0)
    if penalty.l2 > 0.0:
        return -inner(excess, excess) / (2.0 * penalty.l2)
    return -math.inf if excess.any() else 0.0


def plane_bound(problem: Objective, w: Vector, value: float, gradient: Vector) -> float:
    """Minimize the tangent plane of the risk at w plus the penalty ([Teo07] Lemma 5).

    With a free intercept the minimum exists only if the intercept's slope is exactly 0.
    """
    if gradient[problem.size - problem.intercepts :].any():
        return -math.inf
    return (
        value - inner(gradient, w) + minus_conjugate(problem.penalty, problem.penalized(gradient))
    )


def dual_bound(problem: RowProblem, w: Vector) -> float:
    """Return the dual value at the slopes of w, made feasible; costs one and a half passes."""
    return dual_bound_at(problem, problem.risk.at(w))


def dual_bound_at(problem: RowProblem, point: LazyPoint) -> float:
    """Return the same at a point; costs half a pass less if its scores are cached."""
    risk = problem.risk
    change: Balance = Unchanged()
    if problem.intercepts:
        change = balance(problem.loss, risk.slope_totals(point))
    g = problem.penalized(risk.dual_gradient(point, change))
    linear = problem.penalized(problem.linear)
    return dual_value(problem.penalty, g, linear, partial(risk.conjugate, point, change))


def slopes_bound(problem: Problem, slopes: Vector) -> float:
    """Return the dual value at these slopes of the rows, made feasible; costs half a pass."""
    loss, shares, y = problem.loss, problem.weights, problem.y
    if problem.intercepts:
        slopes = balance(loss, slope_totals(loss, shares, slopes, y)).apply(slopes, y)
    g = problem.penalized(problem.risk.combine_rows((shares * slopes.T).T))
    linear = problem.penalized(problem.linear)
    return dual_value(
        problem.penalty, g, linear, lambda scale: conjugate_sum(loss, shares, scale * slopes, y)
    )


def dual_value(
    penalty: Penalty, g: Vector, linear: Vector, conjugate: Callable[[float], float]
) -> float:
    """Return the dual value at slopes, scaled down as far as l1 requires.

    g is the sum of c_i a_i x_i at balanced slopes, and `conjugate` the sum of c_i l*(s a_i, y_i)
    for a scale s.
    """
    scales = [1.0] if penalty.l2 > 0.0 else []
    if np.abs(g + linear).max(initial=0.0) > penalty.l1 > 0.0:
        room = penalty.l1 - np.where(g > 0.0, linear, -linear)
        used = (g != 0.0) & (np.abs(g + linear) > penalty.l1)
        scale = float((room[used] / np.abs(g[used])).min(initial=1.0))
        scales.append(scale * (1.0 - 1e-15))  # rounding must not exceed l1 either
    return max(minus_conjugate(penalty, s * g + linear) - conjugate(s) for s in scales or [1.0])
