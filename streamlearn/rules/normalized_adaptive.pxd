from streamlearn.rules.self_tuning cimport Normalized


cdef class NormalizedAdaptive(Normalized):
    cdef readonly double rate
    cdef readonly str kind
    cdef public double norm
    cdef int update_kind
