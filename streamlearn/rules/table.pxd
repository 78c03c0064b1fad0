cdef class SlotTable:
    cdef double* cells
    cdef readonly int width
    cdef readonly Py_ssize_t capacity
    cdef void* block
    cdef int reserve(self, Py_ssize_t n) except -1


cdef object to_array(const double* source, Py_ssize_t n)
cdef int copy_from_array(double* target, array) except -1
