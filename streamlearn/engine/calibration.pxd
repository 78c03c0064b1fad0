cimport cython


@cython.final
cdef class Calibration:
    cdef readonly double scale, shift
    cdef double slope, offset  # of the line that is fitted
    cdef double trust  # log-odds that it is better than the score itself
    cdef double ss, s1, one  # information on the line: sums of curvature times s^2, s and 1
    cdef int set_line(self) except? -1 nogil
    cdef void learn(self, double score, double y, double weight) noexcept nogil
