from streamlearn.losses.loss cimport Loss
from streamlearn.rules.rule cimport Rule


cdef class Guarded(Rule):
    cdef public double low, high
    cdef bint follows
    cdef double clip(self, double p) noexcept nogil
    cdef void watch_label(self, Loss loss, double y) noexcept nogil
