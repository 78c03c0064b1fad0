from streamlearn.core.parameters cimport Parameterized


cdef class Schedule(Parameterized):
    cdef readonly double c
    cdef double at(self, double t) noexcept nogil
    cdef double total(self, double t) noexcept nogil
