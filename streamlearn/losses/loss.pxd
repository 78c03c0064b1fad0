"""The C interface of losses l(p, y) of a prediction p."""

from libc.math cimport exp, log, log1p

from streamlearn.core.parameters cimport Parameterized


cdef enum:
    # Beyond e^700, exponential losses continue along their tangent: still convex, and finite.
    LAST_EXPONENT = 700

cdef extern from *:
    """
    #define STREAMLEARN_MAX_PENDING 64
    """
    enum:
        MAX_PENDING "STREAMLEARN_MAX_PENDING"  # how many losses are summed at a time


cdef struct PendingEvents:  # learned events whose losses are not summed yet
    int n
    double score[MAX_PENDING]
    double label[MAX_PENDING]
    double weight[MAX_PENDING]
    double slope[MAX_PENDING]  # of the loss at the score, or NaN if unknown


cdef extern from "<float.h>" nogil:
    const double DBL_MAX
    const double DBL_MIN


cdef class AnyLoss(Parameterized):
    cdef readonly double curvature_bound
    cdef readonly bint leaves_zero
    cdef readonly bint ball_proved
    cdef readonly bint score_is_label
    cdef readonly bint has_probability


cdef class Loss(AnyLoss):
    cdef double value_at(self, double p, double y) noexcept nogil
    cdef double slope_at(self, double p, double y) noexcept nogil
    cdef double curvature_at(self, double p, double y) noexcept nogil
    cdef double sum_pending(self, const PendingEvents* pending) noexcept nogil
    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil
    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil
    cdef double conjugate_at(self, double a, double y) noexcept nogil
    cdef double lowest_at(self, double y) noexcept nogil
    cdef double response_at(self, double p) noexcept nogil
    cdef double probability_at(self, double p) noexcept nogil
    cdef double score_of(self, double y) noexcept nogil
    cdef double constant_at(self, double mean) noexcept nogil
    cdef bint accepts(self, double y) noexcept nogil


cdef class VectorLoss(AnyLoss):
    cdef readonly Py_ssize_t outputs

    cdef double value_of(self, const double* f, Py_ssize_t k, const double* y) noexcept nogil
    cdef void slopes_of(
        self, const double* f, Py_ssize_t k, const double* y, double* out
    ) noexcept nogil
    cdef double conjugate_of(self, const double* a, Py_ssize_t k, const double* y) noexcept nogil
    cdef void probabilities_of(self, const double* f, Py_ssize_t k, double* out) noexcept nogil


cdef inline double finite(double x) noexcept nogil:
    """Return `x`, or on overflow the largest finite number with its sign."""
    if x > DBL_MAX:
        return DBL_MAX
    if x < -DBL_MAX:
        return -DBL_MAX
    return x


cdef inline double exponential(double x) noexcept nogil:
    """Return e^x, or its tangent from x = 700 on."""
    if x <= LAST_EXPONENT:
        return exp(x)
    return finite(exp(<double>LAST_EXPONENT) * (1.0 + (x - LAST_EXPONENT)))


cdef inline double exponential_slope(double x) noexcept nogil:
    return exp(x if x < LAST_EXPONENT else <double>LAST_EXPONENT)


cdef inline double exponential_curvature(double x) noexcept nogil:
    return exp(x) if x < LAST_EXPONENT else 0.0


cdef inline double entropy(double u) noexcept nogil:
    """Return u log u, or 0 if u is 0."""
    return u * log(u) if u > 0.0 else 0.0


cdef inline double slope_until(double slope, double distance, double b) noexcept nogil:
    """Return the mean slope over b of a path at `slope` that stops after `distance` (all >= 0)."""
    if distance <= 0.0:
        return 0.0
    return slope if b * slope <= distance else distance / b


cdef inline double log_growth(double a, double b) noexcept nogil:
    """Return log(1 + a b) / b for a >= 0, b > 0, without cancellation or overflow."""
    cdef double x = a * b
    if x < 1e-8:
        return a * (1.0 - 0.5 * x)
    if x > DBL_MAX:
        return (log(a) + log(b)) / b
    return log1p(x) / b


cdef inline void softmax(
    const double* scores, Py_ssize_t k, double scale, double* out
) noexcept nogil:
    """Write probabilities proportional to e^(scale score) to `out`."""
    cdef double top = scores[0], total = 0.0
    cdef Py_ssize_t i
    for i in range(1, k):
        top = max(top, scores[i])
    for i in range(k):
        out[i] = exp(scale * (scores[i] - top))
        total += out[i]
    for i in range(k):
        out[i] /= total
