from libc.stdint cimport uint64_t

from streamlearn.engine.events cimport Events, Tags
from streamlearn.late.places cimport Places


cdef class Arrivals:
    cdef Events events
    cdef Py_ssize_t n, room
    cdef uint64_t* tag  # the hash of each id
    cdef int see(self, Events events, Places places) except -1
    cdef void fill(self, Py_ssize_t i, Tags* tags) noexcept
