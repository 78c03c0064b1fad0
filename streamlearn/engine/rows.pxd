cimport cython
from libc.stdint cimport int64_t

from streamlearn.core.row cimport Row


cdef class Rows:
    cdef readonly Py_ssize_t n, columns, longest
    cdef object keep
    cdef const double* doubles
    cdef const float* floats
    cdef const int* short_index
    cdef const long long* long_index
    cdef const int* short_start
    cdef const long long* long_start
    cdef const int* slots
    cdef Py_ssize_t stride
    cdef bint sparse, merges_slots
    cdef const double* squares  # |x|^2 of each row; NULL if rows cannot be read in place
    cdef int64_t* known  # slots used after each row; NULL if all are known from the start
    cdef Py_ssize_t filled
    cdef int* slot
    cdef double* value
    cdef bint sum_squares(self) except -1
    cdef Py_ssize_t row_end(self, Py_ssize_t i) noexcept nogil
    cdef void add_value(self, Py_ssize_t column, double x) noexcept nogil
    cdef void build_row(self, Py_ssize_t i, Row* row) noexcept nogil

    @cython.final
    cdef inline void row(self, Py_ssize_t i, Row* row) noexcept nogil:
        """Load row i, in place if possible, else as a copy."""
        cdef Py_ssize_t a
        if self.squares == NULL:
            self.build_row(i, row)
            return
        if self.short_start != NULL:
            a = self.short_start[i]
            row.n = self.short_start[i + 1] - a
        else:
            a = <Py_ssize_t>self.long_start[i]
            row.n = <Py_ssize_t>self.long_start[i + 1] - a
        row.slot = self.short_index + a
        row.value = self.doubles + a
        row.square = self.squares[i]
