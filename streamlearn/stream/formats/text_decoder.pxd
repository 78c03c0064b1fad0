from streamlearn.engine.events cimport Events
from streamlearn.stream.formats.decoder cimport Decoder
from streamlearn.stream.sources.lines cimport LineSlice


cdef class TextDecoder(Decoder):
    cdef bytearray copy

    cdef int line(self, const char* p, const char* end, Events events) except -1 nogil
    cdef int lines(self, LineSlice values, Events events) except -1
