"""The linear program (11) of [Teo07]: the minimum of the planes plus l1 |w|_1, by HiGHS.

It is solved in its dual form, with a weight alpha for each plane and a constraint for each
coordinate: |(A' alpha)_j| <= l1. Nearly all constraints hold anyway, so only violated ones are
added, and the program stays small whatever the dimension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.planes import Planes
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.structured.multivariate.loss import Indices

# how many violated constraints are added at a time
ADDED_AT_A_TIME = 200
# HiGHS' tolerances; constraints are scaled to |.| <= 1
EXACT = 1e-9
SLACK = 1e-7


class L1Program:
    """The program over a growing set of planes; it remembers the coordinates it has added."""

    def __init__(self, l1: float) -> None:
        self.l1 = l1
        self._chosen: set[int] = set()

    def solve(self, planes: Planes) -> tuple[Vector, Vector] | None:
        """Return the minimizer w and the weights of the planes, or None if HiGHS fails."""
        while True:
            coordinates = np.array(sorted(self._chosen), dtype=np.intp)
            solved = self._program(planes, coordinates)
            if solved is None:
                return None
            w, alpha = solved
            excess = np.abs(alpha @ planes.slopes) / self.l1 - 1.0 - SLACK
            excess[coordinates] = 0.0
            worst = np.argsort(-excess)[:ADDED_AT_A_TIME]
            worst = worst[excess[worst] > 0.0]
            if not len(worst):
                break
            self._chosen.update(worst.tolist())
        if len(self._chosen) > ADDED_AT_A_TIME:
            # dropped constraints come back if they are violated
            self._chosen = set(np.flatnonzero(w[: planes.width]).tolist())
        return w, alpha

    def _program(self, planes: Planes, chosen: Indices) -> tuple[Vector, Vector] | None:
        from scipy.optimize import linprog  # noqa: PLC0415 - half a second to import

        n = planes.count
        rows = planes.slopes[:, chosen].T / self.l1
        equal = np.vstack([np.ones(n), planes.free_slopes.T])
        level = np.zeros(len(equal))
        level[0] = 1.0
        result = linprog(
            -planes.offsets,
            A_ub=np.vstack([rows, -rows]) if len(chosen) else None,
            b_ub=np.ones(2 * len(chosen)) if len(chosen) else None,
            A_eq=equal,
            b_eq=level,
            bounds=(0.0, None),
            method="highs",
            options={"primal_feasibility_tolerance": EXACT, "dual_feasibility_tolerance": EXACT},
        )
        if result.status != 0:
            return None
        w = np.zeros(planes.width + planes.free_slopes.shape[1])
        prices = np.asarray(result.ineqlin.marginals) / self.l1
        # scipy's multipliers of a minimum are not positive
        w[chosen] = prices[: len(chosen)] - prices[len(chosen) :]
        w[planes.width :] = np.asarray(result.eqlin.marginals)[1:]
        alpha = np.maximum(np.asarray(result.x), 0.0)
        return w, alpha / alpha.sum()
