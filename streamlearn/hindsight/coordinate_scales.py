"""How far one can go along each coordinate before the objective has bent by one.

Steps of methods that know the curvature by their last steps alone are equally long in all
directions at first. Features of different size (an age beside a rate) make that hundreds of
iterations; measured by these widths the coordinates are alike.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.risk import Vector

LEAST = 1e-12  # of the largest curvature: what a coordinate is given that has hardly any
MOST = 1e300  # squares of numbers that are very large overflow


def coordinate_scales(problem: Problem) -> Vector:
    """1 / sqrt of a bound on the curvature along each coordinate of the flat w."""
    bound = float(getattr(problem.loss, "curvature_bound", 1.0))
    bend = bound if 0.0 < bound < math.inf else 1.0
    curvature = bend * np.repeat(mean_squares(problem), problem.outputs) + problem.penalty.l2
    whole = np.concatenate([curvature, np.full(problem.intercepts, bend)])
    top = min(float(whole.max()), MOST)
    result: Vector = 1.0 / np.sqrt(np.clip(whole, max(LEAST * top, 1.0 / MOST), MOST))
    return result


def mean_squares(problem: Problem) -> Vector:
    """The weighted mean of each feature's square."""
    X, weights = problem.X, problem.weights
    found: Vector
    with np.errstate(over="ignore"):
        if hasattr(X, "indptr"):
            data = X.data.astype(float, copy=False)
            squares = np.repeat(weights, np.diff(X.indptr)) * data * data
            found = np.zeros(problem.features)
            np.add.at(found, X.indices, squares)
        else:
            found = np.einsum("ij,ij,i->j", X, X, weights)
    return found
