"""FTRL-Proximal ([McMahan13] Algorithm 1).

    sigma = (sqrt(n + g^2) - sqrt n) / alpha,  z += g - sigma w,  n += g^2
    w = -(z - sgn(z) l1) / ((beta + sqrt n) / alpha + l2),  0 where |z| <= l1

With alpha="auto", alpha = 2 sqrt(t / N) / s, the steps of normalized adaptive ones ([Ross13]) with
the typical size s of all features, the square of the mean of sqrt|x|, and their number N so far.
"""

from libc.math cimport fabs, sqrt

from streamlearn.core.row cimport Row
from streamlearn.rules.caching cimport CachingRule

from streamlearn.rules.requirements import coordinatewise
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

DEF Z = 0
DEF N = 1
DEF RATE = 2.0


cdef class FTRLProximal(CachingRule):
    """FTRL-Proximal, known from click prediction; O(d) per event.

    As in the paper, the penalty counts once against the sum of all losses. In other rules it counts
    once per event. Strengths are therefore of order 1, not 1/events.
    """

    _names = ("alpha", "beta")
    _examples = ((), (0.2, 0.5), ("auto",))
    scalars = (*CachingRule.scalars, "rate", "events", "features", "roots")
    scalar_merges = {
        **CachingRule.scalar_merges, "rate": "mean", "events": "mean", "features": "mean",
        "roots": "mean",
    }
    fields = (PerSlot("z", merge="slotwise", flips_sign=True), PerSlot("n", merge="slotwise"))
    evidence = "n"
    needs = (coordinatewise,)
    penalty_counts_once = True
    cdef readonly double beta
    cdef public double events, features, roots  # seen; roots: the sum of sqrt|x|
    cdef public double rate  # alpha, now
    cdef bint auto

    def __init__(self, alpha=0.1, beta=1.0):
        self.auto = alpha == "auto"
        self.rate = 1.0 if self.auto else number("FTRLProximal", "alpha", alpha, above=0.0)
        self.beta = number("FTRLProximal", "beta", beta, low=0.0)

    @property
    def alpha(self):
        """The parameter: a number, or "auto"."""
        return "auto" if self.auto else self.rate

    def start(self):
        self.observes_events = self.auto
        self.averages_lazily = not self.auto  # the rate moves all slots at every event

    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        cdef Py_ssize_t i
        self.events += 1.0
        for i in range(row.n):
            self.features += row.value[i] != 0.0
            self.roots += sqrt(fabs(row.value[i]))

    cdef void set_rate(self) noexcept nogil:
        """Set alpha from the features so far."""
        if self.auto and self.roots > 0.0:
            self.rate = RATE * sqrt(self.events / self.features) * (self.features / self.roots) ** 2

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double z = self.cell(j)[Z], n = self.cell(j)[N]
        if z == 0.0:
            return 0.0
        return self.penalty.coordinate_minimizer(z, 1.0, (self.beta + sqrt(n)) / self.rate)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef const double* weights = self.cached_weights(row)
        cdef double g, n, before = self.rate, shift
        cdef double* cell
        cdef Py_ssize_t i
        self.t += 1.0
        self.set_rate()
        for i in range(row.n):
            cell = self.cell(row.slot[i])
            g = slope * row.value[i]
            n = cell[N]
            cell[N] = n + g * g
            shift = (sqrt(cell[N]) - sqrt(n)) / self.rate
            if self.rate != before:
                shift += (self.beta + sqrt(n)) * (1.0 / self.rate - 1.0 / before)
            cell[Z] += g - shift * weights[i]
