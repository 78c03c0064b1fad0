"""The numbers of names."""

from libc.stdint cimport uint64_t


cdef class NameNumbers:
    cdef list names
    cdef uint64_t* hash
    cdef int* number
    cdef const char** text
    cdef Py_ssize_t* length
    cdef Py_ssize_t cells

    cdef int find(self, const char* name, Py_ssize_t length, int otherwise) noexcept nogil
