"""The bundle method with a line search, which saves passes by searching along scores.

At first the minimizer of the planes is far from the optimum. So each iteration minimizes the
objective on the segment from the best w so far to that minimizer, and adds the next plane a little
beyond the minimum. Scores on the segment are combinations of those at its ends, so an iteration is
still one pass over the data: half for the scores at the new end, half for the gradient. This is
[Franc08] for any loss and penalty; the bound is that of [Teo07] Lemma 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.bundle import BundleRun
from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.points import Segment, interpolated

if TYPE_CHECKING:
    from streamlearn.hindsight.points import LazyPoint
    from streamlearn.hindsight.problem import LinearProblem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.sharded_risk import ShardedRisk
    from streamlearn.hindsight.solution import Callback, Solution

# how far beyond the minimum the next plane is added, relative to the segment
BEYOND = 0.1
# evaluations per line search, each of the losses only
TRIES = 12
# slope along the segment that counts as zero, relative to the first one
FLAT = 1e-2


def bundle_line_search(
    problem: LinearProblem,
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
    risk = problem.risk
    run.risk = current = LatestPoint(risk)
    best, at_best, objective = run.w, current.point(run.w), np.inf
    alpha = np.ones(1)
    with run.progress:
        while run.add_plane():
            if run.best is run.w:
                best, at_best, objective = run.w, current.point(run.w), run.objective
            w, alpha = run.master.solve(np.append(alpha, 0.0), run.tolerance, best)
            way = Line(problem, best, at_best, w, risk.at(w))
            step, there = way.search()
            if there < objective:
                objective = there
                best, at_best = way.at(step)
            if run.record(alpha, best, objective):
                break
            run.best = best
            # planes this close add nothing new: step as the plain method does
            ahead = 1.0 if run.redundant_planes else min(BEYOND, max(step, BEYOND**3))
            way = Line(problem, best, at_best, w, way.end)
            run.w, current.latest = way.at(ahead)
            current.w = run.w
            (alpha,) = run.planes.prune(alpha)
    return run.progress.solution()


class LatestPoint:
    """A risk that knows the latest w as a point of a search, whose scores are cached."""

    def __init__(self, risk: ShardedRisk[Any]) -> None:
        self.risk = risk
        self.size = risk.size
        self.w: Vector | None = None
        self.latest: LazyPoint

    def point(self, w: Vector) -> LazyPoint:
        """Return the point w."""
        if self.w is not w:
            self.w, self.latest = w, self.risk.at(w)
        return self.latest

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the value at w and a subgradient; half a pass if the scores are cached."""
        return self.risk.value_and_gradient_at(self.point(w))


class Line:
    """The segment from one w to another, and the objective on it."""

    def __init__(
        self, problem: LinearProblem, a: Vector, start: LazyPoint, b: Vector, end: LazyPoint
    ) -> None:
        self.problem = problem
        self.a, self.start = a, start
        self.b, self.end = b, end
        self._way = problem.penalized(b - a)

    def at(self, step: float) -> tuple[Vector, LazyPoint]:
        """Return the w there, and its point."""
        w = self.b if step == 1.0 else interpolated(self.a, self.b, step)
        return w, self.problem.risk.between(Segment(self.start, self.end, step), w)

    def objective(self, step: float) -> tuple[float, float]:
        """Return the objective there, and its slope along the segment; no pass."""
        penalty, way = self.problem.penalty, self._way
        value, rise = self.problem.risk.value_and_rise(Segment(self.start, self.end, step))
        w = self.problem.penalized(interpolated(self.a, self.b, step))
        rise += penalty.l2 * inner(w, way)
        # where a weight is 0, use the side that the segment enters
        side = np.where(w == 0.0, np.abs(way), np.sign(w) * way)
        return value + penalty.value(w), rise + penalty.l1 * float(side.sum())

    def search(self) -> tuple[float, float]:
        """Minimize the objective; return the step and the value."""
        low, high, tried = 0.0, 1.0, (0.0, np.inf)
        at_low = at_high = 0.0
        step = 1.0
        first = 0.0
        for _ in range(TRIES):
            value, rise = self.objective(step)
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
