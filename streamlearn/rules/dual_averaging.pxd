from streamlearn.rules.dual cimport Dual


cdef class DualAveraging(Dual):
    cdef readonly double gamma
    cdef readonly str schedule
    cdef int kind
    cdef double beta(self, double t) noexcept nogil
    cdef double beta_0(self) noexcept nogil
