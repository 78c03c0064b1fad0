"""The bundle method with a line search: where a cheap search along scores saves passes.

The minimizer of the planes is far off at first. So the objective is minimized on the way to it
from the best w so far, and the next plane is taken a little further on. The scores on the way are
mixtures of those at its ends: an iteration is one pass over the data as before, half of it for
the scores at the new end and half for the gradient. (Franc and Sonnenburg, *Optimized cutting
plane algorithm for support vector machines*, ICML 2008, for any loss and penalty; the bound is
that of 004, Lemma 1.)
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

# how far beyond the best on the way the next plane is taken, of the way
BEYOND = 0.1
# evaluations of a line search, each of the losses alone
TRIES = 12
# a slope along the way that is so much less than at its beginning is none
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

    Losses and penalties are those of `bundle`; it needs the rows, not only their risk.
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
                # nothing more is to be learned so near
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
    """A risk of rows that remembers the scores at one w."""

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
        """The value at w and a subgradient: half a pass where the scores are known."""
        if self.at is not w:
            self.at, self.scores = w, self.rows.scores(w)
        value, slope = self.value_and_slope(self.scores)
        return value, self.rows.combine_rows(slope)

    def line_search(self, a: Vector, at_a: Vector, b: Vector, at_b: Vector) -> tuple[float, float]:
        """Where on the way from a to b the objective is least, and its value there."""
        penalty, penalized = self.problem.penalty, self.problem.penalized
        way, along = penalized(b - a), at_b - at_a

        def objective(step: float) -> tuple[float, float]:
            value, slope = self.value_and_slope(_interpolated(at_a, at_b, step))
            w = penalized(_interpolated(a, b, step))
            value += penalty.value(w)
            rise = inner(np.ravel(slope), np.ravel(along)) + penalty.l2 * inner(w, way)
            # where a weight is 0, the side that the way goes to
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
                # where the tangents from both sides would be level, kept off the ends
                step = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        return tried


def _mean_loss(problem: Problem, scores: Vector) -> tuple[float, Vector]:
    """The weighted mean of the losses of the rows, and its slopes."""
    values = problem.loss.value(scores, problem.y)
    slopes = problem.loss.slope(scores, problem.y)
    return inner(problem.weights, values), (slopes.T * problem.weights).T


def _interpolated(a: Vector, b: Vector, share: float) -> Vector:
    """The point at this share of the way from a to b."""
    if share == 1.0:
        return b
    point: Vector = a + share * (b - a)
    return point
