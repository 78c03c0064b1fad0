cimport cython
from libc.stdint cimport int64_t

from streamlearn.core.row cimport Row


cdef class Rows:
    cdef readonly Py_ssize_t n, columns, longest
    cdef object keep  # owns the memory below
    cdef int64_t* start  # of each row, and the end of the last; NULL for a dense array
    cdef int* slot_at
    cdef double* value_at
    cdef double* square  # |x|^2 of each row; NULL if rows cannot be read in place
    cdef int64_t* known  # slots used after each row; NULL if all are known from the start
    cdef bint sparse, merges_slots
    cdef const int* slots  # of the columns; NULL: their numbers
    cdef int* slot  # of a row that is built
    cdef double* value
    cdef bint sum_squares(self) except -1
    cdef void add_value(self, Row* row, Py_ssize_t column, double x) noexcept nogil
    cdef void build_row(self, Py_ssize_t i, Row* row) noexcept nogil

    @cython.final
    cdef inline void row(self, Py_ssize_t i, Row* row) noexcept nogil:
        """Load row i, in place if possible, else as a copy."""
        cdef Py_ssize_t a
        if self.square == NULL:
            self.build_row(i, row)
            return
        a = <Py_ssize_t>self.start[i]
        row.n = <Py_ssize_t>self.start[i + 1] - a
        row.slot = self.slot_at + a
        row.value = self.value_at + a
        row.square = self.square[i]
