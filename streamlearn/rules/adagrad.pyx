"""AdaGrad ([Duchi11]; [Xiao10] section 5, last paragraph): a step size for every slot.

    H_j += g_j^2,  eta_j = step / sqrt(H_j),  w_j <- prox of eta_j Psi_j at (w_j - eta_j g_j)

The prox moves every slot at every event. For an untouched slot, applying it k times has a closed
form (`Penalty.repeat_prox`).
"""

from libc.math cimport sqrt

from streamlearn.core.row cimport Row
from streamlearn.rules.caching cimport CachingRule

from streamlearn.rules.requirements import coordinatewise
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

DEF WEIGHT = 0
DEF SQUARES = 1
DEF SEEN = 2


cdef class AdaGrad(CachingRule):
    """AdaGrad with composite steps: exact zeros with l1; O(d) per event."""

    _names = ("step",)
    _examples = ((0.1,),)
    fields = (
        PerSlot("weight", merge="slotwise", flips_sign=True), PerSlot("squares", merge="seen"),
        PerSlot("seen", merge="derived"),
    )
    evidence = "squares"
    needs = (coordinatewise,)
    cdef readonly double step

    def __init__(self, step=0.1):
        self.step = number("AdaGrad", "step", step, above=0.0)

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
        self.cell(j)[SEEN] = self.t

    @property
    def merges_by_slot(self):
        """Not with a penalty, which shrinks slots that no event touches."""
        return self.penalty.simple and self.penalty.l1 + self.penalty.l2 == 0.0

    @property
    def slots_are_independent(self):
        """Not with a penalty, which shrinks slots that no event touches."""
        return self.merges_by_slot

    def settle(self):
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[WEIGHT] = self.weight(j)
            self.cell(j)[SEEN] = self.t

    def derive(self):
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[SEEN] = self.t

    cdef double after(self, Py_ssize_t j, double t) noexcept nogil:
        """Return the weight of slot j after t steps, if it stays untouched."""
        cdef double* cell = self.cell(j)
        cdef double steps = t - cell[SEEN]
        if cell[WEIGHT] == 0.0:
            return 0.0
        return self.penalty.repeat_prox(cell[WEIGHT], self.step / sqrt(cell[SQUARES]), steps)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.after(j, self.t)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef const double* weights = self.cached_weights(row)
        cdef double g, eta
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cell(row.slot[i])
            g = slope * row.value[i]
            cell[SQUARES] += g * g
            cell[SEEN] = self.t + 1.0
            cell[WEIGHT] = 0.0
            if cell[SQUARES] > 0.0:
                eta = self.step / sqrt(cell[SQUARES])
                cell[WEIGHT] = self.penalty.repeat_prox(weights[i] - eta * g, eta, 1.0)
        self.t += 1.0

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        cdef double w
        if b <= a or self.cell(j)[WEIGHT] == 0.0:
            return 0.0
        # w_{a+1} is the weight after a steps
        w = self.after(j, a)
        return w + self.penalty.repeat_prox_sum(
            w, self.step / sqrt(self.cell(j)[SQUARES]), b - 1.0 - a
        )
