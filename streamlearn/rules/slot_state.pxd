from streamlearn.core.parameters cimport Parameterized
from streamlearn.rules.table cimport SlotTable


cdef class SlotState(Parameterized):
    cdef readonly SlotTable table
    cdef double* cells  # of slot 0, in the table
    cdef readonly int width
    cdef readonly Py_ssize_t offset  # of a slot's numbers
    cdef Py_ssize_t stride  # from one slot to the next
    cdef readonly Py_ssize_t n
    cdef inline double* cell(self, Py_ssize_t j) noexcept nogil:
        """Return the numbers of slot j, in the order of `fields`."""
        return self.cells + self.stride * j
    cdef int grow(self, Py_ssize_t n) except -1
    cdef void init_slot(self, Py_ssize_t j) noexcept nogil
