"""Composite mirror descent ([Duchi10]) with normalized adaptive steps ([Ross13]).

    w = prox(w - h x / D, 1 / D),  D = s E,  E = sqrt(G) / (rate sqrt(t / N)),  G = sum (g x)^2

It follows drift, because it starts each step from its last weights; FTRL-proximal, which
`NormalizedAdaptive` uses under l1, weighs all gradients since the first. Without a penalty both are
the same steps.

k events without a feature move its weight by the prox of k Psi / D. In a mixture whose other
members select weights under l1 (rules/composite.pyx), a weight is 0 unless one of them is non-zero:
this rule moves too fast to decide what is 0.
"""

from libc.math cimport copysign, fabs, sqrt

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.rules.composite cimport SCALE, SIZE, SQUARES, AdaptiveComposite, Support
from streamlearn.rules.normalized_adaptive cimport NormalizedAdaptive

from streamlearn.rules.slot_state import PerSlot

cdef enum:
    WEIGHT = 1  # at event LAST
    LAST = SCALE + 1


cdef class MirrorDescent(NormalizedAdaptive):
    """Composite mirror descent with normalized adaptive steps, for streams that drift."""

    _examples = ((), (2.0, "explicit", "typical"), (16.0, "invariant", "typical"))

    def __init__(self, rate=1.0, update="invariant", size="typical"):
        NormalizedAdaptive.__init__(self, rate, update, size)

    def implementation(self, Penalty penalty):
        """Use the form that takes l1 and l2, if there is such a penalty."""
        if penalty.l1 + penalty.l2 > 0.0:
            return CompositeMirrorDescent(**self.params)
        return MirrorDescent(**self.params)


cdef class CompositeMirrorDescent(AdaptiveComposite):
    """`MirrorDescent` under l1 and l2."""

    fields = (
        PerSlot("squares"), PerSlot("weight", flips_sign=True), PerSlot("size"), PerSlot("scale"),
        PerSlot("last"),
    )
    selects = False
    cdef Support support

    def restrict(self, Support support):
        self.support = support

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef const double* cell = self.cell(j)
        cdef double D = cell[SIZE] * cell[SCALE], w = cell[WEIGHT]
        if w == 0.0 or D <= 0.0 or j < self.free_slots:
            return w
        w = self.shrunk(w, (self.t - cell[LAST]) / D)
        if w != 0.0 and self.support is not None and not self.support.has(j):
            return 0.0
        return w

    cdef inline double shrunk(self, double w, double step) noexcept nogil:
        """Return the prox of step * Psi."""
        cdef double m = fabs(w) - step * self.penalty.l1
        return copysign(m / (1.0 + step * self.penalty.l2), w) if m > 0.0 else 0.0

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double h = self.slope_of_step(row, loss, y, weight, p, slope), D, s, w
        cdef const double* weights = self.scratch  # times sizes
        cdef double* cell
        cdef Py_ssize_t i, j
        for i in range(row.n):
            j = row.slot[i]
            if row.value[i] == 0.0:
                continue
            cell, s = self.cell(j), self.size_of(j)
            cell[SIZE], cell[SCALE], cell[LAST] = s, sqrt(cell[SQUARES]) / self.pace, self.t
            D, w = s * cell[SCALE], 0.0
            if D > 0.0:
                w = weights[i] / s - h * row.value[i] / D
                if j >= self.free_slots:
                    w = self.shrunk(w, 1.0 / D)
            cell[WEIGHT] = w
