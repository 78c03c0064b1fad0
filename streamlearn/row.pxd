"""One example as every learner sees it: slots, each once, their values, and how long x is."""

cdef struct Row:
    Py_ssize_t n
    const int* slot
    const double* value
    double square  # |x|^2


cdef inline double squared(const double* value, Py_ssize_t n) noexcept nogil:
    """|x|^2, in the one order of additions that all who fill a row share."""
    # two sums, for one would wait for itself
    cdef double even = 0.0, odd = 0.0
    cdef Py_ssize_t i
    for i in range(0, n - 1, 2):
        even += value[i] * value[i]
        odd += value[i + 1] * value[i + 1]
    if n & 1:
        even += value[n - 1] * value[n - 1]
    return even + odd
