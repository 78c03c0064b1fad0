cimport cython
from libc.stdint cimport int64_t, uint64_t

from streamlearn.late.held cimport Entry, HeldEvents
from streamlearn.late.id_table cimport IdTable
from streamlearn.late.tickets cimport TicketPool


@cython.final
cdef class LearnedTimeouts:
    cdef readonly HeldEvents events
    cdef IdTable id_table
    cdef TicketPool ticket_pool
    cdef int keep(self, Entry* entry) except -1
    cdef int64_t find(self, uint64_t tag) noexcept
    cdef int drop(self, int64_t place) except -1
    cdef void release(self, int64_t place) noexcept
