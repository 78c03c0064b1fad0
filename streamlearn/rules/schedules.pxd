from streamlearn.core.parameters cimport Spec


cdef class Schedule(Spec):
    cdef readonly double c
    cdef double at(self, double t) noexcept nogil
    cdef double total(self, double t) noexcept nogil
