from streamlearn.core.pairs cimport Pair
from streamlearn.core.row cimport Row
from streamlearn.rules.table cimport SlotTable


cdef class Sizes:
    cdef double* cells  # of every slot: the largest |x|, 1 / size, and what a member keeps
    cdef readonly int width
    cdef SlotTable table
    cdef Py_ssize_t n, offset, stride
    cdef bint hosted  # the table is shared
    cdef double* seen
    cdef Py_ssize_t seen_room
    # of the row seen last, a number for each feature
    cdef double* shown  # x / size as it was, |x| no larger than the largest
    cdef double* unit  # x / size as it is now
    cdef double length  # how much |unit|^2 adds to the norm of all rows
    cdef int grow(self, Py_ssize_t n) except -1
    cdef double* room_for(self, Py_ssize_t n) noexcept nogil
    cdef void see(self, Row* row) noexcept nogil
    cdef void show(self, Row* row) noexcept nogil
