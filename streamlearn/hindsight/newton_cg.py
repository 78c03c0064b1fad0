"""Newton-CG for smooth losses and a quadratic penalty, which needs only sums over rows.

Conjugate gradients solve for the Newton step, each iteration with one product of the Hessian and a
vector, and stop where the model's error would exceed what they gain [Eisenstat96]. A line search
along the scores of the rows costs no pass. Near the optimum the gap falls quadratically.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.bounds import dual_bound_at, plane_bound
from streamlearn.hindsight.coordinate_scales import coordinate_scales
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.points import Segment, interpolated
from streamlearn.hindsight.solution import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.hindsight.points import LazyPoint
    from streamlearn.hindsight.problem import RowProblem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback, Solution

SUFFICIENT = 1e-4  # Armijo's share of the expected descent
HALVINGS = 60
PRODUCTS = 250  # with the Hessian, at most, for a step
LOOSEST = 0.3  # residual of the linear system, relative to the gradient


def newton_cg(
    problem: RowProblem,
    *,
    gap: float,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimize by truncated Newton steps, in units of `coordinate_scales`.

    The bound is [Teo07] Lemma 5, a by-product; with a free intercept it is the dual value at the
    slopes of w.
    """
    progress = Progress(problem, "newton-cg", gap=gap, callback=callback)
    with progress:
        _descend(problem, problem.start(start), progress, 1_000 if max_iter is None else max_iter)
    return progress.solution()


def _descend(problem: RowProblem, w: Vector, progress: Progress, max_iter: int) -> None:
    risk, penalty = problem.risk, problem.penalty
    scales = coordinate_scales(problem)
    point, first = risk.at(w), 0.0
    for iteration in range(max_iter + 1):
        value, gradient = risk.value_and_gradient_at(point)
        objective = value + penalty.value(problem.penalized(w))
        if problem.intercepts:
            bound = dual_bound_at(problem, point)
        else:
            bound = plane_bound(problem, w, value, gradient)
        if progress.record(iteration, w, objective, bound) or iteration == max_iter:
            return
        problem.penalized(gradient)[:] += penalty.l2 * problem.penalized(w)

        def product(v: Vector, point: LazyPoint = point) -> Vector:
            result = risk.hessian_product(point, scales * v)
            problem.penalized(result)[:] += penalty.l2 * problem.penalized(scales * v)
            return scales * result

        scaled = scales * gradient
        first = first or math.sqrt(inner(scaled, scaled))
        step = scales * conjugate_gradients(product, -scaled, first)
        found = _search(problem, w, point, step, objective, inner(gradient, step))
        if found is None:
            return  # no descent above rounding error
        w, point = found


def conjugate_gradients(product: Callable[[Vector], Vector], b: Vector, first: float) -> Vector:
    """Return about H^-1 b, the more exactly the smaller |b| is compared with `first`."""
    x, r = np.zeros_like(b), b.copy()
    p, square = r.copy(), inner(r, r)
    size = math.sqrt(square)
    enough = size * min(LOOSEST, math.sqrt(size / first) if first > 0.0 else 0.0)
    for _ in range(PRODUCTS):
        if math.sqrt(square) <= enough:
            break
        image = product(p)
        curvature = inner(p, image)
        if not curvature > 0.0:
            break  # flat to rounding error
        length = square / curvature
        x += length * p
        r -= length * image
        before, square = square, inner(r, r)
        p = r + (square / before) * p
    return x if x.any() else b


def _search(
    problem: RowProblem, w: Vector, point: LazyPoint, step: Vector, objective: float, slope: float
) -> tuple[Vector, LazyPoint] | None:
    """Return a w toward w + step with sufficient descent, and its point, or None."""
    if not slope < 0.0:
        return None
    risk, after = problem.risk, w + step
    end, length = risk.at(after), 1.0
    for _ in range(HALVINGS):
        segment = Segment(point, end, length)
        there = after if length == 1.0 else interpolated(w, after, length)
        total = risk.value_and_rise(segment)[0] + problem.penalty.value(problem.penalized(there))
        if total <= objective + SUFFICIENT * length * slope:
            return there, risk.between(segment, there)
        length *= 0.5
    return None
