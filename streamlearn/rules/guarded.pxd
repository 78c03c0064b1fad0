from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.sizes cimport Sizes


cdef class Guarded(Rule):
    cdef public double low, high
    cdef bint follows
    cdef double clip(self, double p) noexcept nogil
    cdef void watch_label(self, Loss loss, double y) noexcept nogil


cdef class Sized(Guarded):
    cdef readonly str size
    cdef Sizes sizes
    cdef double shown(self, Row* row) noexcept nogil
    cdef bint measures  # rows itself; else whoever shares the sizes has measured them
