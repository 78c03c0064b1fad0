cdef class SlotTable:
    cdef double* cells
    cdef readonly int width
    cdef readonly Py_ssize_t capacity
    cdef void* block
    cdef int reserve(self, Py_ssize_t n) except -1


cdef void* room(void* block, size_t size) except NULL
cdef object copied(const double* source, Py_ssize_t n)
cdef int paste(double* target, array) except -1
