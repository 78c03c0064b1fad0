"""Sums of losses, exact to rounding however many there are.

Events are noted and their losses added up a few at a time (`Loss.sum_of`), which is less work than
one by one: a logistic loss takes one logarithm for all of them. What was added in which order is
all that the sums depend on.
"""

from streamlearn.losses.loss cimport FEW, Few, Loss


cdef struct Total:
    double sum
    double rest  # what rounding left out of the sum
    Few last  # events that are in neither yet


cdef inline void plus(double* sum, double* rest, double x) noexcept nogil:
    """sum + rest += x without rounding error ([Knuth97] section 4.2.2); infinite once x was."""
    cdef double after = sum[0] + x
    cdef double part = after - sum[0]
    if after - after == 0.0:
        rest[0] += (sum[0] - (after - part)) + (x - part)
    sum[0] = after


cdef inline void note(
    Total* total, double score, double label, double weight, double slope
) noexcept nogil:
    """One more event; once there are FEW of them, they must be added up."""
    cdef int n = total.last.n
    total.last.score[n] = score
    total.last.label[n] = label
    total.last.weight[n] = weight
    total.last.slope[n] = slope
    total.last.n = n + 1


cdef inline void add_up(Total* total, double value) noexcept nogil:
    """The losses of the events noted are `value` in all."""
    plus(&total.sum, &total.rest, value)
    total.last.n = 0


cdef inline double value_of(Total* total, Loss loss) noexcept nogil:
    """The sum, with what was noted."""
    return total.sum + (total.rest + loss.sum_of(&total.last))


cdef inline double sum_of_few(const double* x, int n) noexcept nogil:
    """Four sums, so that no addition waits for the one before."""
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
