"""Tickets: the numbers under which predictions are stored, reused after release."""

cimport cython
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from streamlearn.core.memory cimport reallocate

import numpy as np


@cython.final
cdef class TicketPool:
    """Hands out tickets, numbered from 0; `count` is the number of them.

    A ticket that is released during a batch of rows is not reused in it, because it is still read.
    """

    def __dealloc__(self):
        free(self.free)
        free(self.released)

    cdef int32_t acquire(self) except -1:
        """Return an unused ticket."""
        if self.free_count:
            self.free_count -= 1
            return self.free[self.free_count]
        if self.count == self.capacity:
            self.grow(2 * self.capacity + 64)
        self.count += 1
        return <int32_t>(self.count - 1)

    cdef void release(self, int32_t ticket) noexcept:
        """Release a ticket after the current batch of rows."""
        self.released[self.released_count] = ticket
        self.released_count += 1

    cdef void recycle(self) noexcept:
        """Make released tickets available: the rows were learned."""
        memcpy(self.free + self.free_count, self.released, self.released_count * sizeof(int32_t))
        self.free_count += self.released_count
        self.released_count = 0

    def grow(self, n):
        """Make room for n free tickets."""
        self.free = <int32_t*>reallocate(self.free, n * sizeof(int32_t))
        self.released = <int32_t*>reallocate(self.released, n * sizeof(int32_t))
        self.capacity = n

    def free_tickets(self):
        """Return the tickets that are unused after the current batch."""
        found = np.empty(self.free_count + self.released_count, dtype=np.int32)
        cdef int32_t* to = <int32_t*><size_t>found.ctypes.data
        if self.capacity:
            memcpy(to, self.free, self.free_count * sizeof(int32_t))
            memcpy(to + self.free_count, self.released, self.released_count * sizeof(int32_t))
        return found

    def restore(self, count, free_tickets):
        """Resume with `count` tickets, of which these are free."""
        cdef int32_t ticket
        if count < len(free_tickets):
            raise ValueError(f"{len(free_tickets)} of {count} tickets are free")
        self.grow(count)
        self.count, self.free_count, self.released_count = count, 0, 0
        for ticket in free_tickets:
            self.release(ticket)
        self.recycle()
