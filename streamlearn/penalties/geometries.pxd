from streamlearn.penalties.penalty cimport Penalty


cdef class LpSquared(Penalty):
    cdef readonly double strength, p
    cdef double q
    cdef void set_q(self, double q) noexcept nogil


cdef class Entropy(Penalty):
    cdef readonly double strength, size, scale


cdef class KL(Penalty):
    cdef readonly double strength
    cdef readonly object prior
    cdef object logarithms
    cdef const double* table
    cdef Py_ssize_t length
    cdef double least
