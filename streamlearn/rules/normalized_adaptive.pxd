from streamlearn.losses.loss cimport Loss
from streamlearn.rules.self_tuning cimport Normalized


cdef class NormalizedAdaptive(Normalized):
    cdef readonly double rate
    cdef readonly str kind
    cdef public double norm
    cdef int update_kind
    cdef double slope_of_step(
        self, Loss loss, double p, double y, double slope, double weight, double reach
    ) noexcept nogil
