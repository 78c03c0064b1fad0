"""The proximal bundle method ([Do09] section 4, Algorithm 4), for penalties of little curvature.

The next w minimizes the planes plus Psi plus the mean of tau_i/2 |w - w_i|^2 over the iterations
so far. The tau_i follow the balancing heuristic. R, the assumed distance to the optimum, starts
small and grows by sqrt(2) whenever w reaches it ([Do09] section 3.4). The lower bound is that of
the plain bundle method, [Teo07] (12), on the same planes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.bundle import BundleRun

if TYPE_CHECKING:
    from streamlearn.hindsight.planes import Planes
    from streamlearn.hindsight.problem import Objective
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback, Solution


def proximal_bundle(
    problem: Objective,
    *,
    gap: float,
    max_iter: int | None = None,
    start: object = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimize the objective by the proximal bundle method."""
    run = BundleRun(
        problem, "proximal-bundle", gap=gap, max_iter=max_iter, start=start, callback=callback
    )
    curvature = ProximalTerm(problem.penalty.l2, run.w, run.planes)
    near, alpha = np.ones(1), np.ones(1)
    with run.progress:
        while run.add_plane():
            curvature.add(run.w, run.gradient, run.objective - problem.lowest)
            w, alpha = run.master.solve(np.append(alpha, 0.0), run.tolerance, run.best)
            if run.record(alpha):
                break
            near = np.append(near, 0.0)
            if run.redundant_planes:
                # planes this close add nothing new: step as the plain method does
                run.w = w
            else:
                run.w, near = run.master.solve(
                    near, run.tolerance, curvature.center, curvature.weight
                )
            near, alpha = run.planes.prune(near, alpha)
            curvature.widen(run.w)
    return run.progress.solution()


class ProximalTerm:
    """The proximal terms of a phase, combined into weight/2 |w - center|^2."""

    def __init__(self, l2: float, w: Vector, planes: Planes) -> None:
        self.l2 = l2
        self.origin = w
        self.planes = planes
        self.R = 0.0
        self._begin()

    def _begin(self) -> None:
        self.t = 0
        self.tau = 0.0
        self._sum = np.zeros_like(self.origin)

    def add(self, w: Vector, slope: Vector, excess: float) -> None:
        """Add the term of the iteration at w, where the risk has this slope.

        Algorithm 4 bounds |lambda w_t + a_t| by lambda R + |a_t|; here its exact value is used.
        """
        slope = slope.copy()
        slope[: self.planes.width] += self.l2 * w[: self.planes.width]
        steep = self._length(slope, 1.0 / self.planes.intercept_unit)
        if not self.R:
            # the optimum is at least as far as where the tangent reaches the lower bound
            self.R = excess / steep if excess > 0.0 and steep > 0.0 else 1.0
        self.t += 1
        known = self.l2 * self.t + self.tau
        tau = 0.5 * (math.hypot(known, steep / self.R) - known)
        self.tau += tau
        self._sum += tau * w

    def widen(self, w: Vector) -> None:
        """Begin a new phase with a larger R if w has reached the distance R."""
        if self._length(w - self.origin, self.planes.intercept_unit) >= self.R:
            self.R *= math.sqrt(2.0)
            self._begin()

    def _length(self, v: Vector, unit: float) -> float:
        """Return |v|, with the intercepts in their own unit."""
        square = v * v
        return math.sqrt(
            float(square[: self.planes.width].sum() + unit * square[self.planes.width :].sum())
        )

    @property
    def center(self) -> Vector:
        """The mean of the w_i, weighted by their tau_i."""
        return self._sum / self.tau if self.tau > 0.0 else self.origin

    @property
    def weight(self) -> float:
        """The mean of the tau_i."""
        return max(self.tau / self.t, 1e-12)
