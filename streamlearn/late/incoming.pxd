cimport cython
from libc.stdint cimport uint64_t

from streamlearn.engine.events cimport Events, Kind, Tags
from streamlearn.late.id_table cimport IdTable


cdef enum:
    AHEAD = 32  # events to prefetch


@cython.final
cdef class IncomingEvents:
    cdef Events events
    cdef Py_ssize_t n, room
    cdef uint64_t* tag  # the hash of each id
    cdef int load(self, Events events, IdTable id_table) except -1

    cdef inline void fill(self, Py_ssize_t i, Tags* tags) noexcept:
        """Fill in the tags of event i."""
        cdef Events events = self.events
        cdef Py_ssize_t first = 0 if i == 0 else <Py_ssize_t>events.id_end[i - 1]
        tags.label, tags.kind = events.label[i], <Kind>events.kind[i]
        tags.weight, tags.time = events.weight[i], events.time[i]
        tags.id = events.id_text + first if events.has_id[i] else NULL
        tags.id_length = <Py_ssize_t>events.id_end[i] - first
