from streamlearn.rules.dual cimport Dual


cdef class DualAveraging(Dual):
    cdef double start_gamma  # gamma, 1 for "auto"
    cdef bint auto
    # for "auto": sum |g|^2, a, and sum d^2
    cdef public double gradients, pace, pace_gradients
    cdef readonly str schedule
    cdef int kind
    cdef double beta(self, double t) noexcept nogil
    cdef double beta_0(self) noexcept nogil
