"""A length scale for each coordinate, from the objective's curvature along it.

The first steps of quasi-Newton methods are equally long in all directions. With features of
different scale (an age beside a rate) they then need hundreds of iterations; in units of these
scales all coordinates have similar curvature.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import RowProblem
    from streamlearn.hindsight.risk import Vector

LEAST = 1e-12  # smallest curvature assumed for a coordinate, relative to the largest
MOST = 1e300  # the squares of very large numbers overflow


def coordinate_scales(problem: RowProblem) -> Vector:
    """Return 1 / sqrt of a bound on the curvature along each coordinate of the flat w."""
    bound = float(getattr(problem.loss, "curvature_bound", 1.0))
    bend = bound if 0.0 < bound < math.inf else 1.0
    curvature = bend * np.repeat(problem.risk.squares(), problem.outputs) + problem.penalty.l2
    whole = np.concatenate([curvature, np.full(problem.intercepts, bend)])
    top = min(float(whole.max()), MOST)
    result: Vector = 1.0 / np.sqrt(np.clip(whole, max(LEAST * top, 1.0 / MOST), MOST))
    return result
