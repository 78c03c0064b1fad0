from libc.stdint cimport uint32_t, uint64_t

from streamlearn.features.reader cimport Reader

cdef enum Role:
    FEATURE
    LABEL
    WEIGHT
    ID
    TIME
    SKIPPED
    DECLARED

cdef struct Key:  # a field, as it is met in a record
    const char* text  # as in the record
    Py_ssize_t length
    const char* name  # with its path, followed by "="
    Py_ssize_t name_length  # without the "="
    uint64_t hash
    int parent  # -1: at the top
    int next  # the key that followed last time; -1: none yet
    int first  # the first key inside it last time
    Role role
    bint wanted  # a feature, with its nested fields
    int field  # of a feature: what the reader does with it
    int depth  # on the way to the event: how much of its path this is
    bint is_root  # it holds the event
    bint has_roles  # nested fields may have a role, or be declared
    uint32_t seen  # the last record with this key


cdef class Keys:
    cdef Key* key
    cdef int n
    cdef Py_ssize_t bytes_used  # of their texts, limited against hostile streams
    cdef int room
    cdef int* cell  # open addressing; a key's number + 1
    cdef Py_ssize_t cells
    cdef object fields
    cdef tuple path  # to the event
    cdef Reader reader
    cdef public int first  # the first key of the last record
    cdef int free(self) noexcept
    cdef bint nearly_full(self) noexcept
    cdef int find(self, int parent, const char* text, Py_ssize_t length) except -2
    cdef int add(
        self, int parent, const char* text, Py_ssize_t length, uint64_t hash) except -2
    cdef int clear(self) except -1
    cdef int root(self) except -2
    cdef int depth_of(self, int parent, bytes name) except -2
    cdef int describe(self, Key* new, int parent, bytes name, int depth) except -1
    cdef int grow(self) except -1
