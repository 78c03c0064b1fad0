"""The dual problem of [Takac13] (2) for any loss and an elastic net, and its variables.

With weights c that sum to 1, P(w) = sum_i c_i l(<w, x_i>, y_i) + l1 |w|_1 + l2/2 |w|^2. The dual
has one variable a_i for each example, a slope of its loss (-y_i alpha_i in the paper):

    D(a) = -sum_i c_i l*(a_i, y_i) - l2/2 |w|^2,   w = soft(v, l1/l2),   v = -sum_i c_i a_i x_i / l2

and D(a) never exceeds P(w). Their difference is a sum with one term >= 0 per example:
c_i (l(p_i) + l*(a_i) - a_i p_i).
"""

from libc.math cimport INFINITY, fabs

from streamlearn.hindsight.passes cimport RowMatrix
from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport soft

from streamlearn.penalties.norms import soft as soft_threshold

import numpy as np

cdef double INWARD = 1.0 - 1e-15  # a few rounding errors closer to 0

cdef class DualProblem:
    """The variables a and v of one problem; `offset`, an intercept, is added to every score.

    Passes over the rows take a range of rows, so that the caller can be interrupted in between.
    """

    def __init__(
        self, RowMatrix rows, Loss loss, labels, weights, double l1, double l2, averaged=False
    ):
        self.rows, self.loss, self.l1, self.l2 = rows, loss, l1, l2
        self.n, self.columns = rows.rows, rows.columns
        self.threshold = l1 / l2
        table = np.zeros((self.n, 4))
        with np.errstate(over="ignore"):
            curvatures = weights * rows.squares() / l2
        # an infinite curvature times a dual of 0 would be NaN; at 1e300 the step is 0 anyway
        table[:, 1], table[:, 2], table[:, 3] = labels, weights, np.minimum(curvatures, 1e300)
        self.table = table
        self.example = <Example*><size_t>table.ctypes.data
        self.point = np.zeros(self.columns)
        self.w = np.zeros(self.columns) if l1 > 0.0 else self.point
        self.v = <double*><size_t>self.point.ctypes.data
        self.weight = <double*><size_t>self.w.ctypes.data
        self.still_counts = np.zeros(self.n, dtype=np.uint8)
        self.still = <unsigned char*><size_t>self.still_counts.ctypes.data
        if averaged:
            self.sums, self.since = np.zeros(self.n), np.zeros(self.n, dtype=np.int64)
            self.summed = <double*><size_t>self.sums.ctypes.data
            self.changed = <long long*><size_t>self.since.ctypes.data

    @property
    def duals(self):
        """A copy of a; to set it, assign an array, then call `rebuild` over all rows."""
        return self.table[:, 0].copy()

    @duals.setter
    def duals(self, values):
        self.table[:, 0] = values

    def averages(self):
        """Return the mean of a over the iterations since `restart_average` ([Takac13] (21))."""
        if self.clock == self.average_start:
            return self.duals
        sums = self.sums + self.table[:, 0] * (self.clock - self.since)
        return sums / (self.clock - self.average_start)

    def restart_average(self):
        """Restart the mean of a."""
        self.sums[:] = 0.0
        self.since[:] = self.clock
        self.average_start = self.clock

    def set_offset(self, double offset):
        """Change the offset; the duals stay, and all examples become active again."""
        self.offset = offset
        self.still_counts[:] = 0

    def rebuild(self, Py_ssize_t start, Py_ssize_t stop):
        """Recompute v from a, without accumulated rounding; call with ascending ranges of rows."""
        cdef Py_ssize_t i, j
        cdef Example* x
        with nogil:
            if start == 0:
                for j in range(self.columns):
                    self.v[j] = 0.0
            for i in range(start, stop):
                x = self.example + i
                if x.dual != 0.0 and x.weight > 0.0:
                    self.rows.add(i, -x.weight * x.dual / self.l2, self.v)
            if stop == self.n and self.l1 > 0.0:
                for j in range(self.columns):
                    self.weight[j] = soft(self.v[j], self.threshold)

    def measure(self, Py_ssize_t start, Py_ssize_t stop):
        """Sum losses at w, conjugates at a, and slopes; reactivate examples that would move."""
        cdef Py_ssize_t i
        cdef Example* x
        cdef double p
        with nogil:
            if start == 0:
                self.losses = self.conjugates = self.slope = 0.0
            for i in range(start, stop):
                x = self.example + i
                if x.weight == 0.0:
                    continue
                p = self.rows.dot(i, self.weight) + self.offset
                self.losses += x.weight * self.loss.value_at(p, x.label)
                self.conjugates += x.weight * self.conjugate_at(x.dual, x.label)
                self.slope += x.weight * x.dual
                if self.still[i] >= PATIENCE and self.best_dual(i, p, x.curvature) != x.dual:
                    self.still[i] = 0

    def set_slopes_at(self, Py_ssize_t start, Py_ssize_t stop, w):
        """Set a to the slopes of the losses at the weights `w`."""
        cdef const double* weight = <const double*><size_t>w.ctypes.data
        cdef Py_ssize_t i
        cdef Example* x
        with nogil:
            for i in range(start, stop):
                x = self.example + i
                x.dual = self.loss.slope_at(self.rows.dot(i, weight) + self.offset, x.label)

    def replace_infeasible(self, instead):
        """Replace duals whose conjugate is infinite, which no slope's is, by those of `instead`."""
        cdef const double* other = <const double*><size_t>instead.ctypes.data
        cdef Py_ssize_t i
        cdef Example* x
        with nogil:
            for i in range(self.n):
                x = self.example + i
                if not self.conjugate_at(x.dual, x.label) < INFINITY:
                    x.dual = other[i]

    def value_at_scale(self, double share):
        """Return D(share a); v must match a."""
        cdef Py_ssize_t i
        cdef Example* x
        cdef double total = 0.0, slope = 0.0
        with nogil:
            for i in range(self.n):
                x = self.example + i
                if x.weight > 0.0:
                    slope += x.weight * x.dual
                    total += x.weight * self.conjugate_at(share * x.dual, x.label)
        w = soft_threshold(share * self.point, self.threshold)
        return self.offset * share * slope - total - 0.5 * self.l2 * float((w * w).sum())

    def values(self):
        """Return P(w) and D(a), after `measure` over all rows."""
        cdef Py_ssize_t j
        cdef double square = 0.0, size = 0.0
        with nogil:  # not by BLAS: its threads wait for each other on a busy machine
            for j in range(self.columns):
                square += self.weight[j] * self.weight[j]
                size += fabs(self.weight[j])
        primal = self.losses + self.l1 * size + 0.5 * self.l2 * square
        return primal, self.offset * self.slope - self.conjugates - 0.5 * self.l2 * square

    cdef double best_dual(self, Py_ssize_t i, double p, double curvature) noexcept nogil:
        """Return the best a_i if the score falls by `curvature` per unit of it: (14), (15).

        It maximizes a p - l*(a) - curvature/2 (a - a_i)^2, so it is the slope of the loss at
        p - curvature (a - a_i): an implicit step. A curvature above c_i |x_i|^2 / l2 shortens
        the step.
        """
        cdef Example* x = self.example + i
        p += curvature * x.dual
        return self.loss.implicit_at(p, x.label, curvature, self.loss.slope_at(p, x.label))

    cdef double conjugate_at(self, double dual, double label) noexcept nogil:
        """Return l*(dual, label); a dual that is infeasible only by rounding is moved inward."""
        cdef double value = self.loss.conjugate_at(dual, label)
        return value if value < INFINITY else self.loss.conjugate_at(INWARD * dual, label)

    cdef double gap_at(self, Py_ssize_t i, double p) noexcept nogil:
        """Return the example's term of the duality gap."""
        cdef Example* x = self.example + i
        return x.weight * (
            self.loss.value_at(p, x.label) + self.conjugate_at(x.dual, x.label) - x.dual * p
        )

    cdef void assign(self, Py_ssize_t i, double dual) noexcept nogil:
        """Set a_i to `dual`; the caller updates v."""
        cdef Example* x = self.example + i
        if self.summed != NULL:
            self.summed[i] += x.dual * (self.clock - self.changed[i])
            self.changed[i] = self.clock
        x.dual = dual

    cdef void add(self, Py_ssize_t i, double step) noexcept nogil:
        """v += step x_i."""
        self.rows.add(i, step, self.v)
        if self.l1 > 0.0:
            self.threshold_row(i)

    cdef void threshold_row(self, Py_ssize_t i) noexcept nogil:
        """w = soft(v, l1/l2) at the columns of row i."""
        cdef Py_ssize_t n, e, j, offset = self.rows.begin(i, &n)
        cdef double x
        for e in range(n):
            j = self.rows.entry(e, offset, &x)
            self.weight[j] = soft(self.v[j], self.threshold)
