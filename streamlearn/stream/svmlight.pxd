from streamlearn.engine.events cimport Events
from streamlearn.stream.decoder cimport Decoder


cdef class SVMLightDecoder(Decoder):
    cdef bint simple  # no interactions, nothing left out
    cdef int read_line(self, const char* p, const char* end) except -1
    cdef int put(self, long long column, double value) except -1
    cdef int make_columns(self) except -1
    cdef dict as_event(self)
