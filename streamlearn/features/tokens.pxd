"""The words of a text."""

cdef struct Token:  # a word in `text`
    Py_ssize_t first, last


cdef class Tokens:
    cdef char* text  # the words, with a space around each
    cdef Token* token
    cdef Py_ssize_t n
    cdef Py_ssize_t room
    cdef Py_ssize_t token_room

    cdef int split(self, const char* p, Py_ssize_t length) except -1 nogil
