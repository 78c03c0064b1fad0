from libc.stdint cimport int64_t, uint64_t


cdef class Places:
    cdef object cells
    cdef uint64_t* cell
    cdef uint64_t mask, seed
    cdef Py_ssize_t count

    cdef uint64_t hashed(self, const char* name, Py_ssize_t length) noexcept
    cdef void approach(self, uint64_t tag) noexcept
    cdef int64_t probe(self, uint64_t tag, uint64_t* at) noexcept
    cdef int enter(self, uint64_t tag, int64_t place) except -1
    cdef void move(self, uint64_t tag, int64_t old, int64_t new) noexcept
    cdef void leave(self, uint64_t tag, int64_t place) noexcept
    cdef uint64_t cell_of(self, uint64_t tag, int64_t place) noexcept
    cdef void put(self, uint64_t cell) noexcept
    cdef int widen(self, Py_ssize_t n) except -1
