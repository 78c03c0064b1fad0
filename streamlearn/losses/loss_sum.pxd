"""Compensated sums of losses, accurate for any number of events.

Events are collected and their losses summed in groups (`Loss.sum_pending`), which is less work than
one by one: a group of logistic losses needs one logarithm. The sums depend only on the events and
their order.
"""

from streamlearn.losses.loss cimport MAX_PENDING, PendingEvents, Loss


cdef struct LossSum:
    double sum
    double rest  # the rounding error of the sum
    PendingEvents last  # events not in the sum yet


cdef inline void two_sum(double* sum, double* rest, double x) noexcept nogil:
    """Add x to sum + rest without rounding error ([Knuth97] section 4.2.2); infinity stays."""
    cdef double after = sum[0] + x
    cdef double part = after - sum[0]
    if after - after == 0.0:
        rest[0] += (sum[0] - (after - part)) + (x - part)
    sum[0] = after


cdef inline void add_pending(
    LossSum* total, double score, double label, double weight, double slope
) noexcept nogil:
    """Add an event; the caller adds the sum when MAX_PENDING events are pending."""
    cdef int n = total.last.n
    total.last.score[n] = score
    total.last.label[n] = label
    total.last.weight[n] = weight
    total.last.slope[n] = slope
    total.last.n = n + 1


cdef inline void add_sum(LossSum* total, double value) noexcept nogil:
    """Add `value`, the sum of the losses of the pending events, and drop the events."""
    two_sum(&total.sum, &total.rest, value)
    total.last.n = 0


cdef inline double loss_sum(LossSum* total, Loss loss) noexcept nogil:
    """Return the sum, including the pending events."""
    return total.sum + (total.rest + loss.sum_pending(&total.last))


cdef inline double sum_in_lanes(const double* x, int n) noexcept nogil:
    """Sum in four lanes, so that no addition waits for the previous one."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef int i, whole = n & ~3
    for i in range(0, whole, 4):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
    for i in range(whole, n):
        a += x[i]
    return (a + b) + (c + d)
