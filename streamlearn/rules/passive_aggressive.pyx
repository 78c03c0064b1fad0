"""Passive-aggressive learning ([Crammer06] Figures 1 and 3).

The smallest change of w that makes the loss l of an event 0, or trades it off by C:

    w <- w - tau g x,  where g is the slope of the loss: -y, or the sign of the error
    PA     tau = l / |x|^2
    PA-I   tau = min(C, l / |x|^2)
    PA-II  tau = l / (|x|^2 + 1 / (2 C))

An event of weight a counts a times: a C takes the place of C.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, fmin

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.event_rule cimport EventRule

from streamlearn.core.parameters import number
from streamlearn.losses.distance import EpsilonInsensitive
from streamlearn.losses.margin import Hinge
from streamlearn.rules.requirements import unpenalized
from streamlearn.rules.slot_state import PerSlot


def hinge_or_epsilon_insensitive(rule, penalty, loss):
    """Require a loss for which the step has a closed form."""
    if isinstance(loss, (Hinge, EpsilonInsensitive)):
        return None
    return "its steps solve for a loss of 0; use Hinge(), or EpsilonInsensitive() for regression"


cdef class PassiveAggressive(EventRule):
    """Passive-aggressive steps, for classification and regression; O(d) per event.

    Parameters
    ----------
    variant
        "" (each step makes the loss 0), or "I" or "II", whose steps C limits.
    C
        Larger values make larger steps.
    """

    _names = ("variant", "C")
    _examples = ((), ("",), ("I", 0.05), ("II", 0.1))
    fields = (PerSlot("weight", merge="average", flips_sign=True),)
    needs = (hinge_or_epsilon_insensitive, unpenalized)
    cdef readonly str variant
    cdef readonly double C
    cdef double most, slack  # tau = min(most a, l / (|x|^2 + slack / a))

    def __init__(self, variant="I", C=1.0):
        if variant not in ("", "I", "II"):
            raise ValueError(f'PassiveAggressive: variant must be "", "I" or "II", got {variant!r}')
        self.variant = variant
        self.C = number("PassiveAggressive", "C", C, above=0.0)
        self.most = self.C if variant == "I" else INFINITY
        self.slack = 0.5 / self.C if variant == "II" else 0.0

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cell(j)[0]

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double tau
        cdef Py_ssize_t i
        self.t += 1.0
        if slope == 0.0 or row.square == 0.0:
            return
        tau = loss.value_at(p, y) / (row.square + self.slack / weight)
        tau = fmin(fmin(self.most * weight, tau), DBL_MAX)
        for i in range(row.n):
            self.cell(row.slot[i])[0] -= tau * slope * row.value[i]
