cdef class SchemaUse:
    cdef bytes header
    cdef readonly object id  # in the registry; None: there is only one schema
    cdef readonly object plan
    cdef long long records  # that had it, not taken yet
    cdef bint touched
    cdef bint has(self, const char* header, Py_ssize_t length) noexcept


cdef class Framing:
    cdef readonly object schemas
    cdef bint framed
    cdef object header_name
    cdef dict uses  # by header
    cdef list recent  # some of them, by the hash of their header
    cdef SchemaUse use  # of the last record
    cdef list touched
    cdef Py_ssize_t read(
        self, const char* first, const char* end, object headers, bint has_indexes) except -1
    cdef bytes in_headers(self, object headers)
    cdef int switch(self, const char* header, Py_ssize_t length) except -1
    cdef SchemaUse find(self, bytes header)
