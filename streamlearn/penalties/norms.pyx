"""Penalties on the size of each weight: none, l1, l2, elastic net, berHu ([Xiao10] section 2)."""

from libc.math cimport fabs

from streamlearn.penalties.penalty cimport DualVector, Penalty, Shape

from streamlearn.core.parameters import number

import numpy as np


cdef class Zero(Penalty):
    """Psi(w) = 0."""

    simple = True
    coordinatewise = True
    has_closed_sums = True

    def value(self, w):
        return 0.0

    def prox(self, v, step=1.0):
        return np.array(v, dtype=float)


cdef class L1(Penalty):
    """Psi(w) = strength |w|_1: many weights are exactly 0 ([Xiao10] section 2.1, soft l1).

    >>> L1(0.5).prox([3.0, -0.2])
    array([ 2.5, -0. ])
    """

    _names = ("strength",)
    _examples = ((0.02,), (0.0,))
    simple = True
    coordinatewise = True
    has_closed_sums = True

    def __init__(self, strength):
        self.l1 = number("L1", "strength", strength, low=0.0)

    @property
    def strength(self):
        return self.l1

    def canonical(self):
        return self if self.l1 > 0.0 else Zero()

    def value(self, w):
        return self.l1 * float(np.abs(w).sum())

    def prox(self, v, step=1.0):
        return soft(v, step * self.l1)


cdef class L2(Penalty):
    """Psi(w) = strength / 2 |w|^2, strongly convex."""

    _names = ("strength",)
    _examples = ((0.5,), (2.0,))
    simple = True
    coordinatewise = True
    has_closed_sums = True

    def __init__(self, strength):
        self.l2 = number("L2", "strength", strength, low=0.0)

    @property
    def strength(self):
        return self.l2

    def canonical(self):
        return self if self.l2 > 0.0 else Zero()

    def value(self, w):
        # the square may overflow, and 0 times infinity is NaN
        if self.l2 == 0.0:
            return 0.0
        w = np.asarray(w, dtype=float)
        # not a BLAS product, whose threads busy-wait
        return 0.5 * self.l2 * float(np.square(w).sum())

    def prox(self, v, step=1.0):
        return np.asarray(v, dtype=float) / (1.0 + step * self.l2)


cdef class ElasticNet(Penalty):
    """Psi(w) = l1 |w|_1 + l2 / 2 |w|^2 ([Xiao10] section 2.2, mixed regularization)."""

    _names = ("l1", "l2")
    _examples = ((0.01, 0.3), (0.03, 0.0))
    simple = True
    coordinatewise = True
    has_closed_sums = True

    def __init__(self, l1, l2):
        self.l1 = number("ElasticNet", "l1", l1, low=0.0)
        self.l2 = number("ElasticNet", "l2", l2, low=0.0)

    def canonical(self):
        if self.l2 == 0.0:
            return L1(self.l1).canonical()
        return self if self.l1 > 0.0 else L2(self.l2)

    def value(self, w):
        w = np.asarray(w, dtype=float)
        return self.l1 * float(np.abs(w).sum()) + L2(self.l2).value(w)

    def prox(self, v, step=1.0):
        return soft(v, step * self.l1) / (1.0 + step * self.l2)


cdef double berhu(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    """Return the smaller of the l1 and the quadratic branch, which cross at the threshold."""
    cdef double inner = (fabs(s) - shape.threshold) * shape.scale
    cdef double outer = (fabs(s) - shape.p) * shape.q
    cdef double m = inner if inner < outer else outer
    if inner <= 0.0:
        return 0.0
    return -m if s > 0.0 else m


cdef class Berhu(Penalty):
    """The hybrid l1 / l2 norm ([Xiao10] section 2.1): l1 for small weights, quadratic for large.

    Psi(w) = strength sum_j |w_j| where |w_j| <= threshold, (w_j^2 + threshold^2) / (2 threshold)
    beyond.
    """

    _names = ("strength", "threshold")
    _examples = ((0.02, 0.1),)
    coordinatewise = True
    cdef readonly double strength, threshold

    def __init__(self, strength, threshold):
        self.strength = number("Berhu", "strength", strength, low=0.0)
        self.threshold = number("Berhu", "threshold", threshold, above=0.0)

    def canonical(self):
        return self if self.strength > 0.0 else Zero()

    def value(self, w):
        m = np.abs(np.asarray(w, dtype=float))
        large = (m * m + self.threshold**2) / (2.0 * self.threshold)
        return self.strength * float(np.where(m <= self.threshold, m, large).sum())

    def prox(self, v, step=1.0):
        v = np.asarray(v, dtype=float)
        small = soft(v, step * self.strength)
        large = v / (1.0 + step * self.strength / self.threshold)
        return np.where(np.abs(small) <= self.threshold, small, large)

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        cdef double outer = b + a * self.strength / self.threshold
        shape.transform = berhu
        shape.threshold = a * self.strength + b * rho
        shape.scale = 1.0 / b if b > 0.0 else 0.0
        shape.p = b * rho
        shape.q = 1.0 / outer if outer > 0.0 else 0.0

    cdef double coordinate_minimizer(self, double s, double a, double b) noexcept nogil:
        cdef double m = (fabs(s) - a * self.strength) / b
        if m <= 0.0:
            return 0.0
        if m > self.threshold:
            m = fabs(s) / (b + a * self.strength / self.threshold)
        return -m if s > 0.0 else m

    cdef double repeat_prox(self, double w, double step, double k) noexcept nogil:
        """Apply one prox after the other, because the branch may change."""
        while k > 0.0 and w != 0.0:
            w = self.coordinate_minimizer(-w, step, 1.0)
            k -= 1.0
        return w

    cdef double repeat_prox_sum(self, double w, double step, double k) noexcept nogil:
        cdef double total = 0.0
        while k > 0.0 and w != 0.0:
            w = self.coordinate_minimizer(-w, step, 1.0)
            total += w
            k -= 1.0
        return total


def soft(v, threshold):
    """Return v moved toward 0 by `threshold`, and 0 within it."""
    v = np.asarray(v, dtype=float)
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
