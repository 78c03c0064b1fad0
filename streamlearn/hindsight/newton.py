"""Newton's method for smooth losses, by coordinate descent on a working set of weights.

As in liblinear [Yuan12], the loss is replaced by its quadratic model at w. Coordinate descent
minimizes the model plus the penalty, and a line search chooses the step.

The bound is the dual value at the slopes of the model's minimizer. On the working set they satisfy
the constraints of the dual as exactly as the model is minimized, and their error is that of the
model: of third order in the step. The slopes of the losses at w violate the constraints by an error
of second order; Celer [Massias18] extrapolates them for the same purpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.bounds import dual_bound, slopes_bound
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.row_models import row_models
from streamlearn.hindsight.solution import Progress, Solution
from streamlearn.hindsight.working_set import WorkingSet, minimize

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.row_models import NewtonPoint, RowModels
    from streamlearn.hindsight.solution import Callback

SUFFICIENT = 1e-4  # Armijo's share of the expected descent
FLAT = 0.75  # share of the expected descent above which the model is too curved
HALVINGS = 60
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
    rows = row_models(problem)
    progress = Progress(problem, "newton", gap=gap, callback=callback)
    with progress:
        w = problem.start(start)
        _descend(problem, rows, w, progress, 1_000 if max_iter is None else max_iter)
    if progress.w is not None and progress.objective - progress.lower_bound > gap:
        progress.raise_bound(dual_bound(problem, progress.w))
    return progress.solution()


def _descend(
    problem: Problem, rows: RowModels, w: Vector, progress: Progress, max_iter: int
) -> None:
    shares, l2 = problem.weights, problem.penalty.l2
    at = rows.at(w, problem.risk.scores(w))
    bound = dual_bound(problem, w) if w.any() else -np.inf
    working = WorkingSet(problem)
    for iteration in range(max_iter + 1):
        if progress.record(iteration, at.w, at.objective, bound) or iteration == max_iter:
            return
        g = problem.risk.combine_rows((shares * at.slopes.T).T) + problem.linear
        problem.penalized(g)[:] += l2 * problem.penalized(at.w)
        model = working.model(at.w, g)
        rows.bend(model, at)
        model.begin(g[working.coordinates], at.w[working.coordinates])
        size = float(np.abs(problem.penalized(at.w)).sum())
        minimize(model, FEASIBLE * progress.gap / max(size, 1e-300))
        d = np.zeros(problem.size)
        d[working.coordinates] = step = model.step()
        rise = model.scores(step)
        found = _search(problem, rows, at, d, rise, inner(g, d))
        if found is None:
            return  # no descent above rounding error
        bound = _bound(problem, found, at.slopes + rows.changes(model, rise), progress.gap)
        at = found


def _bound(problem: Problem, at: NewtonPoint, slopes: Vector, gap: float) -> float:
    """Return the dual value at these slopes if it can certify the gap, else minus infinity.

    Without the violated constraints it is known already; if it is too low, a pass is saved.
    """
    conjugates = problem.loss.conjugate(slopes, problem.y)
    beyond = ~np.isfinite(conjugates)
    if beyond.any():  # a model is a parabola even where the loss is not
        slopes[beyond] = at.slopes[beyond]
        conjugates = problem.loss.conjugate(slopes, problem.y)
    w = problem.penalized(at.w)
    best = -inner(problem.weights, conjugates) - 0.5 * problem.penalty.l2 * inner(w, w)
    if not abs(at.objective - best) <= gap:
        return -np.inf
    return slopes_bound(problem, slopes)


def _search(
    problem: Problem, rows: RowModels, at: NewtonPoint, d: Vector, rise: Vector, slope: float
) -> NewtonPoint | None:
    """Return a point toward w + d, or beyond it, with sufficient descent, or None."""
    size = float(np.abs(problem.penalized(at.w)).sum())

    def evaluate(step: float) -> tuple[NewtonPoint, float]:
        w = at.w + step * d
        growth = float(np.abs(problem.penalized(w)).sum()) - size
        promised = step * slope + problem.penalty.l1 * growth
        return rows.at(w, at.scores + step * rise), promised

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
