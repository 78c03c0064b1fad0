"""L-BFGS for smooth losses and a quadratic penalty ([Teo07] section 4.2), by scipy.

scipy's implementation uses BLAS threads, which spin while they wait and can take a second core.
They cannot be disabled from here, so `auto` chooses L-BFGS only for losses of several outputs, and
the regret of a daemon's binary learners never uses it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.hindsight.bounds import dual_bound, plane_bound
from streamlearn.hindsight.coordinate_scales import coordinate_scales
from streamlearn.hindsight.solution import Progress, Solution

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import RowProblem
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.solution import Callback

BOUND_EVERY = 5  # iterations between two bounds that cost passes of their own


class GapReachedError(Exception):
    """The gap is reached; leaves scipy's loop."""


def lbfgs(
    problem: RowProblem,
    *,
    gap: float,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
    memory: int = 10,
) -> Solution:
    """Minimize with a curvature model of the last `memory` steps, in units of `coordinate_scales`.

    The bound is [Teo07] Lemma 5, a by-product; with a free intercept it is the dual value at the
    slopes of w, computed every few iterations.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - half a second to import

    memory = int(number("lbfgs", "memory", memory, low=1.0))
    progress = Progress(problem, "lbfgs", gap=gap, callback=callback)
    seen: dict[str, Any] = {"iteration": 0}
    scales = coordinate_scales(problem)

    def objective(v: Vector) -> tuple[float, Vector]:
        w = v * scales
        value, gradient = problem.risk.value_and_gradient(w)
        seen.update(v=v.copy(), value=value, gradient=gradient.copy())
        weights = problem.penalized(w)
        problem.penalized(gradient)[:] += problem.penalty.l2 * weights
        return value + problem.penalty.value(weights), gradient * scales

    def record(xk: Vector) -> None:
        w = xk * scales
        if not np.array_equal(seen["v"], xk):
            objective(xk)
        value, iteration = seen["value"], seen["iteration"]
        seen["iteration"] += 1
        bound = -math.inf
        if not problem.intercepts:
            bound = plane_bound(problem, w, value, seen["gradient"])
        elif iteration % BOUND_EVERY == 0:
            bound = dual_bound(problem, w)
        total = value + problem.penalty.value(problem.penalized(w))
        if progress.record(iteration, w, total, bound):
            raise GapReachedError

    with progress:
        try:
            v = problem.start(start) / scales
            objective(v)
            record(v)
            limits: Any = {
                "maxcor": memory,
                "maxiter": 10_000 if max_iter is None else max_iter,
                "maxfun": 10_000_000,
                "maxls": 40,
                "ftol": 0.0,
                "gtol": 0.0,
            }
            minimize(objective, v, jac=True, method="L-BFGS-B", callback=record, options=limits)
        except GapReachedError:
            pass
        if problem.intercepts and progress.w is not None:
            progress.raise_bound(dual_bound(problem, progress.w))
    return progress.solution()
