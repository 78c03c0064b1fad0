# cython: auto_pickle=False
"""Losses for counts ([Teo07] Table 1)."""

from libc.math cimport INFINITY, exp, expm1, fabs, isfinite, log, log1p

from streamlearn.losses.loss cimport (
    LAST_EXPONENT, Loss, entropy, exponential, exponential_curvature, exponential_slope, finite,
)


cdef class Poisson(Loss):
    """exp(p) - y p: counts y >= 0 whose mean is exp(p). [Teo07] Table 1, "Poisson regression".

    Above p = 700 the exponential continues along its tangent, so the slope stays finite.

    >>> loss = Poisson()
    >>> loss.value(0.0, 3.0), loss.slope(0.0, 3.0), loss.response(0.0)
    (1.0, -2.0, 1.0)
    """

    kind = "regression"

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(exponential(p) - y * p)

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return finite(exponential_slope(p) - y)

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        return exponential_curvature(p)

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        cdef double rate = a + y
        if not 0.0 <= rate <= exponential_slope(LAST_EXPONENT):
            return INFINITY
        return finite(entropy(rate) - rate)

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Follow the tangent, then u = e^-p with du/ds = 1 - y u."""
        cdef double lead = max(0.0, p - LAST_EXPONENT)
        if b == 0.0 or slope == 0.0 or (lead > 0.0 and b * slope <= lead):
            return slope
        y = max(y, 0.0)
        if lead > 0.0:
            p = LAST_EXPONENT
        cdef double rest = b - lead / slope
        return lead / b + rest / b * poisson_mean_slope(p, y, rest)

    cdef double response_at(self, double p) noexcept nogil:
        return exponential_slope(p)

    cdef double score_of(self, double y) noexcept nogil:
        return log(y) if y > 0.0 else -20.0

    cdef bint accepts(self, double y) noexcept nogil:
        return y >= 0.0 and isfinite(y)


cdef double poisson_mean_slope(double p, double y, double b) noexcept nogil:
    """Return the mean slope over the time b, log(e^(-y b) + e^p (1 - e^(-y b)) / y) / b."""
    cdef double slope = exp(p) - y
    cdef double time = -expm1(-y * b) / y if y * b > 1e-16 else b
    cdef double x = slope * time  # the sum in the logarithm, minus 1
    cdef double left, right
    if fabs(x) < 1e-8:
        return slope * (time / b) * (1.0 - 0.5 * x)
    if -0.5 < x < 1e300:
        return log1p(x) / b
    left, right = -y * b, p + log(time)
    return (max(left, right) + log1p(exp(-fabs(left - right)))) / b
