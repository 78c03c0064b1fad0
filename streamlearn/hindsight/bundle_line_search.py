"""The bundle method with a line search, which saves passes by searching along scores.

At first the minimizer of the planes is far from the optimum. So each iteration minimizes the
objective on the segment from the best w so far to that minimizer, and adds the next plane a little
beyond the minimum. Scores on the segment are combinations of those at its ends, so an iteration is
still one pass over the data: half for the scores at the new end, half for the gradient. This is
[Franc08] for any loss and penalty; the bound is that of [Teo07] Lemma 1.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.bundle import BundleRun
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.structured.multivariate.problem import MultivariateProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback, Solution

# how far beyond the minimum the next plane is added, relative to the segment
BEYOND = 0.1
# evaluations per line search, each of the losses only
TRIES = 12
# slope along the segment that counts as zero, relative to the first one
FLAT = 1e-2


def bundle_line_search(
    problem: Problem | MultivariateProblem,
    *,
    gap: float,
    max_iter: int | None = None,
    start: object = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimize the objective by the bundle method with a line search.

    It supports the losses and penalties of `bundle`, and needs the rows, not only their risk.
    """
    run = BundleRun(
        problem, "bundle-ls", gap=gap, max_iter=max_iter, start=start, callback=callback
    )
    cached = ScoreCachingRisk(problem)
    run.risk = cached
    best, at_best, objective = run.w, cached.scores, np.inf
    alpha = np.ones(1)
    with run.progress:
        while run.add_plane():
            if run.best is run.w:
                best, at_best, objective = run.w, cached.scores, run.objective
            w, alpha = run.master.solve(np.append(alpha, 0.0), run.tolerance, best)
            at_w = cached.rows.scores(w)
            step, there = cached.line_search(best, at_best, w, at_w)
            if there < objective:
                best, objective = _interpolated(best, w, step), there
                at_best = _interpolated(at_best, at_w, step)
            if run.record(alpha, best, objective):
                break
            run.best = best
            if run.redundant_planes:
                # planes this close add nothing new
                run.w, cached.scores = w, at_w
            else:
                ahead = min(BEYOND, max(step, BEYOND**3))
                run.w, cached.scores = (
                    _interpolated(best, w, ahead),
                    _interpolated(at_best, at_w, ahead),
                )
            cached.at = run.w
            (alpha,) = run.planes.prune(alpha)
    return run.progress.solution()


class ScoreCachingRisk:
    """A risk of rows that caches the scores at one w."""

    def __init__(self, problem: Problem | MultivariateProblem) -> None:
        self.problem = problem
        self.size = problem.size
        self.value_and_slope: Callable[[Vector], tuple[float, Vector]]
        if isinstance(problem, MultivariateProblem):
            self.rows = problem.data.row_risk
            self.value_and_slope = problem.labeled_loss.value_and_slope
        else:
            self.rows = problem.row_risk
            self.value_and_slope = partial(_mean_loss, problem)
        self.at: Vector | None = None
        self.scores: Vector = np.zeros(0)

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the value at w and a subgradient; half a pass if the scores are cached."""
        if self.at is not w:
            self.at, self.scores = w, self.rows.scores(w)
        value, slope = self.value_and_slope(self.scores)
        return value, self.rows.combine_rows(slope)

    def line_search(self, a: Vector, at_a: Vector, b: Vector, at_b: Vector) -> tuple[float, float]:
        """Minimize the objective on the segment from a to b; return the step and the value."""
        penalty, penalized = self.problem.penalty, self.problem.penalized
        way, along = penalized(b - a), at_b - at_a

        def objective(step: float) -> tuple[float, float]:
            value, slope = self.value_and_slope(_interpolated(at_a, at_b, step))
            w = penalized(_interpolated(a, b, step))
            value += penalty.value(w)
            rise = inner(np.ravel(slope), np.ravel(along)) + penalty.l2 * inner(w, way)
            # where a weight is 0, use the side that the segment enters
            side = np.where(w == 0.0, np.abs(way), np.sign(w) * way)
            return value, rise + penalty.l1 * float(side.sum())

        low, high, tried = 0.0, 1.0, (0.0, np.inf)
        at_low = at_high = 0.0
        step = 1.0
        first = 0.0
        for _ in range(TRIES):
            value, rise = objective(step)
            if value < tried[1]:
                tried = (step, value)
            first = first or abs(rise)
            if (rise <= 0.0 and step == 1.0) or abs(rise) <= FLAT * first:
                break
            if rise < 0.0:
                low, at_low = step, rise
            else:
                high, at_high = step, rise
            step = 0.5 * (low + high)
            if at_low < 0.0 < at_high:
                # interpolate the slopes to zero, away from both ends
                step = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        return tried


def _mean_loss(problem: Problem, scores: Vector) -> tuple[float, Vector]:
    """Return the weighted mean of the rows' losses, and its slopes."""
    values = problem.loss.value(scores, problem.y)
    slopes = problem.loss.slope(scores, problem.y)
    return inner(problem.weights, values), (slopes.T * problem.weights).T


def _interpolated(a: Vector, b: Vector, share: float) -> Vector:
    """Return a + share (b - a)."""
    if share == 1.0:
        return b
    point: Vector = a + share * (b - a)
    return point
