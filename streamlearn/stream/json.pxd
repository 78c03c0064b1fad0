from streamlearn.engine.events cimport Events
from streamlearn.stream.decoder cimport Decoder


cdef class JSONDecoder(Decoder):
    cdef bytes unwrapped(self, bytes value)
    cdef int slowly(self, bytes value, Events events) except -1
