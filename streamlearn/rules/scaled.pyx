"""Rules that shrink all weights together: w = scale * v ([Do09], and the baselines of [Xiao10]).

A step  w <- project(shrink w - step slope x)  changes one scalar and the slots of the event. |w|^2
is updated by  |a w + b x|^2 = a^2 |w|^2 + 2 a b <w, x> + b^2 |x|^2  and recomputed from time to
time, so projecting on a ball costs nothing extra.
"""

from libc.math cimport INFINITY, NAN, fabs, sqrt

from streamlearn.core.row cimport Row, dot
from streamlearn.rules.recorded_steps cimport RecordedSteps

from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

import numpy as np


cdef class Scaled(RecordedSteps):
    """A rule whose weights are a scalar times a vector."""

    fields = (PerSlot("vector", merge="average", flips_sign=True),)
    scalar_merges = {
        "t": "mean", "scale": "max", "square": "derived", "peak": "derived", "changes": "derived",
        "largest_gradient": "max", "bound_sum": "mean",
    }
    scalars = ("t", "scale", "square", "peak", "changes", "largest_gradient", "bound_sum")

    def start(self):
        self.scale = 1.0
        self.l2 = self.penalty.l2

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.scale * self.cells[j]

    cdef double score(self, Row* row) noexcept nogil:
        return self.scale * dot(self.cells, 1, row.slot, row.value, row.n)

    def scoring(self):
        """Return how `predict` computes a score."""
        columns = {"weight": self.table.copy_columns(0, 1, self.n)[:, 0]}
        return {"kind": "lanes", "factor": self.scale, "columns": columns}

    cdef double query(self, Row* row) noexcept nogil:
        """Return the score and cache it for `measure`, if this row is learned next."""
        self.cached_slots = row.slot
        self.cached_score = Scaled.score(self, row)
        return self.cached_score

    cdef void measure(self, Row* row, double slope) noexcept nogil:
        """Set <w, slope x> and |slope x|^2 for `move` and `gradient_norm`."""
        if self.cached_slots != row.slot:
            self.query(row)
        self.cached_slots = NULL
        self.dot = self.cached_score * slope
        self.length = row.square * slope * slope

    cdef double gradient_norm(self) noexcept nogil:
        """Return |l2 w + slope x| for the row measured last."""
        cdef double square = self.l2 * (self.l2 * self.square + 2.0 * self.dot) + self.length
        return sqrt(square) if square > 0.0 else 0.0

    cdef void move(
        self, Row* row, double slope, double step, double shrink, double radius
    ) noexcept nogil:
        """Set w to project(shrink w - step slope x), for the row measured last."""
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef double m, square
        cdef Py_ssize_t i, j
        if shrink == 0.0:
            for j in range(self.n):
                self.cells[j] = 0.0
            self.scale = 1.0
            self.square = 0.0
            self.dot = 0.0
        else:
            self.scale *= shrink
        m = step * slope / self.scale
        for i in range(row.n):
            cells[slot[i]] -= m * value[i]
        square = shrink * (shrink * self.square - 2.0 * step * self.dot)
        square += step * step * self.length
        self.square = square if square > 0.0 else 0.0
        if self.square > self.peak:
            self.peak = self.square
        self.changes += 1.0
        if self.changes > 64.0 + self.n or self.square < 1e-4 * self.peak:
            self.refresh()
        if self.square > radius * radius:
            self.scale *= radius / sqrt(self.square)
            self.square = radius * radius
        self.t += 1.0
        self.record_step()
        # sums over past scales lose digits when the scale decreases fast
        if self.step_sums is not None and not 1e-3 < fabs(self.scale) < 1e3:
            self.needs_rebase = True
        if not 1e-120 < fabs(self.scale) < 1e120:
            self.needs_rebase = True

    cdef void refresh(self) noexcept nogil:
        """Recompute |w|^2 without the rounding errors of many steps."""
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.n):
            total += self.cells[j] * self.cells[j]
        self.square = self.scale * self.scale * total
        self.peak = self.square
        self.changes = 0.0

    cdef double penalty_now(self) noexcept nogil:
        """Return l2/2 |w|^2, which is Psi(w) if l1 is 0: the norm is up to date."""
        return 0.5 * self.l2 * self.square if self.penalty.l1 == 0.0 else NAN

    @property
    def slots_are_independent(self):
        """Not: a step shrinks all weights, and the norm is that of all."""
        return False

    def derive(self):
        self.refresh()

    # -- averages --------------------------------------------------------------------------------

    cdef void step_scalars(self, double* c, double* threshold) noexcept nogil:
        c[0] = self.scale
        threshold[0] = 0.0

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        cdef double total = self.step_sums.sum_between(fabs(self.cells[j]), a, b)
        return total if self.cells[j] >= 0.0 else -total

    cdef void rebase(self) noexcept nogil:
        """Reset the scale to 1, so that it never under- or overflows."""
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cells[j] *= self.scale
        self.scale = 1.0
        RecordedSteps.rebase(self)


cdef class ProjectedSubgradient(Scaled):
    """Subgradient steps on f_t = l2/2 |w|^2 + loss, projected on the ball of Pegasos ([Do09]).

    The radius is 1/sqrt(l2) where |w*|^2 <= 1/l2 is proved (binary hinge with threshold <= 1,
    logistic, exponential, event weights <= 1). Elsewhere l2/2 |w*|^2 <= mean loss(0) gives
    sqrt(2 loss(0) / l2), with the largest loss(0) seen.
    """

    scalars = (*Scaled.scalars, "largest_loss", "largest_weight")
    # steps of size 1/t after all events are those of one learner
    scalar_merges = {
        **Scaled.scalar_merges, "t": "sum", "bound_sum": "sum", "largest_loss": "max",
        "largest_weight": "max",
    }

    def start(self):
        Scaled.start(self)
        self.proved = self.loss.ball_proved
        self.observes_events = self.project is True and self.l2 > 0.0
        self.fixed_radius = INFINITY
        if self.project is not True and self.project is not False and self.project is not None:
            self.fixed_radius = self.project

    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        if weight * loss_at_zero > self.largest_loss:
            self.largest_loss = weight * loss_at_zero
        if weight > self.largest_weight:
            self.largest_weight = weight

    cdef double limit(self) noexcept nogil:
        """Return the radius of the ball to project on."""
        if not self.observes_events:
            return self.fixed_radius
        if self.proved and self.largest_weight <= 1.0:
            return 1.0 / sqrt(self.l2)
        return sqrt(2.0 * self.largest_loss / self.l2)


def outside_ball(u, radius):
    """Return why u is not in the ball of `radius`, or None."""
    if u is None:
        return None
    size = abs(float(u)) if np.ndim(u) == 0 else float(np.linalg.norm(u))
    if size <= radius * (1.0 + 1e-9):
        return None
    return f"u has norm {size:g} and is outside the ball of radius {radius:g}"


def projection(owner, project):
    """Return `project` if it is True, False, None or a positive radius."""
    if project is None or isinstance(project, bool):
        return project
    return number(owner, "project", project, above=0.0)
