from streamlearn.engine.events cimport Events
from streamlearn.features.pieces cimport Text
from streamlearn.stream.decoder cimport Decoder


cdef class VWDecoder(Decoder):
    cdef bint simple  # nothing left out
    cdef bint marks  # interactions are asked for
    cdef int head(self, const char* p, const char* end) except -1
    cdef int namespace(self, const char** at, const char* end) except -1
    cdef int join_names(self, const char* space, Py_ssize_t length, Text* text) except -1
