"""Rules whose weights are a function of the sum of all gradients ([Xiao10], [Zhu09]).

The state of a slot is its sum of gradients s_j. After t events

    w = argmin_w  <s, w> + a_t Psi(w) + b_t h(w),

and a member says what a_t and b_t are. The penalty turns them into the few scalars from which any
weight is read (`Penalty.shape`), so an event costs O(its features) unless the penalty needs more.
"""

from libc.math cimport INFINITY, fabs, fmax, pow, sqrt

from streamlearn.penalties.penalty cimport (
    DualVector,
    EVERYTHING,
    NOTHING,
    ORDER,
    read,
    set_soft,
)
from streamlearn.core.row cimport Row, soft_dot
from streamlearn.rules.rule cimport StepSums, Rule

from streamlearn.rules.needs import not_simplex
from streamlearn.rules.rule import Field

import numpy as np


cdef class Dual(Rule):
    """Dual averaging in general."""

    fields = (Field("gradients", merge="sum", odd=True),)
    scalars = ("t", "largest_gradient", "spent", "slots_at_start", "watched")
    needs = (not_simplex,)

    def start(self):
        if self.geometry is None:
            self.geometry = self.penalty
        self.vector = DualVector()
        self.vector.width = self.width
        self.geometry.attach(self.vector, self.rho)
        self.watching = self.vector.watch != NOTHING and self.vector.watch != EVERYTHING
        self.plain = self.geometry.simple and self.vector.watch == NOTHING
        self.lazy = self.geometry.summable and self.vector.watch != ORDER
        self.q = self.geometry.dual_norm
        self.modulus = 1.0
        self.sigma = self.geometry.modulus
        self.reshape()

    cdef int grown(self, Py_ssize_t old) except -1:
        self.vector.grow(self.cells, old, self.n, self.table.capacity)
        if hasattr(self.geometry, "modulus_over"):
            self.modulus = self.geometry.modulus_over(self.n)
        if self.vector.watch == EVERYTHING or self.geometry.on_simplex:
            self.reshape()
        return 0

    # -- one row --------------------------------------------------------------------------------

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return read(&self.shape, self.cells[j * self.width], j)

    cdef double score(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef Py_ssize_t i
        if self.shape.bend == NULL:
            p = soft_dot(self.cells, row.slot, row.value, row.n, self.shape.threshold)
            return self.shape.scale * p
        for i in range(row.n):
            p += read(&self.shape, self.cells[row.slot[i]], row.slot[i]) * row.value[i]
        return p

    cdef double query(self, Row* row) noexcept nogil:
        return Dual.score(self, row)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double gradient = 0.0
        Dual.add(self, row, slope)
        # a root is worth a look only where the gradient may be the largest
        if self.accounting or self.q != 2.0 or not (
            slope * slope * row.square < self.largest_gradient * self.largest_gradient
        ):
            if slope != 0.0:
                gradient = fabs(slope)
                gradient *= sqrt(row.square) if self.q == 2.0 else self.gradient_norm(row)
            if gradient > self.largest_gradient:
                self.largest_gradient = gradient
            if self.accounting:
                self.account(gradient)
        if self.t == 0.0:
            self.slots_at_start = self.n
        self.t += 1.0
        if self.plain:
            self.coefficients(&self.a, &self.b)
            Dual.soften(self)
        else:
            self.reshape()
        if self.ledger is not None:
            self.ledger.append(-self.shape.scale, self.shape.threshold)
            self.tired = self.ledger.full()

    cdef void add(self, Row* row, double slope) noexcept nogil:
        """s += slope x."""
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef double old
        cdef Py_ssize_t i, j, n = row.n
        if self.width == 1 and not self.watching:
            for i in range(n):
                cells[slot[i]] += slope * value[i]
            return
        for i in range(n):
            j = slot[i] * self.width
            old = cells[j]
            cells[j] = old + slope * value[i]
            if self.watching:
                self.vector.change(slot[i], old, cells[j])

    cdef double gradient_norm(self, Row* row) noexcept nogil:
        """|x|_q."""
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
        """a_t and b_t for t events."""
        a[0] = self.t
        b[0] = 1.0

    cdef void reshape(self) noexcept nogil:
        # before any event s = 0, and w is where h is least
        self.a = 0.0
        self.b = 1.0
        if self.t > 0.0:
            self.coefficients(&self.a, &self.b)
        self.geometry.shape(self.a, self.b, self.rho, self.vector, &self.shape)

    cdef void soften(self) noexcept nogil:
        """`reshape` where the penalty is no more than its two strengths."""
        set_soft(
            &self.shape,
            self.a * self.geometry.l1 + self.b * self.rho,
            self.a * self.geometry.l2 + self.b,
        )

    cdef void account(self, double gradient) noexcept nogil:
        """Add event t + 1, with a gradient of this norm, to what the regret bound sums up."""

    # -- averages --------------------------------------------------------------------------------

    cdef int keep_ledger(self) except -1:
        self.ledger = StepSums()
        self.ledger.reserve(self.n)
        self.ledger.base = self.t
        self.ledger.append(-self.shape.scale, self.shape.threshold)
        return 0

    cdef double between(self, Py_ssize_t j, double a, double b) noexcept nogil:
        cdef double s = self.cells[j * self.width]
        cdef double total = self.ledger.between(fabs(s), a, b)
        return -total if s > 0.0 else total

    cdef void rest(self) noexcept nogil:
        self.ledger.forget(self.t)
        self.tired = False

    # -- the regret bound ------------------------------------------------------------------------

    def distance(self, u):
        """(h(u), None): how far u is from the start; or (None, why it is not known)."""
        if u is None:
            radius = self.geometry.norm_limit
            if radius == INFINITY:
                return None, (
                    f"the bound of {type(self).__name__} is against a given comparator: "
                    "regret_bound(u)")
            if self.geometry.on_simplex:
                return self.farthest(), None
            u = radius
        if np.ndim(u) == 0:
            if self.geometry.on_simplex:
                return self.farthest(), None
            norm = abs(float(u))
            # one weight alone has all the norm there is, and the largest h but for rho
            return self.geometry.auxiliary([norm]) + self.rho * norm * max(self.n, 1) ** 0.5, None
        u = np.asarray(u, dtype=float)
        if self.penalty.value(u) == INFINITY:
            return None, f"u is outside the domain of {self.penalty!r}"
        h = self.geometry.auxiliary(u) + self.rho * float(np.abs(u).sum())
        if self.geometry.on_simplex and not self.geometry.own_geometry:
            h -= 0.5 / len(u)
        return h, None

    def farthest(self):
        """The largest h on the simplex, at one of its corners."""
        if self.geometry.own_geometry:
            return float(-np.log(self.geometry.distribution(max(self.n, 1)).min()))
        return 0.5 - 0.5 / max(self.n, 1)

    def moved(self):
        """Why h is not the same function for all events, if it is not."""
        if self.geometry.on_simplex and self.t > 0.0 and self.slots_at_start != self.n:
            return "the simplex grew with the slots; make all slots known first (learn_rows does)"
        return None

    # -- state ------------------------------------------------------------------------------------

    @property
    def watched(self):
        return [self.vector.sum, self.vector.peak, self.vector.unit, self.vector.changes]

    @watched.setter
    def watched(self, numbers):
        self.vector.sum, self.vector.peak, self.vector.unit, self.vector.changes = numbers

    def restored(self):
        self.vector.rebuild()
        self.reshape()

    @property
    def step_size(self):
        """How much a weight above the threshold moves for a unit of gradient."""
        return -self.shape.scale if self.shape.bend == NULL else None
