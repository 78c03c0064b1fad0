from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule


cdef class Recalling(Rule):
    cdef const int* asked  # the slots of the row whose weights are in `scratch`
    cdef const double* recall(self, Row* row) noexcept nogil
