"""The rows of a join: each is predicted, or learned with a label that came or timed out.

A prediction waits for its label at a ticket: `exchange` puts it there, and brings it back.
"""

cimport cython
from libc.math cimport NAN, isfinite, isnan
from libc.stdint cimport int32_t, uint8_t

from streamlearn.engine.events cimport Events, Tags
from streamlearn.core.row cimport Row

import numpy as np

PREDICTED, LEARNT, TIMED_OUT, CORRECTED = TO_PREDICT, TO_LEARN, TO_TIME_OUT, TO_CORRECT


@cython.final
cdef class Joined(Events):
    """Rows in the order in which they are predicted and learned."""

    def __init__(self):
        Events.__init__(self)
        self.make_room(256)

    def make_room(self, n):
        """Room for n rows; those that are there stay."""
        roles, tickets = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.int32)
        if self.role_array is not None:
            roles[:self.n] = self.role_array[:self.n]
            tickets[:self.n] = self.ticket_array[:self.n]
        self.role_array, self.ticket_array, self.joined_room = roles, tickets, n
        self.role = <uint8_t*><size_t>roles.ctypes.data
        self.ticket = <int32_t*><size_t>tickets.ctypes.data

    cdef int enter(self, Row* row, Tags* tags, Py_ssize_t known, int role, int ticket) except -1:
        if self.n == self.joined_room:
            self.make_room(2 * self.n)
        self.role[self.n] = <uint8_t>role
        self.ticket[self.n] = ticket
        return self.append(row, tags, known)

    def exchange(self, scores, Py_ssize_t start, Py_ssize_t stop, kept, timeout_scores):
        """Keep the scores of the rows that were predicted; others have those that were kept.

        A row of `scores` for each row, of `kept` and `timeout_scores` for each ticket; `timeout_scores` is None, or
        keeps the scores at which the labels of time-outs were learned. A row that could not be
        learned (NaN) stays so, and what was not kept (NaN) is left as it is.
        """
        cdef Py_ssize_t i, j, k, n = scores.shape[1], m = len(kept)
        cdef double* score = <double*><size_t>scores.ctypes.data
        cdef double* then = <double*><size_t>kept.ctypes.data
        cdef double* at_timeout = NULL
        cdef double* now
        cdef bint known
        for array, rows in ((scores, stop), (kept, m), (kept if timeout_scores is None else timeout_scores, m)):
            if array.dtype != np.float64 or not array.flags.c_contiguous or array.ndim != 2:
                raise ValueError("scores are float64, one row after the other")
            if array.shape[1] != n or len(array) < rows:
                raise ValueError(f"scores of {array.shape}, where {rows} x {n} are needed")
        if not (0 <= start and stop <= self.n and self.tickets[start:stop].max(initial=-1) < m):
            raise ValueError("rows or tickets that there are not")
        if timeout_scores is not None:
            at_timeout = <double*><size_t>timeout_scores.ctypes.data
        for i in range(start, stop):
            now = score + i * n
            k = self.ticket[i] * n
            if self.role[i] == TO_PREDICT:
                if k >= 0:
                    for j in range(n):
                        then[k + j] = now[j]
                        if at_timeout != NULL:  # of another event, which had this ticket before
                            at_timeout[k + j] = NAN
            elif not isnan(now[0]):
                if at_timeout != NULL and self.role[i] == TO_TIME_OUT:
                    for j in range(n):
                        at_timeout[k + j] = now[j]
                known = True
                for j in range(n):
                    known = known and isfinite(then[k + j])
                if known:
                    for j in range(n):
                        now[j] = then[k + j]

    def place(self, Py_ssize_t i):
        """What row i is for, its weight, and where its prediction is remembered."""
        self.inside(i)
        return self.role[i], self.weight[i], self.ticket[i]

    @property
    def roles(self):
        """What each row is for: PREDICTED, LEARNT, TIMED_OUT or CORRECTED."""
        return self.role_array[:self.n]

    @property
    def tickets(self):
        """Where the predictions of each row are remembered; -1: nowhere."""
        return self.ticket_array[:self.n]
