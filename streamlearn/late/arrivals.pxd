cimport cython
from libc.stdint cimport uint64_t

from streamlearn.engine.events cimport Events, Kind, Tags
from streamlearn.late.places cimport Places


cdef enum:
    AHEAD = 32  # events


@cython.final
cdef class Arrivals:
    cdef Events events
    cdef Py_ssize_t n, room
    cdef uint64_t* tag  # the hash of each id
    cdef int see(self, Events events, Places places) except -1

    cdef inline void fill(self, Py_ssize_t i, Tags* tags) noexcept:
        """What event i says of itself."""
        cdef Events events = self.events
        cdef Py_ssize_t first = 0 if i == 0 else <Py_ssize_t>events.id_end[i - 1]
        tags.label, tags.kind = events.label[i], <Kind>events.kind[i]
        tags.weight, tags.time = events.weight[i], events.time[i]
        tags.id = events.id_text + first if events.has_id[i] else NULL
        tags.id_length = <Py_ssize_t>events.id_end[i] - first
