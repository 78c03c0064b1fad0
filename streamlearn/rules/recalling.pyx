"""Rules whose weights take arithmetic, and whose steps begin at them.

An event is scored and then learned: the weights of its slots are worked out once for both.
"""

from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule


cdef class Recalling(Rule):
    """Keeps the weights of the row that was asked for last."""

    cdef double query(self, Row* row) noexcept nogil:
        cdef double* weights = self.scratch_for(row.n)
        cdef double p = 0.0
        cdef Py_ssize_t i
        for i in range(row.n):
            weights[i] = self.weight(row.slot[i])
            p += weights[i] * row.value[i]
        self.asked = row.slot
        return p

    cdef const double* recall(self, Row* row) noexcept nogil:
        """The weights of a row that is about to be learned, a number for each feature."""
        if self.asked != row.slot:
            self.query(row)
        self.asked = NULL
        return self.scratch
