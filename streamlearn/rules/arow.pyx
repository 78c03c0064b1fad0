"""AROW, adaptive regularization of weight vectors ([Crammer09] Figure 1, diagonal).

A Gaussian over weights, with mean mu and variances Sigma. At an event with a margin below 1:

    v = x^T Sigma x,  beta = 1 / (v + r),  alpha = max(0, 1 - y mu^T x) beta
    mu <- mu + alpha Sigma y x,  Sigma <- Sigma - beta Sigma x x^T Sigma (its diagonal)

An event of weight a counts a times: r / a takes the place of r.
"""

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.event_rule cimport EventRule

from streamlearn.core.parameters import number
from streamlearn.losses.margin import Hinge
from streamlearn.rules.requirements import unpenalized
from streamlearn.rules.slot_state import PerSlot

DEF MU = 0
DEF SIGMA = 1


def hinge(rule, penalty, loss):
    """Require the hinge loss, for which the step has a closed form."""
    return None if isinstance(loss, Hinge) else "its steps are those of the hinge loss; use Hinge()"


cdef class AROW(EventRule):
    """Confidence-weighted learning that tolerates label noise; O(d) per event.

    Parameters
    ----------
    r
        Larger values make smaller steps.
    """

    _names = ("r",)
    _examples = ((), (0.1,))
    fields = (
        PerSlot("mu", merge="slotwise", flips_sign=True), PerSlot("sigma", 1.0, merge="seen"),
    )
    evidence = "sigma"  # settled: the precision
    needs = (hinge, unpenalized)
    cdef readonly double r

    def __init__(self, r=1.0):
        self.r = number("AROW", "r", r, above=0.0)

    def settle(self):
        """Replace variances by precisions, which add up."""
        self.invert()

    def derive(self):
        self.invert()

    cdef void invert(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[SIGMA] = 1.0 / self.cell(j)[SIGMA]

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cell(j)[MU]

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double v = 0.0, beta, alpha
        cdef double* cell
        cdef Py_ssize_t i
        self.t += 1.0
        if slope == 0.0:  # the margin is at least 1
            return
        for i in range(row.n):
            v += row.value[i] * row.value[i] * self.cell(row.slot[i])[SIGMA]
        beta = 1.0 / (v + self.r / weight)
        alpha = loss.value_at(p, y) * beta
        for i in range(row.n):
            cell = self.cell(row.slot[i])
            cell[MU] -= alpha * cell[SIGMA] * slope * row.value[i]  # the slope is -y
            cell[SIGMA] -= beta * cell[SIGMA] * cell[SIGMA] * row.value[i] * row.value[i]
