"""The events of a batch on their way into a join, with the hashes of their ids.

All ids are hashed first, so that table cells and entries can be prefetched.
"""

cimport cython
from libc.stdint cimport uint64_t
from libc.stdlib cimport free

from streamlearn.engine.events cimport Events
from streamlearn.late.id_table cimport IdTable
from streamlearn.core.memory cimport reallocate


@cython.final
cdef class IncomingEvents:
    """The events of one decoder."""

    def __dealloc__(self):
        free(self.tag)

    cdef int load(self, Events events, IdTable id_table) except -1:
        """Take the next batch."""
        cdef Py_ssize_t i, first = 0, end
        if events.n > self.room:
            self.tag = <uint64_t*>reallocate(self.tag, 2 * events.n * sizeof(uint64_t))
            self.room = 2 * events.n
        for i in range(events.n):
            end = <Py_ssize_t>events.id_end[i]
            self.tag[i] = id_table.hashed(events.id_text + first, end - first)
            first = end
            if i < AHEAD:
                id_table.prefetch_cell(self.tag[i])
        self.events, self.n = events, events.n
        return 0
