"""The bundle method for regularized risk minimization, BMRM ([Teo07] Algorithm 1).

Each iteration makes one pass over the data, which adds a plane below the risk, and solves one small
program over all planes. Its minimizer is the next iterate, and its value is a lower bound on the
minimum ([Teo07] Lemma 1). For L2 the gap falls below epsilon after O(1/(lambda epsilon)) iterations
([Teo07] Theorem 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.master import MasterProblem
from streamlearn.hindsight.planes import Planes
from streamlearn.hindsight.solution import Progress

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import Objective
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback, Solution

# iterations if the caller sets no limit
LIMIT = 100_000
# tolerance of the programs, relative to the gap
SHARE = 1e-2
# redundant planes in a row before the rest of the gap is attributed to rounding
PATIENCE = 3
# height above the best objective beyond which a plane is useless, relative to the gap
FAR = 30.0
# how far rounding alone may raise the planes above the objective, relative to the objective
CONVEX = 1e-6


def bundle(
    problem: Objective,
    *,
    gap: float,
    max_iter: int | None = None,
    start: object = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimize the objective by the bundle method.

    The penalty is L2 (one quadratic program per iteration), L1 (one linear program per iteration),
    ElasticNet, or a Ball.
    """
    run = BundleRun(problem, "bundle", gap=gap, max_iter=max_iter, start=start, callback=callback)
    alpha = np.ones(1)
    with run.progress:
        while run.add_plane():
            w, alpha = run.master.solve(np.append(alpha, 0.0), run.tolerance, run.best)
            if run.record(alpha):
                break
            run.w = w
            (alpha,) = run.planes.prune(alpha)
    return run.progress.solution()


class BundleRun:
    """The state that bundle methods share: the planes, the best w so far, the stopping rule."""

    def __init__(
        self,
        problem: Objective,
        method: str,
        *,
        gap: float,
        max_iter: int | None,
        start: object,
        callback: Callback | None,
    ) -> None:
        self.problem = problem
        self.risk = problem.risk
        self.progress = Progress(problem, method, gap=gap, callback=callback)
        self.planes = Planes(problem.linear, problem.intercepts, problem.lowest)
        self.master = MasterProblem(self.planes, problem.penalty)
        self.w = self._better_start(problem.start(start))
        self.best = self.w
        self.iteration = 0
        self.limit = LIMIT if max_iter is None else max_iter
        self.objective = 0.0
        self.gradient: Vector = np.zeros(0)
        self.redundant_planes = 0
        # [Teo07] Theorem 2 needs every plane that is numerically meaningful, so the plain method
        # keeps almost all. Intercepts, which only planes bound, are erratic at first; and a steep
        # plane would block a proximal method.
        self.far_factor = FAR if problem.intercepts or method != "bundle" else 1e9

    def _better_start(self, w: Vector) -> Vector:
        """Return w, or 0 if that is better: a plane from very far away is all rounding error."""
        zero = np.zeros_like(w)
        if w.any() and not self.problem.objective(w) <= self.problem.objective(zero):
            return zero
        return w

    @property
    def tolerance(self) -> float:
        """The tolerance of the next program."""
        left = min(self.progress.objective, self.objective) - self.progress.lower_bound
        return SHARE * max(left, self.progress.gap) * 0.1**self.redundant_planes

    def add_plane(self) -> bool:
        """Add the plane at w, one pass over the data; return False at the gap or the limit.

        A plane far above all others would drown them in rounding error. In that case w moves
        halfway back to the best one, until its plane is usable.
        """
        while self.iteration < self.limit:
            value, self.gradient = self.risk.value_and_gradient(self.w)
            self.objective = value + self.problem.penalty.value(self.problem.penalized(self.w))
            self.iteration += 1
            enough = self.objective - self.progress.lower_bound <= self.progress.gap
            if not (enough or self._is_far(value)):
                break
            if self.progress.record(self.iteration, self.w, self.objective):
                return False
            self.w = 0.5 * (self.w + self.best)
        else:
            return False
        if self.objective < self.progress.objective:
            self.best = self.w
        if value - self.planes.value_at(self.w) <= 1e-14 * (1.0 + abs(value)):
            self.redundant_planes += 1
        else:
            self.redundant_planes = 0
        self.planes.add(self.w, value, self.gradient)
        return True

    def _is_far(self, value: float) -> bool:
        best = self.progress.objective
        return value > best + self.far_factor * (best - self.progress.lower_bound)

    def record(self, alpha: Vector, w: Vector | None = None, objective: float = 0.0) -> bool:
        """Record the bound that alpha certifies, and w; return whether to stop."""
        if w is None:
            w, objective = self.w, self.objective
        bound = self.master.bound(alpha, self.best)
        least = min(objective, self.progress.objective)
        if bound > least + CONVEX * (1.0 + abs(least)):
            raise ValueError(
                f"the planes are above {bound:g} everywhere, yet the objective was {least:g}: the "
                "risk is not convex, or its slope is not a subgradient"
            )
        stop = self.progress.record(self.iteration, w, objective, bound)
        return stop or self.redundant_planes > PATIENCE
