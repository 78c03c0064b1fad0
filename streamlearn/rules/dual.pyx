"""Rules whose weights are a function of the sum of all gradients ([Xiao10], [Zhu09]).

The state of a slot is its sum of gradients s_j. After t events

    w = argmin_w  <s, w> + a_t Psi(w) + b_t h(w),

where a_t and b_t depend on the rule. `Penalty.shape` turns them into the few scalars that determine
every weight, so an event costs O(its features) unless the penalty needs more.
"""

from libc.math cimport INFINITY, fabs, fmax, pow, sqrt

from streamlearn.penalties.penalty cimport (
    DualVector, EVERYTHING, NOTHING, ORDER, slot_weight, set_soft,
)
from streamlearn.core.row cimport Row, soft, soft_dot
from streamlearn.rules.paid_penalty cimport with_penalty
from streamlearn.rules.recorded_steps cimport RecordedSteps

from streamlearn.rules.requirements import one_output_on_simplex
from streamlearn.rules.slot_state import PerSlot

import numpy as np


cdef class Dual(RecordedSteps):
    """The base class of dual averaging rules."""

    fields = (PerSlot("gradients", merge="slotwise", flips_sign=True),)
    evidence = "gradients"
    scalars = ("t", "charged", "largest_gradient", "bound_sum", "slots_at_start", "statistic_state")
    scalar_merges = {
        "t": "mean", "charged": "mean", "largest_gradient": "max",
        "bound_sum": "mean", "slots_at_start": "max",
        "statistic_state": "derived",
    }
    sums_gradients = True
    needs = (one_output_on_simplex,)

    def start(self):
        if self.geometry is None:
            self.geometry = self.penalty
        self.vector = DualVector()
        self.vector.width = self.width
        self.geometry.attach(self.vector, self.rho)
        self.tracks_statistic = self.vector.statistic not in (NOTHING, EVERYTHING)
        self.l1_l2_only = self.geometry.simple and self.vector.statistic == NOTHING
        self.averages_lazily = self.geometry.has_closed_sums and self.vector.statistic != ORDER
        self.q = self.geometry.dual_norm
        self.modulus = 1.0
        self.sigma = self.geometry.modulus
        self.reshape()

    cdef int grow(self, Py_ssize_t n) except -1:
        cdef Py_ssize_t old = self.n
        if n <= old:
            return 0
        RecordedSteps.grow(self, n)
        self.vector.grow(self.cells, old, self.n, self.table.capacity)
        if hasattr(self.geometry, "modulus_over"):
            self.modulus = self.geometry.modulus_over(self.n)
        if self.vector.statistic == EVERYTHING or self.geometry.on_simplex:
            self.reshape()
        return 0

    # -- one row --------------------------------------------------------------------------------

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return slot_weight(&self.shape, self.cell(j)[0], j)

    cdef double score(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef Py_ssize_t i
        if self.shape.transform == NULL:
            p = soft_dot(
                self.cells, self.stride, row.slot, row.value, row.n, self.shape.threshold
            )
            return self.shape.scale * p
        for i in range(row.n):
            p += slot_weight(&self.shape, self.cells[row.slot[i]], row.slot[i]) * row.value[i]
        return p

    def scoring(self):
        """Return how `predict` computes a score."""
        cdef double* to
        cdef Py_ssize_t j
        if self.shape.transform != NULL:
            return RecordedSteps.scoring(self)
        vector = np.empty(self.n)
        to = <double*><size_t>vector.ctypes.data
        for j in range(self.n):
            to[j] = soft(self.cell(j)[0], self.shape.threshold)
        return {"kind": "lanes", "factor": self.shape.scale, "columns": {"weight": vector}}

    cdef double query(self, Row* row) noexcept nogil:
        return Dual.score(self, row)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double gradient = 0.0
        Dual.add(self, row, slope)
        # computes a square root only where the gradient may be the largest
        if self.sums_bound or self.q != 2.0 or not (
            slope * slope * row.square < self.largest_gradient * self.largest_gradient
        ):
            if slope != 0.0:
                gradient = fabs(slope)
                gradient *= sqrt(row.square) if self.q == 2.0 else self.gradient_norm(row)
            if gradient > self.largest_gradient:
                self.largest_gradient = gradient
            if self.sums_bound:
                self.add_to_bound(gradient)
        if self.t == 0.0:
            self.slots_at_start = self.n
        self.t += 1.0
        if self.l1_l2_only:
            self.coefficients(&self.a, &self.b)
            Dual.reshape_l1_l2(self)
        else:
            self.reshape()
        self.record_step()

    cdef void add(self, Row* row, double slope) noexcept nogil:
        """Add slope * x to s."""
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef double old
        cdef Py_ssize_t i, j, n = row.n
        if self.width == 1 and not self.tracks_statistic:
            for i in range(n):
                cells[slot[i]] += slope * value[i]
            return
        for i in range(n):
            j = slot[i] * self.width
            old = cells[j]
            cells[j] = old + slope * value[i]
            if self.tracks_statistic:
                self.vector.change(slot[i], old, cells[j])

    cdef double gradient_norm(self, Row* row) noexcept nogil:
        """Return |x|_q."""
        cdef double top = 0.0, total = 0.0
        cdef Py_ssize_t i
        for i in range(row.n):
            top = fmax(top, fabs(row.value[i]))
        if top == 0.0 or self.q == INFINITY:
            return top
        for i in range(row.n):
            total += pow(fabs(row.value[i]) / top, self.q)
        return top * pow(total, 1.0 / self.q)

    cdef void coefficients(self, double* a, double* b) noexcept nogil:
        """Set a_t and b_t for t events."""
        a[0] = self.t + self.charged
        b[0] = 1.0

    cdef void reshape(self) noexcept nogil:
        # before the first event s = 0, and w minimizes h
        self.a = 0.0
        self.b = 1.0
        if self.t > 0.0:
            self.coefficients(&self.a, &self.b)
        self.geometry.shape(self.a, self.b, self.rho, self.vector, &self.shape)

    cdef void reshape_l1_l2(self) noexcept nogil:
        """Do the work of `reshape` for penalties that are l1 and l2 only."""
        set_soft(
            &self.shape,
            self.a * self.geometry.l1 + self.b * self.rho,
            self.a * self.geometry.l2 + self.b,
        )

    cdef void add_to_bound(self, double gradient) noexcept nogil:
        """Add event t + 1, whose gradient has this norm, to the sum in the regret bound."""

    @property
    def merges_by_slot(self):
        """Not if the penalty depends on all slots together."""
        return bool(self.l1_l2_only) or self.penalty.simple and (
            self.penalty.l1 + self.penalty.l2 == 0.0
        )

    def charge(self, double events):
        if self.l1_l2_only:
            self.charged += events

    def penalize(self, double[::1] events):
        cdef Py_ssize_t j
        cdef double* cell
        if not self.l1_l2_only:
            return
        for j in range(len(events)):
            cell = self.cell(j)
            cell[0] = with_penalty(
                cell[0], self.a, events[j], self.geometry.l1, self.geometry.l2, self.b,
                self.b * self.rho,
            )

    @property
    def slots_are_independent(self):
        """Not if the penalty depends on all slots together."""
        return bool(self.l1_l2_only)

    # -- averages --------------------------------------------------------------------------------

    cdef void step_scalars(self, double* c, double* threshold) noexcept nogil:
        c[0] = -self.shape.scale
        threshold[0] = self.shape.threshold

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        cdef double s = self.cell(j)[0]
        cdef double total = self.step_sums.sum_between(fabs(s), a, b)
        return -total if s > 0.0 else total

    # -- the regret bound ------------------------------------------------------------------------

    def distance(self, u):
        """Return (h(u), None), the distance of u from the start, or (None, why it is unknown)."""
        if u is None:
            radius = self.geometry.norm_limit
            if radius == INFINITY:
                return None, (
                    f"the bound of {type(self).__name__} needs a comparator u: "
                    "call regret_bound(u)")
            if self.geometry.on_simplex:
                return self.farthest(), None
            u = radius
        if np.ndim(u) == 0:
            if self.geometry.on_simplex:
                return self.farthest(), None
            norm = abs(float(u))
            # h is largest, except for the rho term, when a single weight has all of the norm
            return self.geometry.auxiliary([norm]) + self.rho * norm * max(self.n, 1) ** 0.5, None
        u = np.asarray(u, dtype=float)
        if self.penalty.value(u) == INFINITY:
            return None, f"u is outside the domain of {self.penalty!r}"
        h = self.geometry.auxiliary(u) + self.rho * float(np.abs(u).sum())
        if self.geometry.on_simplex and not self.geometry.own_geometry:
            h -= 0.5 / len(u)
        return h, None

    def farthest(self):
        """Return the largest h on the simplex, which is at a corner."""
        if self.geometry.own_geometry:
            return float(-np.log(self.geometry.distribution(max(self.n, 1)).min()))
        return 0.5 - 0.5 / max(self.n, 1)

    def domain_changed(self):
        """Return why h was not the same function for all events, or None."""
        if self.geometry.on_simplex and self.t > 0.0 and self.slots_at_start != self.n:
            return "new slots were added to the simplex; use learn_rows, which adds all slots first"
        return None

    # -- state ------------------------------------------------------------------------------------

    @property
    def statistic_state(self):
        return [self.vector.sum, self.vector.peak, self.vector.unit, self.vector.changes]

    @statistic_state.setter
    def statistic_state(self, numbers):
        self.vector.sum, self.vector.peak, self.vector.unit, self.vector.changes = numbers

    def restored(self):
        self.vector.rebuild()
        self.reshape()

    def derive(self):
        if self.tracks_statistic:
            self.vector.refresh()
        self.restored()

    @property
    def step_size(self):
        """The change of a weight above the threshold per unit of gradient."""
        return -self.shape.scale if self.shape.transform == NULL else None
