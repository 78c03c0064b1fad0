from streamlearn.row cimport Row


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
    cdef bint sparse, meeting
    cdef Py_ssize_t filled
    cdef int* slot
    cdef double* value
    cdef void put(self, Py_ssize_t column, double x) noexcept nogil
    cdef void row(self, Py_ssize_t i, Row* row) noexcept nogil
