from streamlearn.core.row cimport Row
from streamlearn.rules.slot_state cimport SlotState


cdef class FeatureSizes(SlotState):
    # for every slot: the largest |x|, 1 / size, and numbers of a subclass
    cdef double* seen
    cdef Py_ssize_t seen_room
    # for the row measured last, one number per feature
    cdef double* shown  # x / size before the row, with |x| clipped to the largest
    cdef double* unit  # x / size after the row
    cdef double length  # what |unit|^2 adds to the norm of all rows
    cdef double* room_for(self, Py_ssize_t n) noexcept nogil
    cdef void observe(self, Row* row) noexcept nogil
    cdef void measure(self, Row* row) noexcept nogil
