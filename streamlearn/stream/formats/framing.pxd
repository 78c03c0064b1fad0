cdef class SchemaUse:
    cdef readonly object id  # in the registry; None: there is only one schema
    cdef readonly object plan
    cdef long long records  # that had it, not taken yet
    cdef bint touched


cdef class Framing:
    cdef readonly object schemas
    cdef bint framed
    cdef object header_name
    cdef dict uses  # by header
    cdef bytes header  # of the last record
    cdef SchemaUse use
    cdef list touched
    cdef Py_ssize_t read(
        self, const char* first, const char* end, object headers, bint has_indexes) except -1
    cdef bytes in_headers(self, object headers)
    cdef int switch(self, bytes header) except -1
