"""Places at which predictions are remembered, numbered from 0, and given again once given back."""

cimport cython
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from streamlearn.rules.table cimport room

import numpy as np


@cython.final
cdef class Tickets:
    """`given` says how many there are.

    One that was given back in a batch of rows is not given again in it: it is still looked at.
    """

    def __dealloc__(self):
        free(self.free)
        free(self.back)

    cdef int32_t give(self) except -1:
        """A place that nothing is remembered at."""
        if self.frees:
            self.frees -= 1
            return self.free[self.frees]
        if self.given == self.room:
            self.widen(2 * self.room + 64)
        self.given += 1
        return <int32_t>(self.given - 1)

    cdef void take_back(self, int32_t ticket) noexcept:
        """What is remembered there is not needed after these rows."""
        self.back[self.backs] = ticket
        self.backs += 1

    cdef void settle(self) noexcept:
        """The rows were learned."""
        memcpy(self.free + self.frees, self.back, self.backs * sizeof(int32_t))
        self.frees += self.backs
        self.backs = 0

    def widen(self, n):
        """Room for n of them to be free."""
        self.free = <int32_t*>room(self.free, n * sizeof(int32_t))
        self.back = <int32_t*>room(self.back, n * sizeof(int32_t))
        self.room = n

    def idle(self):
        """Those that are not in use after these rows."""
        found = np.empty(self.frees + self.backs, dtype=np.int32)
        cdef int32_t* to = <int32_t*><size_t>found.ctypes.data
        if self.room:
            memcpy(to, self.free, self.frees * sizeof(int32_t))
            memcpy(to + self.frees, self.back, self.backs * sizeof(int32_t))
        return found

    def restore(self, given, idle):
        """So many were given, of which these are idle."""
        cdef int32_t ticket
        if given < len(idle):
            raise ValueError(f"{len(idle)} of {given} places are idle")
        self.widen(given)
        self.given, self.frees, self.backs = given, 0, 0
        for ticket in idle:
            self.take_back(ticket)
        self.settle()

    def __sizeof__(self):
        return object.__sizeof__(self) + 2 * sizeof(int32_t) * self.room
