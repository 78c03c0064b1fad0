"""FTRL-Proximal ([McMahan13] Algorithm 1).

    sigma = (sqrt(n + g^2) - sqrt n) / alpha,  z += g - sigma w,  n += g^2
    w = -(z - sgn(z) l1) / ((beta + sqrt n) / alpha + l2),  0 where |z| <= l1
"""

from libc.math cimport sqrt

from streamlearn.core.row cimport Row
from streamlearn.rules.caching cimport CachingRule

from streamlearn.rules.requirements import coordinatewise
from streamlearn.rules.slot_state import Field
from streamlearn.core.parameters import number

DEF Z = 0
DEF N = 1


cdef class FTRLProximal(CachingRule):
    """FTRL-Proximal, known from click prediction; O(d) per event.

    As in the paper, the penalty counts once against the sum of all losses. In other rules it counts
    once per event. Strengths are therefore of order 1, not 1/events.
    """

    _names = ("alpha", "beta")
    _examples = ((), (0.2, 0.5))
    fields = (Field("z", merge="slotwise", flips_sign=True), Field("n", merge="slotwise"))
    evidence = "n"
    needs = (coordinatewise,)
    penalty_counts_once = True
    cdef readonly double alpha, beta

    def __init__(self, alpha=0.1, beta=1.0):
        self.alpha = number("FTRLProximal", "alpha", alpha, above=0.0)
        self.beta = number("FTRLProximal", "beta", beta, low=0.0)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double z = self.cell(j)[Z], n = self.cell(j)[N]
        if z == 0.0:
            return 0.0
        return self.penalty.coordinate_minimizer(z, 1.0, (self.beta + sqrt(n)) / self.alpha)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef const double* weights = self.cached_weights(row)
        cdef double g, n
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cell(row.slot[i])
            g = slope * row.value[i]
            n = cell[N]
            cell[N] = n + g * g
            cell[Z] += g - (sqrt(cell[N]) - sqrt(n)) / self.alpha * weights[i]
        self.t += 1.0
