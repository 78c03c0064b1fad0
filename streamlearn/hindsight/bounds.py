"""Lower bounds on the objective: planes ([Teo07] Lemmas 1 and 5) and dual values.

For slopes a_i and weights c_i of the rows, and g = sum c_i a_i x_i,

    J(w) >= - sum c_i l*(a_i, y_i) - Psi*(-g)    for every w,

for any a_i, with equality at the slopes of the optimum. With a free intercept the a_i must be
balanced, sum c_i a_i = 0, and under l1 no |g_j| may exceed the strength. The slopes at a w that is
not optimal violate this, so they are first moved into the feasible set. Like all values here,
bounds are exact up to rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.inner import inner
from streamlearn.losses import VectorLoss

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import Objective, Problem
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


def dual_bound(problem: Problem, w: Vector) -> float:
    """Return the dual value at the slopes of w, made feasible; costs one and a half passes."""
    scores = problem.row_risk.scores(w)
    slopes = np.asarray(problem.loss.slope(scores, problem.y))
    return dual_value(problem, balanced_slopes(problem, slopes) if problem.intercepts else slopes)


def dual_value(problem: Problem, slopes: Vector) -> float:
    """Return the dual value at balanced slopes, scaled down as far as l1 requires."""
    g = problem.penalized(problem.row_risk.combine_rows((problem.weights * slopes.T).T))
    bounds = [_value_at_duals(problem, slopes, g)] if problem.penalty.l2 > 0.0 else []
    top = float(np.abs(g).max(initial=0.0))
    if top > problem.penalty.l1 > 0.0:
        scale = problem.penalty.l1 / top * (1.0 - 1e-15)  # rounding must not exceed l1 either
        bounds.append(_value_at_duals(problem, scale * slopes, scale * g))
    elif not bounds:
        bounds.append(_value_at_duals(problem, slopes, g))
    return max(bounds)


def _value_at_duals(problem: Problem, slopes: Vector, g: Vector) -> float:
    conjugates = np.asarray(problem.loss.conjugate(slopes, problem.y))
    used = problem.weights > 0.0
    if not np.isfinite(conjugates[used]).all():
        return -math.inf
    return minus_conjugate(problem.penalty, g) - inner(problem.weights[used], conjugates[used])


def balanced_slopes(problem: Problem, slopes: Vector) -> Vector:
    """Return nearby slopes whose weighted sum is 0 and that are still slopes of the loss."""
    shares = problem.weights
    if not isinstance(problem.loss, VectorLoss):
        return _balanced_by_scaling(shares, slopes)
    if problem.loss.kind == "multitarget":
        centered: Vector = slopes - shares @ slopes
        return centered
    return _balanced_by_mixing(shares, slopes, problem.y.astype(int))


def _balanced_by_scaling(shares: Vector, slopes: Vector) -> Vector:
    """Scale down the sign with the larger sum: 0 is a slope of every loss, or a limit of slopes."""
    up = inner(shares, np.maximum(slopes, 0.0))
    down = inner(shares, np.maximum(-slopes, 0.0))
    if up == down:
        return slopes
    heavy = slopes > 0.0 if up > down else slopes < 0.0
    return np.where(heavy, slopes * (min(up, down) / max(up, down)), slopes)


def _balanced_by_mixing(shares: Vector, slopes: Vector, classes: Vector) -> Vector:
    """Mix slopes p - e_y of Softmax with r - e_y for one distribution r over the classes."""
    surplus = shares @ slopes
    truth = np.bincount(classes, shares, minlength=len(surplus))
    mean = truth + surplus
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(mean > 0.0, 1.0 - truth / mean, 0.0)
    share = min(1.0, max(0.0, float(needed.max())))
    if share == 0.0:
        return slopes
    toward = np.maximum(truth - (1.0 - share) * mean, 0.0) / share
    toward /= toward.sum()
    result = (1.0 - share) * slopes + share * toward
    result[np.arange(len(classes)), classes] -= share
    return result
