"""Newton's method for smooth losses, by coordinate descent on a working set of features.

As in liblinear [Yuan12], the loss is replaced by its quadratic model at w. Coordinate descent
minimizes the model plus the penalty, and a line search chooses the step. The working set consists
of the features with non-zero weights and those with the largest subgradients, as in Celer
[Massias18]. Convergence is quadratic near the optimum, also that of the dual bound; the bounds of
first-order methods lag far behind their objectives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from streamlearn.hindsight.bounds import balanced_slopes, dual_value
from streamlearn.hindsight.coordinate_descent import ColumnMatrix
from streamlearn.hindsight.extrapolation import POINTS, extrapolated
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.owlqn import minimum_norm_subgradient
from streamlearn.hindsight.solution import Progress, Solution
from streamlearn.losses import Huber, Loss

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback

SUFFICIENT = 1e-4  # Armijo's share of the expected descent
FLAT = 0.75  # share of the expected descent above which the model is too curved
HALVINGS = 60
FLOOR = 1e-6  # smallest curvature of a row, relative to the mean
EPOCHS = 60  # over the coordinates, at most, before the model is rebuilt
SHARE = 0.05  # of the largest slope of an epoch; below it the model counts as minimized
FEW = 200  # features added at a time, or as many as are in the set


def newton(
    problem: Problem,
    *,
    gap: float,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimize successive models; the bound is the dual value at the slopes of each w."""
    progress = Progress(problem, "newton", gap=gap, callback=callback)
    with progress:
        w = problem.start(start)
        _descend(problem, w, progress, 1_000 if max_iter is None else max_iter)
    return progress.solution()


def _descend(problem: Problem, w: Vector, progress: Progress, max_iter: int) -> None:
    loss, y, shares = problem.loss, problem.y, problem.weights
    if not isinstance(loss, Loss):
        raise ValueError(f"newton supports losses of one output, not {loss!r}")
    l1, l2 = np.zeros(problem.size), np.zeros(problem.size)
    problem.penalized(l1)[:] = problem.penalty.l1
    problem.penalized(l2)[:] = problem.penalty.l2
    columns = ColumnMatrix(column_matrix(problem))
    for iteration in range(max_iter + 1):
        scores = problem.row_risk.scores(w)
        slopes = np.asarray(loss.slope(scores, y))
        total = _objective(problem, w, scores)
        bound = dual_value(
            problem, balanced_slopes(problem, slopes) if problem.intercepts else slopes
        )
        if progress.record(iteration, w, total, bound) or iteration == max_iter:
            return
        g = problem.row_risk.combine_rows(shares * slopes) + l2 * w
        chosen = _working_set(w, g, l1)
        h = shares * _row_curvatures(loss, scores, y, slopes)
        h += shares * (FLOOR * float(h.sum()) or 1.0)
        d = _minimize_model(problem, columns, chosen, QuadraticModel(g, h, l1, l2, w))
        found = _search(problem, w, d, scores, total, inner(g, d), l1)
        if found is None:
            return  # no descent above rounding error
        w = found


class QuadraticModel(NamedTuple):
    """The quadratic model of the loss at w, and the penalty."""

    g: Vector
    h: Vector
    l1: Vector
    l2: Vector
    w: Vector

    def value(self, d: Vector, moved: Vector) -> float:
        """Return the model's rise from w to w + d; `moved` holds h_i <x_i, d>."""
        used = self.h > 0.0
        curved = inner(moved[used] / self.h[used], moved[used]) + inner(self.l2 * d, d)
        after = np.abs(self.w + d) - np.abs(self.w)
        return inner(self.g, d) + 0.5 * curved + inner(self.l1, after)


def _minimize_model(
    problem: Problem, columns: ColumnMatrix, chosen: Any, model: QuadraticModel
) -> Vector:
    """Return the step d that minimizes the model over the chosen coordinates."""
    d, moved = np.zeros(problem.size), np.zeros(problem.rows)
    curvatures = columns.curvatures(chosen, model.h, model.l2)
    first, points = 0.0, [d[chosen]]
    for _ in range(EPOCHS):
        left = columns.descend(chosen, curvatures, *model, d, moved)
        first = max(first, left)
        if left <= SHARE * first:
            break
        points.append(d[chosen])
        if len(points) == POINTS:
            leap = np.zeros(problem.size)
            leap[chosen] = extrapolated(points)
            there = model.h * problem.row_risk.scores(leap)
            if model.value(leap, there) < model.value(d, moved):
                d, moved = leap, there
            points = [d[chosen]]
    return d


def column_matrix(problem: Problem) -> Any:
    """Return the rows as CSC, with a column of ones for an intercept."""
    parts = [scipy.sparse.csc_array(problem.X)]
    if problem.intercepts:
        parts.append(scipy.sparse.csc_array(np.ones((problem.rows, 1))))
    return scipy.sparse.hstack(parts, format="csc") if len(parts) > 1 else parts[0]


def _row_curvatures(loss: Loss, scores: Vector, y: Vector, slopes: Vector) -> Vector:
    """Return the curvature of each row's model.

    Far from its label Huber is linear, and its own model has no minimum. There the parabola that
    touches Huber from above is used, as in iteratively reweighted least squares.
    """
    curvatures: Vector = np.asarray(loss.curvature(scores, y))
    if isinstance(loss, Huber):
        away = scores - y
        np.divide(slopes, away, out=curvatures, where=away != 0.0)
    return curvatures


def _objective(problem: Problem, w: Vector, scores: Vector) -> float:
    losses = np.asarray(problem.loss.value(scores, problem.y))
    return inner(problem.weights, losses) + problem.penalty.value(problem.penalized(w))


def _working_set(w: Vector, g: Vector, l1: Vector) -> Any:
    """Return the coordinates that may move: the non-zero ones, and the steepest of the others."""
    ask = np.abs(minimum_norm_subgradient(w, g, l1))
    held = w != 0.0
    ask[held] = 0.0
    room = max(FEW, int(held.sum()))
    if np.count_nonzero(ask) > room:
        ask[ask < np.partition(ask, -room)[-room]] = 0.0
    return np.flatnonzero(held | (ask > 0.0))


def _search(
    problem: Problem,
    w: Vector,
    d: Vector,
    scores: Vector,
    total: float,
    slope: float,
    l1: Vector,
) -> Vector | None:
    """Return a point toward w + d, or beyond it, with sufficient descent, or None."""
    rise = problem.row_risk.scores(d)

    def evaluate(step: float) -> tuple[Vector, float, float]:
        after = w + step * d
        promised = step * slope + inner(l1, np.abs(after) - np.abs(w))
        return after, promised, _objective(problem, after, scores + step * rise)

    step = 1.0
    for _ in range(HALVINGS):
        after, promised, reached = evaluate(step)
        if promised >= 0.0:
            return None
        if reached <= total + SUFFICIENT * promised:
            break
        step *= 0.5
    else:
        return None
    # a parabola's minimum gives half the descent of its slope; if nearly all came, go farther
    while reached <= total + FLAT * promised:
        farther, promised, there = evaluate(2.0 * step)
        if not there < reached:
            break
        after, reached, step = farther, there, 2.0 * step
    return after
