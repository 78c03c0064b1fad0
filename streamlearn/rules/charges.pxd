from streamlearn.core.row cimport Row
from streamlearn.rules.composite cimport MAX_RULES
from streamlearn.rules.slot_state cimport SlotState


cdef class Charges(SlotState):
    cdef readonly tuple fields
    cdef tuple rules
    cdef double l1, half_l2
    cdef void* each[MAX_RULES]  # borrowed pointers to the rules
    cdef double[MAX_RULES] sums
    cdef void update(self, Row* row, Py_ssize_t free) noexcept nogil
