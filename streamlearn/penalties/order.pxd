cdef class Order:
    cdef Py_ssize_t capacity, root
    cdef Py_ssize_t* left
    cdef Py_ssize_t* right
    cdef Py_ssize_t* count
    cdef double* key
    cdef double* total
    cdef double* square
    cdef bint before(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef void refresh(self, Py_ssize_t j) noexcept nogil
    cdef void split(
        self, Py_ssize_t t, Py_ssize_t j, Py_ssize_t* low, Py_ssize_t* high
    ) noexcept nogil
    cdef Py_ssize_t merge(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil
    cdef Py_ssize_t put(self, Py_ssize_t t, Py_ssize_t j) noexcept nogil
    cdef Py_ssize_t take(self, Py_ssize_t t, Py_ssize_t j) noexcept nogil
    cdef int reserve(self, Py_ssize_t n) except -1
    cdef void clear(self) noexcept nogil
    cdef void insert(self, Py_ssize_t j, double key) noexcept nogil
    cdef void remove(self, Py_ssize_t j) noexcept nogil
    cdef double level(self, double target) noexcept nogil
    cdef double soft_square(self, double threshold) noexcept nogil
    cdef double soft_total(self, double threshold) noexcept nogil
