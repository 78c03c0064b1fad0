"""The epochs of SDCA at one intercept: their start, and when the gap is measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamlearn.hindsight.dual_problem import DualProblem
from streamlearn.hindsight.dual_steps import BatchSteps, SingleSteps
from streamlearn.hindsight.extrapolation import POINTS, extrapolated
from streamlearn.hindsight.spectral import beta, unit_norm
from streamlearn.losses import Loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.problem import Problem

CHUNK = 1 << 20  # numbers between two checks for Ctrl-C: some milliseconds
ROUNDING = 1e-14  # of a gap, relative to the two values it is the difference of
PLAIN_EPOCHS = 20  # epochs before extrapolation is tried
GROWTH = 2  # the gap is measured at least whenever the number of epochs has grown by this factor
WARM_START_SCALES = (*(0.5**k for k in range(8)), 0.0)


class Measurement(NamedTuple):
    """P at w, and D at a dual point with mean slope `slope`."""

    epoch: int
    w: Array
    primal: float
    dual: float
    slope: float


class DualEpochs:
    """The dual variables of a problem, updated by whole epochs."""

    def __init__(
        self,
        problem: Problem,
        *,
        batch: int,
        update: str,
        average: bool,
        seed: int,
        limit: int,
    ) -> None:
        self.problem = problem
        self.limit = limit
        self.done = 0
        loss, penalty = problem.loss, problem.penalty
        if not isinstance(loss, Loss):
            raise ValueError(f"sdca supports losses of one output, not {loss!r}")
        parts = (problem.matrix, loss, problem.y, problem.weights, penalty.l1, penalty.l2)
        live = int(np.count_nonzero(problem.weights))
        batch = min(batch, live)
        self.ascent: SingleSteps | BatchSteps
        if batch == 1:
            self.ascent = SingleSteps(*parts, seed=seed, averaged=average)
        else:
            safe_beta = 1.0 if update == "naive" else beta(batch, live, unit_norm(problem.matrix))
            self.ascent = BatchSteps(
                *parts, size=batch, update=update, safe_beta=safe_beta, seed=seed, averaged=average
            )
        self._averaged_dual = DualProblem(*parts) if average else None
        # naive batches and averages follow the paper exactly, so they are not extrapolated
        self._extrapolates = update != "naive" and not average
        self._average_start = 0
        self._count = 0  # epochs at this intercept
        self._points: list[Array] = []
        entries = getattr(problem.X, "nnz", problem.rows * problem.features)
        self._chunk = max(1, CHUNK * problem.rows // max(entries, problem.rows))
        self._gap_ratio = 0.5  # measured gap / estimated gap, the last time it was measured

    def run_until(self, gap: float, record: Callable[[Measurement], bool]) -> None:
        """Run epochs until P - D <= gap, or `record` returns True, or the limit is reached."""
        best, bound = math.inf, -math.inf
        began, unasked = self.done, self.done + 2
        self._count, self._points = 0, []
        while self.done < self.limit:
            self.done += 1
            self._epoch()
            wanted = self._gap_ratio * self.ascent.estimate <= gap
            if not wanted and self.done < unasked and self.done < self.limit:
                continue
            unasked = began + GROWTH * (self.done - began)
            found = self._measure()
            if not (math.isfinite(found.primal) and math.isfinite(found.dual)):
                return  # overflow: more epochs would not help
            best, bound = min(best, found.primal), max(bound, found.dual)
            if self.ascent.estimate > 0.0:
                self._gap_ratio = min(max((best - bound) / self.ascent.estimate, 0.01), 1.0)
            rounding = ROUNDING * (abs(best) + abs(bound))
            if record(found) or best - bound <= max(gap, rounding):
                return

    def _epoch(self) -> None:
        """Run an epoch; after many, repeat one order and extrapolate from the results."""
        extrapolating = self._extrapolates and self._count >= PLAIN_EPOCHS
        self.ascent.begin(again=extrapolating and bool(self._points))
        while not self.ascent.run(self._chunk):
            pass
        self._count += 1
        if extrapolating:
            self._points.append(self.ascent.duals)
            if len(self._points) == POINTS:
                self._extrapolate()
                self._points = []

    def _extrapolate(self) -> None:
        """Move to the extrapolated duals if D is larger there."""
        ascent, last = self.ascent, self._points[-1]
        before = ascent.value_at_scale(1.0)
        (ascent.duals,) = extrapolated(self._points)
        ascent.replace_infeasible(last)
        self._pass(ascent.rebuild)
        if not ascent.value_at_scale(1.0) > before:
            ascent.duals = last
            self._pass(ascent.rebuild)

    def _measure(self) -> Measurement:
        """Measure P and D; with averaged duals, return the better of both of each."""
        found = self._values(self.ascent)
        if self._averaged_dual is None:
            return found
        self._averaged_dual.duals = self.ascent.averages()
        self._averaged_dual.set_offset(self.ascent.offset)
        self._pass(self._averaged_dual.rebuild)
        mean = self._values(self._averaged_dual)
        if self.done >= 2 * self._average_start:
            self.ascent.restart_average()
            self._average_start = self.done
        upper = min(found, mean, key=lambda each: each.primal)
        lower = max(found, mean, key=lambda each: each.dual)
        return Measurement(self.done, upper.w, upper.primal, lower.dual, lower.slope)

    def _values(self, dual: DualProblem) -> Measurement:
        self._pass(dual.measure)
        return Measurement(self.done, dual.w, *dual.values(), dual.slope)

    def _pass(self, part: Callable[[int, int], None]) -> None:
        """Pass over the rows in chunks, so that it can be interrupted."""
        for first in range(0, self.problem.rows, self._chunk):
            part(first, min(first + self._chunk, self.problem.rows))

    def warm_start(self, w: Array, t: float, known: Array) -> None:
        """Set the duals: `known` for the first rows, slopes at `w` and intercept t for the others.

        Slopes at a kink are arbitrary, so the duals are then scaled to maximize D.
        """
        ascent = self.ascent
        ascent.set_offset(t)
        self._pass(lambda first, stop: ascent.set_slopes_at(first, stop, w))
        ascent.duals = np.concatenate([known, ascent.duals[len(known) :]])[: self.problem.rows]
        ascent.replace_infeasible(np.zeros(self.problem.rows))
        self._pass(ascent.rebuild)
        share = max(WARM_START_SCALES, key=ascent.value_at_scale)
        if share < 1.0:
            ascent.duals = share * ascent.duals
            self._pass(ascent.rebuild)
