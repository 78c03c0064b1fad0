"""Rules that tune themselves: they learn whole events, and guard their scores.

A score is kept in [-50, 50]; where it is on the label's scale, in the range of the labels seen.
Every such rule learns from its own guarded score.
"""

from libc.stdlib cimport abort, free, malloc

from streamlearn.losses.loss cimport Loss
from streamlearn.row cimport Row
from streamlearn.rules.rule cimport Rule

from streamlearn.rules.needs import scalar_loss, unpenalised

DEF LIMIT = 50.0


cdef class Guarded(Rule):
    """A rule without a step size to choose."""

    scalars = ("t", "low", "high")
    needs = (scalar_loss, unpenalised)
    intercept = "inside"
    whole = True

    def start(self):
        self.follows = self.loss.kind == "regression"
        self.low = 0.0 if self.follows else -LIMIT
        self.high = 0.0 if self.follows else LIMIT

    def __dealloc__(self):
        free(self.scratch)

    cdef double* scratch_for(self, Py_ssize_t n) noexcept nogil:
        """Room for a number per feature of the row at hand."""
        if n > self.scratch_room:
            self.scratch_room = 2 * n + 16
            free(self.scratch)
            self.scratch = <double*>malloc(self.scratch_room * sizeof(double))
            if self.scratch == NULL:
                abort()
        return self.scratch

    cdef double clip(self, double p) noexcept nogil:
        if p > self.high:
            return self.high
        # a NaN, from inf - inf, goes here too
        return p if p >= self.low else self.low

    cdef void watch_label(self, Loss loss, double y) noexcept nogil:
        """A label that is now known widens the range of scores."""
        cdef double s
        if self.follows:
            s = loss.score_of(y)
            if self.t <= 1.0:
                self.low = s
                self.high = s
            elif s < self.low:
                self.low = s
            elif s > self.high:
                self.high = s


cdef class Sized(Guarded):
    """Rules that know the size of each feature: a slot is its weight, a number, the largest |x|."""

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cells[3 * j]

    cdef double predict(self, Row* row) noexcept nogil:
        """As `learn` scores it: a value larger than all before counts as the largest before."""
        cdef double p = 0.0, x, size
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cells + 3 * row.slot[i]
            x = row.value[i]
            size = cell[2]
            if x > size:
                x = size
            elif x < -size:
                x = -size
            p += cell[0] * x
        return self.clip(p)
