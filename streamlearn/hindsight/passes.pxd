cdef class RowMatrix:
    """The rows of a CSR matrix or a dense array, without a copy."""
    cdef readonly Py_ssize_t rows, columns
    cdef object keep
    cdef const double* doubles
    cdef const float* floats
    cdef const int* short_index
    cdef const long long* long_index
    cdef const long long* first
    cdef double dot(self, Py_ssize_t i, const double* w) noexcept nogil
    cdef void add(self, Py_ssize_t i, double scale, double* out) noexcept nogil
    cdef void dots(self, Py_ssize_t i, const double* w, Py_ssize_t k, double* f) noexcept nogil
    cdef void adds(
        self, Py_ssize_t i, const double* scales, Py_ssize_t k, double* out
    ) noexcept nogil
    cdef Py_ssize_t pick(
        self, Py_ssize_t i, const int* place, double* data, int* index
    ) noexcept nogil
    cdef Py_ssize_t begin(self, Py_ssize_t i, Py_ssize_t* n) noexcept nogil
    cdef Py_ssize_t entry(self, Py_ssize_t k, Py_ssize_t offset, double* x) noexcept nogil
    cdef double square(self, Py_ssize_t i) noexcept nogil
