# cython: auto_pickle=False
"""Losses of the distance p - y, for regression ([Teo07] Table 1)."""

from libc.math cimport INFINITY, expm1, fabs

from streamlearn.losses.loss cimport Loss, finite, slope_until

from streamlearn.core.parameters import number


cdef class DistanceLoss(Loss):
    """A loss of the distance p - y, whose score is on the label's scale."""

    def __cinit__(self):
        self.score_is_label = True


cdef class Squared(DistanceLoss):
    """1/2 (p - y)^2. [Teo07] Table 1, "Least mean squares".

    >>> loss = Squared()
    >>> loss.value(3.0, 1.0), loss.slope(3.0, 1.0)
    (2.0, 2.0)
    """

    kind = "regression"

    def __cinit__(self):
        self.curvature_bound = 1.0

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(0.5 * (p - y) * (p - y))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return finite(p - y)

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        return 1.0

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return finite(a * y + 0.5 * a * a)

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        return finite(p - y) / (1.0 + b)

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Shrink the distance to (p - y) e^-b."""
        return finite(p - y) * (-expm1(-b) / b if b > 0.0 else 1.0)


cdef class Absolute(DistanceLoss):
    """|p - y|: estimates the median. [Teo07] Table 1, "Least absolute deviation".

    >>> loss = Absolute()
    >>> loss.value(3.0, 1.0), loss.slope(3.0, 1.0), loss.slope(1.0, 1.0)
    (2.0, 1.0, 0.0)
    """

    kind = "regression"

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(fabs(p - y))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return <double>(p > y) - <double>(p < y)

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return a * y if fabs(a) <= 1.0 else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        return slope * slope_until(1.0, fabs(p - y), b)


cdef class Quantile(DistanceLoss):
    """tau (y - p) for p < y, (1 - tau) (p - y) for p > y: estimates the tau-quantile of y.

    [Teo07] Table 1, "Quantile regression", whose tau is 1 - tau here: one label in ten exceeds
    the prediction of Quantile(0.9).

    >>> loss = Quantile(0.9)
    >>> loss.value(0.0, 1.0), loss.slope(0.0, 1.0), round(loss.slope(2.0, 1.0), 9)
    (0.9, -0.9, 0.1)
    """

    kind = "regression"
    _names = ("tau",)
    _examples = ((0.5,), (0.1,), (0.75,))
    cdef readonly double tau

    def __cinit__(self, tau=0.5):
        self.tau = number("Quantile", "tau", tau, above=0.0, below=1.0)

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite((1.0 - self.tau) * (p - y) if p > y else self.tau * (y - p))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return 1.0 - self.tau if p > y else -self.tau

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return a * y if -self.tau <= a <= 1.0 - self.tau else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        if p > y:
            return slope_until(1.0 - self.tau, p - y, b)
        return -slope_until(self.tau, y - p, b)


cdef class EpsilonInsensitive(DistanceLoss):
    """max(0, |p - y| - epsilon): support vector regression. [Teo07] Table 1, "epsilon-insensitive".

    >>> loss = EpsilonInsensitive(0.5)
    >>> loss.value(3.0, 1.0), loss.slope(3.0, 1.0), loss.slope(1.5, 1.0)
    (1.5, 1.0, 0.0)
    """

    kind = "regression"
    _names = ("epsilon",)
    _examples = ((0.1,), (0.0,), (1.5,))
    cdef readonly double epsilon

    def __cinit__(self, epsilon=0.1):
        self.epsilon = number("EpsilonInsensitive", "epsilon", epsilon, low=0.0)

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(max(0.0, fabs(p - y) - self.epsilon))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return <double>(p - y > self.epsilon) - <double>(y - p > self.epsilon)

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return finite(a * y + self.epsilon * fabs(a)) if fabs(a) <= 1.0 else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        return slope * slope_until(1.0, fabs(p - y) - self.epsilon, b)


cdef class Huber(DistanceLoss):
    """1/2 r^2 for |r| <= delta, else delta (|r| - delta/2), with r = p - y: robust regression.

    [Teo07] Table 1, "Huber's robust loss" (delta 1).

    >>> loss = Huber()
    >>> loss.value(1.5, 1.0), loss.value(4.0, 1.0), loss.slope(4.0, 1.0)
    (0.125, 2.5, 1.0)
    """

    kind = "regression"
    _names = ("delta",)
    _examples = ((1.0,), (0.25,), (3.0,))
    cdef readonly double delta

    def __cinit__(self, delta=1.0):
        self.delta = number("Huber", "delta", delta, above=0.0)
        self.curvature_bound = 1.0

    cdef double value_at(self, double p, double y) noexcept nogil:
        cdef double r = fabs(p - y)
        if r <= self.delta:
            return finite(0.5 * r * r)
        return finite(self.delta * (r - 0.5 * self.delta))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return max(-self.delta, min(self.delta, p - y))

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        return 1.0 if fabs(p - y) < self.delta else 0.0

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return finite(a * y + 0.5 * a * a) if fabs(a) <= self.delta else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        return max(-self.delta, min(self.delta, finite(p - y) / (1.0 + b)))

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Move at constant speed to the distance delta, then like Squared."""
        cdef double lead = max(0.0, finite(fabs(p - y)) - self.delta)
        cdef double rest = b - lead / self.delta
        if rest <= 0.0:
            return slope
        lead = lead / b if p > y else -lead / b
        return lead + slope * (-expm1(-rest) / b)
