"""The rows of a join: each is predicted, or learned with its label or that of a timeout.

`exchange` stores the scores of predicted rows by ticket until the rows are learned.
"""

cimport cython
from libc.math cimport isfinite, isnan
from libc.stdint cimport int32_t, uint8_t

from streamlearn.engine.events cimport Events, Tags
from streamlearn.core.row cimport Row

import numpy as np

PREDICTED, LEARNED, TIMED_OUT, CORRECTED = TO_PREDICT, TO_LEARN, TO_TIME_OUT, TO_CORRECT


@cython.final
cdef class JoinedRows(Events):
    """Rows in the order in which they are predicted and learned."""

    def __init__(self):
        Events.__init__(self)
        self.make_room(256)

    def make_room(self, n):
        """Make room for n rows, and keep the current ones."""
        roles, tickets = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.int32)
        if self.role_array is not None:
            roles[:self.n] = self.role_array[:self.n]
            tickets[:self.n] = self.ticket_array[:self.n]
        self.role_array, self.ticket_array, self.row_capacity = roles, tickets, n
        self.role = <uint8_t*><size_t>roles.ctypes.data
        self.ticket = <int32_t*><size_t>tickets.ctypes.data

    cdef int add_row(self, Row* row, Tags* tags, Py_ssize_t known, int role, int ticket) except -1:
        if self.n == self.row_capacity:
            self.make_room(2 * self.n)
        self.role[self.n] = <uint8_t>role
        self.ticket[self.n] = ticket
        return self.append(row, tags, known)

    def exchange(self, scores, Py_ssize_t start, stored):
        """Store the scores of predicted rows; replace those of learned rows by the stored ones.

        `scores` has a row for each row from `start` on; `stored` has one for each ticket. A row
        that could not be learned stays NaN; without a stored score, a row keeps its own.
        """
        cdef Py_ssize_t i, j, k, n = scores.shape[1], count = len(scores), tickets = len(stored)
        cdef double* now = <double*><size_t>scores.ctypes.data
        cdef double* then = <double*><size_t>stored.ctypes.data
        cdef bint known
        for array in (scores, stored):
            if array.dtype != np.float64 or not array.flags.c_contiguous or array.shape[1:] != (n,):
                raise ValueError("scores must be contiguous rows of float64")
        if not (0 <= start and start + count <= self.n
                and self.tickets[start:start + count].max(initial=-1) < tickets):
            raise ValueError("rows or tickets are out of range")
        for i in range(start, start + count):
            k = self.ticket[i] * n
            if self.role[i] == TO_PREDICT:
                if k >= 0:
                    for j in range(n):
                        then[k + j] = now[j]
            elif not isnan(now[0]):
                known = True
                for j in range(n):
                    known = known and isfinite(then[k + j])
                if known:
                    for j in range(n):
                        now[j] = then[k + j]
            now += n

    def row_role(self, Py_ssize_t i):
        """Return the role, the weight and the ticket of row i."""
        self.inside(i)
        return self.role[i], self.weight[i], self.ticket[i]

    @property
    def roles(self):
        """The role of each row: PREDICTED, LEARNED, TIMED_OUT or CORRECTED."""
        return self.role_array[:self.n]

    @property
    def tickets(self):
        """The ticket of each row, under which its scores are stored; -1: none."""
        return self.ticket_array[:self.n]
