from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule


cdef enum Kind:
    UNIFORM
    TAIL
    RANDOM


cdef class Average:
    cdef readonly Rule rule
    cdef Kind kind
    cdef bint lazy
    cdef Py_ssize_t n, capacity
    cdef double* recent
    cdef double* older
    cdef double* seen
    cdef unsigned long long random
    cdef int grow(self) except -1
    cdef double uniform(self) noexcept nogil
    cdef void before(self, Row* row) noexcept nogil
    cdef void after(self) noexcept nogil
    cdef void settle(self, double t) noexcept nogil
    cdef double weight(self, Py_ssize_t j) noexcept nogil
    cdef double score(self, Row* row) noexcept nogil
