from streamlearn.core.pairs cimport Pair
from streamlearn.core.row cimport Row
from streamlearn.rules.table cimport SlotTable


cdef class FeatureSizes:
    cdef double* cells  # for every slot: the largest |x|, 1 / size, and numbers of a subclass
    cdef readonly int width
    cdef SlotTable table
    cdef Py_ssize_t n, offset, stride
    cdef bint table_is_shared  # the table is shared
    cdef double* seen
    cdef Py_ssize_t seen_room
    # for the row measured last, one number per feature
    cdef double* shown  # x / size before the row, with |x| clipped to the largest
    cdef double* unit  # x / size after the row
    cdef double length  # what |unit|^2 adds to the norm of all rows
    cdef int grow(self, Py_ssize_t n) except -1
    cdef double* room_for(self, Py_ssize_t n) noexcept nogil
    cdef void observe(self, Row* row) noexcept nogil
    cdef void measure(self, Row* row) noexcept nogil
