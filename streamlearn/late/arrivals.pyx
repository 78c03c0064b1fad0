"""Events of a batch on their way into a join, with the hashes of their ids.

They are hashed together: so none waits for the one before it, and entries can be fetched ahead.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free

from streamlearn.engine.events cimport Events, Kind, Tags
from streamlearn.late.places cimport Places
from streamlearn.rules.rule cimport room


cdef class Arrivals:
    """The events of one decoder."""

    def __dealloc__(self):
        free(self.tag)

    cdef int see(self, Events events, Places places) except -1:
        """These come next."""
        cdef Py_ssize_t i, first = 0, end
        if events.n > self.room:
            self.tag = <uint64_t*>room(self.tag, 2 * events.n * sizeof(uint64_t))
            self.room = 2 * events.n
        for i in range(events.n):
            end = <Py_ssize_t>events.id_end[i]
            self.tag[i] = places.hashed(events.id_text + first, end - first)
            first = end
        self.events, self.n = events, events.n
        return 0

    cdef void fill(self, Py_ssize_t i, Tags* tags) noexcept:
        """What event i says of itself."""
        cdef Events events = self.events
        cdef Py_ssize_t first = 0 if i == 0 else <Py_ssize_t>events.id_end[i - 1]
        tags.label, tags.kind = events.label[i], <Kind>events.kind[i]
        tags.weight, tags.time = events.weight[i], events.time[i]
        tags.id = events.id_text + first if events.has_id[i] else NULL
        tags.id_length = <Py_ssize_t>events.id_end[i] - first

    def __sizeof__(self):
        return object.__sizeof__(self) + sizeof(uint64_t) * self.room
