"""The rows of a join: each is predicted, or learned with its label or that of a timeout.

`exchange` stores the scores of predicted rows by ticket until the rows are learned.
"""

cimport cython
from libc.math cimport NAN, isfinite, isnan
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

    def exchange(self, scores, Py_ssize_t start, Py_ssize_t stop, stored, timeout_scores):
        """Store the scores of predicted rows; replace those of learned rows by the stored ones.

        `scores` has a row for each row; `stored` and `timeout_scores` have one for each ticket.
        `timeout_scores`, unless None, stores the scores at which labels of timeouts were learned. A
        row that could not be learned stays NaN; without a stored score, a row keeps its own.
        """
        cdef Py_ssize_t i, j, k, n = scores.shape[1], m = len(stored)
        cdef double* score = <double*><size_t>scores.ctypes.data
        cdef double* stored_score = <double*><size_t>stored.ctypes.data
        cdef double* at_timeout = NULL
        cdef double* now
        cdef bint known
        at_tickets = stored if timeout_scores is None else timeout_scores
        for array, rows in ((scores, stop), (stored, m), (at_tickets, m)):
            if array.dtype != np.float64 or not array.flags.c_contiguous or array.ndim != 2:
                raise ValueError("scores must be contiguous rows of float64")
            if array.shape[1] != n or len(array) < rows:
                raise ValueError(f"scores have the shape {array.shape}, {rows} x {n} are needed")
        if not (0 <= start and stop <= self.n and self.tickets[start:stop].max(initial=-1) < m):
            raise ValueError("rows or tickets are out of range")
        if timeout_scores is not None:
            at_timeout = <double*><size_t>timeout_scores.ctypes.data
        for i in range(start, stop):
            now = score + i * n
            k = self.ticket[i] * n
            if self.role[i] == TO_PREDICT:
                if k >= 0:
                    for j in range(n):
                        stored_score[k + j] = now[j]
                        if at_timeout != NULL:  # of the ticket's previous event
                            at_timeout[k + j] = NAN
            elif not isnan(now[0]):
                if at_timeout != NULL and self.role[i] == TO_TIME_OUT:
                    for j in range(n):
                        at_timeout[k + j] = now[j]
                known = True
                for j in range(n):
                    known = known and isfinite(stored_score[k + j])
                if known:
                    for j in range(n):
                        now[j] = stored_score[k + j]

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
