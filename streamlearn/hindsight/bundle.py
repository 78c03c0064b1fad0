"""The bundle method for regularized risk minimization, BMRM (004, Algorithm 1).

Every iteration is one pass over the data, which gives one more plane below the risk, and one small
program over all planes, whose minimizer is looked at next and whose value is a lower bound on the
minimum (004, Lemma 1). For L2 the gap falls below epsilon after O(1/(lambda epsilon)) iterations
(004, Theorem 2).
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

# iterations if the caller names no limit
LIMIT = 100_000
# of the gap: how exactly the programs are solved
SHARE = 1e-2
# planes that say nothing new before the rest of the gap is taken for rounding
PATIENCE = 3
# of the gap: how high above the best objective a plane is of no use
FAR = 30.0
# of the objective: by how much rounding alone may raise the planes above it
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

    The penalty is L2 (a quadratic program an iteration), L1 (a linear one), ElasticNet, or a Ball.
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
    """What bundle methods share: the planes, the best so far, and when to stop."""

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
        self.planes = Planes(problem.size, problem.intercepts, problem.lowest)
        self.master = MasterProblem(self.planes, problem.penalty)
        self.w = self._better_start(problem.start(start))
        self.best = self.w
        self.iteration = 0
        self.limit = LIMIT if max_iter is None else max_iter
        self.objective = 0.0
        self.gradient: Vector = np.zeros(0)
        self.redundant_planes = 0
        # How far is too far: 004 Theorem 2 asks for every plane that has digits; intercepts, held
        # by planes alone, go anywhere at first; and a steep plane would hold a proximal method.
        self.far_factor = FAR if problem.intercepts or method != "bundle" else 1e9

    def _better_start(self, w: Vector) -> Vector:
        """The start, or 0 if that is better: a plane from very far away has no digits left."""
        zero = np.zeros_like(w)
        if w.any() and not self.problem.objective(w) <= self.problem.objective(zero):
            return zero
        return w

    @property
    def tolerance(self) -> float:
        """How exactly the next program is to be solved."""
        left = min(self.progress.objective, self.objective) - self.progress.lower_bound
        return SHARE * max(left, self.progress.gap) * 0.1**self.redundant_planes

    def add_plane(self) -> bool:
        """Add the plane at w: one pass over the data; False if that is enough, or one too many.

        A plane far above everything would leave no digits to the others: then w is brought half
        the way back to the best, until one is of use.
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
        """Note the bound that alpha certifies, and w if a better one is known; whether to stop."""
        if w is None:
            w, objective = self.w, self.objective
        bound = self.master.bound(alpha, self.best)
        least = min(objective, self.progress.objective)
        if bound > least + CONVEX * (1.0 + abs(least)):
            raise ValueError(
                f"the planes are above {bound:g} everywhere, yet the objective was {least:g}: the "
                "risk is not convex, or what it calls a slope is no subgradient"
            )
        stop = self.progress.record(self.iteration, w, objective, bound)
        return stop or self.redundant_planes > PATIENCE
