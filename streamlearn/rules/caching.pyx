"""Rules that cache a row's weights between scoring and learning.

Their weights are computed from the state, and both the score and the update need them.
"""

from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule


cdef class CachingRule(Rule):
    """A rule that caches the weights of the row scored last."""

    cdef double query(self, Row* row) noexcept nogil:
        cdef double* weights = self.scratch_for(row.n)
        cdef double p = 0.0
        cdef Py_ssize_t i
        for i in range(row.n):
            weights[i] = self.weight(row.slot[i])
            p += weights[i] * row.value[i]
        self.cached_slots = row.slot
        return p

    cdef const double* cached_weights(self, Row* row) noexcept nogil:
        """Return the weights of a row that is learned next, one per feature."""
        if self.cached_slots != row.slot:
            self.query(row)
        self.cached_slots = NULL
        return self.scratch
