from streamlearn.hindsight.passes cimport RowMatrix
from streamlearn.losses.loss cimport Loss


cdef enum:
    # An example whose dual stayed the same this many times in a row is skipped until `measure`.
    PATIENCE = 2

# What a step on one example reads and writes, adjacent in memory.
cdef struct Example:
    double dual    # a: the slope that the dual gives to this example's loss
    double label
    double weight  # c: the weights of all examples sum to 1
    double curvature    # c |x|^2 / l2: how much the example's score changes per unit of its dual


cdef class DualProblem:
    cdef RowMatrix rows
    cdef Loss loss
    cdef Py_ssize_t n, columns
    cdef readonly double l1, l2, offset
    cdef double threshold
    cdef readonly object w
    cdef object table, point, still_counts, keep, sums, since
    cdef Example* example
    cdef double* v
    cdef double* weight  # w; the same as v without l1
    cdef unsigned char* still
    cdef double* summed
    cdef long long* changed
    cdef readonly long long clock
    cdef long long average_start
    cdef readonly double losses, conjugates, slope
    cdef double best_dual(self, Py_ssize_t i, double p, double curvature) noexcept nogil
    cdef double conjugate_at(self, double dual, double label) noexcept nogil
    cdef double gap_at(self, Py_ssize_t i, double p) noexcept nogil
    cdef void assign(self, Py_ssize_t i, double dual) noexcept nogil
    cdef void add(self, Py_ssize_t i, double step) noexcept nogil
    cdef void threshold_row(self, Py_ssize_t i) noexcept nogil
