from streamlearn.row cimport Row


cdef class Sizes:
    cdef double* cells  # of every slot: the largest |x|, and 1 over it
    cdef Py_ssize_t n, capacity
    cdef double* seen
    cdef Py_ssize_t seen_room
    # of the row seen last, a number for each feature
    cdef double* unit  # x / size
    cdef double* inverse  # 1 / size
    cdef double* shrink  # the size before / the size now
    cdef bint grew  # whether any size did
    cdef double square  # |unit|^2
    cdef int grow(self, Py_ssize_t n) except -1
    cdef void see(self, Row* row) noexcept nogil
    cdef void widen(self, Py_ssize_t i, Py_ssize_t n, double* cell, double x) noexcept nogil
