from libc.stdint cimport uint32_t, uint64_t

cdef enum Role:
    FEATURE
    LABEL
    WEIGHT
    ID
    TIME
    SKIPPED

cdef struct Key:  # a field, as it is met in a record
    const char* text  # as it stands in the record
    Py_ssize_t length
    const char* name  # with the path to it, and "=" behind
    Py_ssize_t name_length  # without the "="
    uint64_t hash
    int parent  # -1: at the top
    int next  # which key came next when it was met last; -1: none yet
    int first  # and which one first inside of it
    Role role
    bint wanted  # a feature, and what is nested in it too
    bint has_roles  # what is nested in it may be spoken of
    uint32_t seen  # in which record last


cdef class Keys:
    cdef Key* key
    cdef int n
    cdef Py_ssize_t bytes_used  # by their texts, so that a hostile stream takes no memory
    cdef int room
    cdef int* cell  # open addressing; a key's number + 1
    cdef Py_ssize_t cells
    cdef object fields
    cdef public int first  # which key came first when a record was met last
    cdef int free(self) noexcept
    cdef bint nearly_full(self) noexcept
    cdef int find(self, int parent, const char* text, Py_ssize_t length) except -2
    cdef int add(
        self, int parent, const char* text, Py_ssize_t length, uint64_t hash) except -2
    cdef int clear(self) except -1
    cdef int grow(self) except -1
