"""Sums of losses, exact to rounding however many there are, with one logarithm for 32 of them.

A loss says its value as lead + log(1 + growth) (`Loss.growth_at`). Of events of one weight in a row
the factors 1 + growth are multiplied, and the logarithm of their product is taken now and then.
What was added in which order is all that the sums depend on.
"""

from libc.math cimport log1p


cdef enum:
    FEW = 32  # a growth is at most 1, so that a product is at most 2^32


cdef struct Total:
    double sum
    double rest  # what rounding left out of the sum
    double growth  # the last few's: their product of 1 + growth, less 1
    double weight  # of each of them
    int few


cdef inline void plus(double* sum, double* rest, double x) noexcept nogil:
    """sum + rest += x, without loss (Knuth)."""
    cdef double after = sum[0] + x
    cdef double part = after - sum[0]
    rest[0] += (sum[0] - (after - part)) + (x - part)
    sum[0] = after


cdef inline void take(Total* total, double weight, double lead, double growth) noexcept nogil:
    """total += weight (lead + log(1 + growth))."""
    if weight != total.weight or total.few == FEW:
        plus(&total.sum, &total.rest, last_few(total))
        total.growth = 0.0
        total.weight = weight
        total.few = 0
    if lead != 0.0:
        plus(&total.sum, &total.rest, weight * lead)
    total.growth += growth * (1.0 + total.growth)
    total.few += 1


cdef inline double last_few(Total* total) noexcept nogil:
    return total.weight * log1p(total.growth) if total.growth > 0.0 else 0.0


cdef inline double value_of(Total* total) noexcept nogil:
    return total.sum + (total.rest + last_few(total))
