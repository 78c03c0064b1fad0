"""Newton's method for smooth losses, by coordinate descent on a working set of features.

As in liblinear [Yuan12], the loss is replaced by its quadratic model at w. Coordinate descent
minimizes the model plus the penalty, and a line search chooses the step.

The bound is the dual value at the slopes of the model's minimizer. On the working set they satisfy
the constraints of the dual as exactly as the model is minimized, and their error is that of the
model: of third order in the step. The slopes of the losses at w violate the constraints by an error
of second order; Celer [Massias18] extrapolates them for the same purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.bounds import dual_bound, slopes_bound
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.passes import derivatives
from streamlearn.hindsight.solution import Progress, Solution
from streamlearn.hindsight.working_set import WorkingSet, minimize
from streamlearn.losses import Loss

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback

SUFFICIENT = 1e-4  # Armijo's share of the expected descent
FLAT = 0.75  # share of the expected descent above which the model is too curved
HALVINGS = 60
FLOOR = 1e-6  # smallest curvature of a row, relative to the mean
TINY = 1e-200  # excess of a loss that counts as none
FEASIBLE = 0.2  # violation of the dual's constraints that is left, by its share of the gap


def newton(
    problem: Problem,
    *,
    gap: float,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimize successive models; the bound is the dual value at the slopes of their minimizers."""
    loss = problem.loss
    if not isinstance(loss, Loss):
        raise ValueError(f"newton supports losses of one output, not {loss!r}")
    progress = Progress(problem, "newton", gap=gap, callback=callback)
    with progress:
        w = problem.start(start)
        _descend(problem, loss, w, progress, 1_000 if max_iter is None else max_iter)
    if progress.w is not None and progress.objective - progress.lower_bound > gap:
        progress.raise_bound(dual_bound(problem, progress.w))
    return progress.solution()


@dataclass(frozen=True)
class NewtonPoint:
    """A w with the scores of the rows, the objective, and the slopes and curvatures of the rows."""

    w: Vector
    scores: Vector
    objective: float
    slopes: Vector
    curvatures: Vector


def _point(problem: Problem, loss: Loss, w: Vector, scores: Vector) -> NewtonPoint:
    """Evaluate the losses at w, whose scores are known."""
    slopes, curvatures = np.empty(problem.rows), np.empty(problem.rows)
    total = derivatives(loss, scores, problem.y, problem.weights, slopes, curvatures)
    total += problem.penalty.value(problem.penalized(w))
    return NewtonPoint(w, scores, total, slopes, curvatures)


def _descend(problem: Problem, loss: Loss, w: Vector, progress: Progress, max_iter: int) -> None:
    shares, l2, lowest = problem.weights, problem.penalty.l2, loss.lowest(problem.y)
    at = _point(problem, loss, w, problem.risk.scores(w))
    bound = dual_bound(problem, w) if w.any() else -np.inf
    working, reach = WorkingSet(problem), np.full(problem.rows, np.inf)
    for iteration in range(max_iter + 1):
        if progress.record(iteration, at.w, at.objective, bound) or iteration == max_iter:
            return
        g = problem.risk.combine_rows(shares * at.slopes)
        problem.penalized(g)[:] += l2 * problem.penalized(at.w)
        model = working.model(at.w, g)
        values = loss.value(at.scores, problem.y)
        h = shares * _row_curvatures(at, values - lowest, reach)
        h += shares * (FLOOR * float(h.sum()) or 1.0)
        model.bend(h)
        model.begin(g[working.coordinates], at.w[working.coordinates])
        size = float(np.abs(problem.penalized(at.w)).sum())
        minimize(model, FEASIBLE * progress.gap / max(size, 1e-300))
        d = np.zeros(problem.size)
        d[working.coordinates] = step = model.step()
        rise = model.scores(step)
        reach = np.abs(rise)
        found = _search(problem, loss, at, d, rise, inner(g, d))
        if found is None:
            return  # no descent above rounding error
        used = np.divide(model.h, shares, out=np.zeros_like(rise), where=shares > 0.0)
        bound = _bound(problem, loss, found, at.slopes + used * rise, progress.gap)
        at = found


def _row_curvatures(at: NewtonPoint, excess: Vector, reach: Vector) -> Vector:
    """Return the curvatures of the rows' models: none falls below the lowest value of the loss.

    Where a loss is steep but hardly curved, its own model would, and a single row could stretch the
    step a thousand times. A parabola of slope a and curvature h falls by a^2 / 2h, a loss by at
    most its `excess`. Rows that moved little in the last model, compared with the distance at which
    their tangent reaches the lowest value, keep their own curvature.
    """
    curvatures, steep = at.curvatures.copy(), (excess > TINY) & (at.slopes != 0.0)
    slopes = np.abs(at.slopes[steep])
    ratio = slopes / excess[steep]
    least = 0.5 * slopes * ratio * np.minimum(reach[steep] * ratio, 1.0)
    curvatures[steep] = np.maximum(curvatures[steep], least)
    return curvatures


def _bound(problem: Problem, loss: Loss, at: NewtonPoint, slopes: Vector, gap: float) -> float:
    """Return the dual value at these slopes if it can certify the gap, else minus infinity.

    Without the violated constraints it is known already; if it is too low, a pass is saved.
    """
    conjugates = loss.conjugate(slopes, problem.y)
    beyond = ~np.isfinite(conjugates)
    if beyond.any():  # a model is a parabola even where the loss is not
        slopes = np.where(beyond, at.slopes, slopes)
        conjugates = loss.conjugate(slopes, problem.y)
    w = problem.penalized(at.w)
    best = -inner(problem.weights, conjugates) - 0.5 * problem.penalty.l2 * inner(w, w)
    if not abs(at.objective - best) <= gap:
        return -np.inf
    return slopes_bound(problem, slopes)


def _search(
    problem: Problem, loss: Loss, at: NewtonPoint, d: Vector, rise: Vector, slope: float
) -> NewtonPoint | None:
    """Return a point toward w + d, or beyond it, with sufficient descent, or None."""
    size = float(np.abs(problem.penalized(at.w)).sum())

    def evaluate(step: float) -> tuple[NewtonPoint, float]:
        w = at.w + step * d
        growth = float(np.abs(problem.penalized(w)).sum()) - size
        promised = step * slope + problem.penalty.l1 * growth
        return _point(problem, loss, w, at.scores + step * rise), promised

    step = 1.0
    for _ in range(HALVINGS):
        after, promised = evaluate(step)
        if promised >= 0.0:
            return None
        if after.objective <= at.objective + SUFFICIENT * promised:
            break
        step *= 0.5
    else:
        return None
    # a parabola's minimum gives half the descent of its slope; if nearly all came, go farther
    while after.objective <= at.objective + FLAT * promised:
        farther, promised = evaluate(2.0 * step)
        if not farther.objective < after.objective:
            break
        after, step = farther, 2.0 * step
    return after
