"""A free intercept for SDCA: an outer search over problems with a fixed intercept.

F(t), the minimum of the objective at intercept t, is convex. A dual point a of the problem at t is
feasible at every other t', with value D + (t' - t) sum_i c_i a_i: a line below F. The crossing of
falling and rising lines bounds F from below and gives the next t (Kelley's cutting planes in one
dimension; [Teo07] Lemma 1).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamlearn.hindsight.epochs import DualEpochs, Measurement
    from streamlearn.hindsight.solution import Progress

INNER_GAP = 0.1  # the gap at one intercept, relative to the gap over all


class SupportLines:
    """Lines below a convex function of t; the first is the constant `level`.

    >>> lines = SupportLines(0.0)
    >>> lines.add(0.0, 1.0, -1.0)  # through (0, 1), falling
    >>> lines.lowest()
    (0.0, 1.0)
    >>> lines.add(2.0, 1.0, 0.5)
    >>> lines.lowest()
    (0.3333333333333333, 0.6666666666666667)
    """

    def __init__(self, level: float) -> None:
        self._heights = [level]  # at t = 0
        self._slopes = [0.0]

    def add(self, t: float, height: float, slope: float) -> None:
        """Add a line through (t, height)."""
        self._heights.append(height - slope * t)
        self._slopes.append(slope)

    def lowest(self) -> tuple[float, float]:
        """Return the minimum of the maximum of all lines, and a t that attains it."""
        heights, slopes = np.array(self._heights), np.array(self._slopes)
        level = float(heights[slopes == 0.0].max())
        down, up = slopes < 0.0, slopes > 0.0
        steep, high = slopes[down][:, None], heights[down][:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            cross = (high * slopes[up] - heights[up] * steep) / (slopes[up] - steep)
            height = max(level, float(cross.max(initial=-math.inf)))
            first = float(((height - heights[down]) / slopes[down]).max(initial=-math.inf))
            last = float(((height - heights[up]) / slopes[up]).min(initial=math.inf))
        if math.isinf(first) and math.isinf(last):
            return height, 0.0
        if math.isinf(first) or math.isinf(last):
            return height, last if math.isinf(first) else first
        return height, 0.5 * (first + last)


class InterceptSearch:
    """The search over intercepts: the lines so far, and the next intercept."""

    def __init__(self, epochs: DualEpochs, progress: Progress, t: float) -> None:
        self.epochs = epochs
        self.progress = progress
        self.lines = SupportLines(progress.lower_bound)
        self.t = self.best = t
        self.reach = max(1.0, abs(t))
        self.over = False

    def run(self) -> None:
        """Search until the gap over all intercepts is small enough."""
        aim = math.inf
        while not self.over and self.epochs.done < self.epochs.limit:
            self.epochs.ascent.set_offset(self.t)
            gap = self.progress.objective - self.progress.lower_bound
            aim = min(aim, max(INNER_GAP * gap, 0.25 * self.progress.gap))
            self.epochs.run_until(aim, self.record)
            last, self.t = self.t, self.next()
            if self.t == last:  # the lines are too loose to choose another t
                aim *= 0.5

    def record(self, found: Measurement) -> bool:
        """Record P and D; return whether to leave this intercept."""
        self.lines.add(self.t, found.dual, found.slope)
        if found.primal < self.progress.objective:
            self.best = self.t
        w = np.append(found.w, self.t)
        self.over = self.progress.record(found.epoch, w, found.primal, self.lines.lowest()[0])
        return self.over or found.dual >= self.progress.objective

    def next(self) -> float:
        """Return the minimizer of the lines; at first nearby, because a far loss may be huge."""
        t = self.lines.lowest()[1]
        if abs(t - self.best) <= self.reach:
            return t
        t = self.best + math.copysign(self.reach, t - self.best)
        self.reach *= 4.0
        return t
