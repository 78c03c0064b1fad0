"""The largest |x| of every slot: rules that measure a feature by it are indifferent to its scale.

It is a fact of the rows, not of what is learnt; so rules that see the same rows share one of these,
and each row is measured once for all of them.
"""

from libc.math cimport fabs
from libc.stdlib cimport abort, free, malloc

from streamlearn.pairs cimport (
    Pair,
    any_above,
    first,
    firsts,
    load,
    mate,
    plus,
    second,
    seconds,
    size,
    store,
    times,
    two,
    values,
)
from streamlearn.row cimport Row
from streamlearn.rules.rule cimport copied, paste, room

import numpy as np

DEF TINY = 1e-150  # 1 over a smaller size would overflow; such a feature counts as 0


cdef class Sizes:
    """The largest |x| of every slot, and the row seen last, measured by it."""

    def __dealloc__(self):
        free(self.cells)
        free(self.seen)

    def __sizeof__(self):
        return object.__sizeof__(self) + 2 * self.capacity * sizeof(double)

    cdef int grow(self, Py_ssize_t n) except -1:
        """Make slots up to n - 1 known."""
        cdef Py_ssize_t k
        if n > self.capacity:
            self.capacity = n if n > 2 * self.capacity else 2 * self.capacity
            self.cells = <double*>room(self.cells, 2 * self.capacity * sizeof(double))
        for k in range(2 * self.n, 2 * n):
            self.cells[k] = 0.0
        if n > self.n:
            self.n = n
        return 0

    cdef void see(self, Row* row) noexcept nogil:
        """Measure a row that is about to be learnt."""
        cdef Pair a, b, x, square = two(0.0, 0.0)
        # by names of their own, or they would be read anew after every store
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef double* unit
        cdef double* inverse
        cdef Py_ssize_t i, j, n = row.n
        if n > self.seen_room:
            self.seen_room = 2 * n + 16  # the last pair may have one feature
            free(self.seen)
            self.seen = <double*>malloc(3 * self.seen_room * sizeof(double))
            if self.seen == NULL:
                abort()
        self.unit = unit = self.seen
        self.inverse = inverse = unit + self.seen_room
        self.shrink = inverse + self.seen_room
        self.grew = False
        for i in range(0, n, 2):
            j = mate(i, n)
            a = load(cells + 2 * slot[i])
            b = load(cells + 2 * slot[j])
            x = values(value, i, j)
            if any_above(size(x), firsts(a, b)):
                self.widen(i, n, cells + 2 * slot[i], fabs(first(x)))
                self.widen(j, n, cells + 2 * slot[j], fabs(second(x)))
                a = load(cells + 2 * slot[i])
                b = load(cells + 2 * slot[j])
            a = seconds(a, b)
            b = times(x, a)
            store(inverse + i, a)
            store(unit + i, b)
            square = plus(square, times(b, b))
        self.square = first(square) + second(square)

    cdef void widen(self, Py_ssize_t i, Py_ssize_t n, double* cell, double x) noexcept nogil:
        """Feature i of n is larger than ever before."""
        cdef Py_ssize_t k
        if x <= cell[0]:
            return
        if not self.grew:
            self.grew = True
            for k in range(n):
                self.shrink[k] = 1.0
        self.shrink[i] = cell[0] / x
        cell[0] = x
        cell[1] = 1.0 / x if x > TINY else 0.0

    def state(self):
        """The sizes as an array."""
        return copied(self.cells, 2 * self.n)[::2].copy()

    def restore(self, sizes):
        """Go on from what `state` gave."""
        self.grow(len(sizes))
        with np.errstate(divide="ignore", over="ignore"):
            inverse = np.where(sizes > TINY, 1.0 / sizes, 0.0)
        paste(self.cells, np.stack([sizes, inverse], axis=1))
