from streamlearn.engine.events cimport Events
from streamlearn.stream.decoder cimport Decoder


cdef class VWDecoder(Decoder):
    cdef bint simple  # nothing left out
    cdef bint marks  # interactions are asked for
    cdef int head(self, const char* p, const char* end) except -1
    cdef int namespace(self, const char** at, const char* end) except -1
    cdef int feature(
        self, const char* space, Py_ssize_t space_length, const char* name,
        Py_ssize_t length, double value) except -1
