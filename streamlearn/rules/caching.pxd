from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule


cdef class CachingRule(Rule):
    cdef const int* cached_slots  # the slots of the row whose weights are in `scratch`
    cdef const double* cached_weights(self, Row* row) noexcept nogil
