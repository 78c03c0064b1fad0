"""The size of every feature, by which rules measure it, so that they do not mind its units.

"largest" is the largest |x| so far, as in the paper of NormalizedAdaptive. "typical" is the square
of the mean of sqrt|x| over the events that have the feature: a few outlandish values, as amounts
and counts bring them, hardly move it, where the largest would make all others look like 0.

Sizes depend on the rows, not on what is learned. Rules that see the same rows share them, so each
row is measured once for all of them. Weights are stored in units of 1 / size: as a size grows,
the weight w = cell / size shrinks automatically.
"""

from libc.stdlib cimport abort, free, malloc

from streamlearn.core.pairs cimport (
    Pair,
    any_above,
    first,
    firsts,
    least,
    less,
    load,
    mate,
    most,
    over,
    plus,
    root,
    second,
    seconds,
    size,
    store,
    times,
    two,
    values,
    where_above,
)
from streamlearn.core.row cimport Row, squared
from streamlearn.rules.table cimport SlotTable

from streamlearn.rules.rule import Field

# a cell begins with the largest |x| and 1 / size
DEF ROOTS = 2  # the sum of sqrt|x|, and of how many
DEF TINY = 1e-150  # 1 over a smaller size would overflow; such a feature counts as 0


cdef class Sizes:
    """The sizes of all slots, and the row seen last, measured by them."""

    fields = ()  # the numbers of a slot, as a rule declares its own; all begin at 0

    def __cinit__(self):
        self.width = len(self.fields)
        self.sit(SlotTable(self.width), 0)

    def __dealloc__(self):
        free(self.seen)

    def __sizeof__(self):
        return object.__sizeof__(self) + (0 if self.hosted else self.table.__sizeof__())

    def sit(self, SlotTable table, offset):
        """Keep the numbers of a slot in this table, from `offset` on."""
        self.table = table
        self.offset = offset
        self.stride = table.width
        self.hosted = self.stride != self.width

    cdef int grow(self, Py_ssize_t n) except -1:
        """Make slots up to n - 1 known."""
        cdef Py_ssize_t j
        cdef int k
        if n <= self.n:
            return 0
        self.table.reserve(n)
        self.cells = self.table.cells + self.offset
        for j in range(self.n, n):
            for k in range(self.width):
                self.cells[self.stride * j + k] = 0.0
        self.n = n
        return 0

    cdef double* room_for(self, Py_ssize_t n) noexcept nogil:
        """Room for `shown` and `unit` of n features, the last pair filled up."""
        if n + 1 > self.seen_room:
            self.seen_room = 2 * n + 16
            free(self.seen)
            self.seen = <double*>malloc(2 * self.seen_room * sizeof(double))
            if self.seen == NULL:
                abort()
        self.shown = self.seen
        self.unit = self.seen + self.seen_room
        return self.shown

    cdef void see(self, Row* row) noexcept nogil:
        """Measure a row that is about to be learned: by the sizes before it, then with it."""

    cdef void show(self, Row* row) noexcept nogil:
        """Measure a row that is predicted, by the sizes as they are."""
        cdef Pair a, b
        cdef double* shown = self.room_for(row.n)
        cdef const double* cells = self.cells
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        for i in range(0, n, 2):
            j = mate(i, n)
            a = load(cells + stride * row.slot[i])
            b = load(cells + stride * row.slot[j])
            a, b = firsts(a, b), seconds(a, b)
            store(shown + i, times(within(values(row.value, i, j), a), b))

    def state(self):
        """All sizes, as an array."""
        return self.table.part(self.offset, self.width, self.n)

    def restore(self, cells):
        """Go on from what `state` gave."""
        self.grow(len(cells))
        self.table.paste(self.offset, cells)


cdef inline Pair within(Pair x, Pair largest) noexcept nogil:
    """x, no larger than the largest so far: what is outlandish now counts as the largest did."""
    return most(least(x, largest), less(two(0.0, 0.0), largest))


cdef class Largest(Sizes):
    """A size is the largest |x|."""

    fields = (Field("largest", merge="max"), Field("inverse"))

    cdef void see(self, Row* row) noexcept nogil:
        cdef Pair largest, inverse, x
        # by names of their own, or they would be read anew after every store
        cdef double* shown = self.room_for(row.n)
        cdef double* unit = self.unit
        cdef double* a
        cdef double* b
        cdef Py_ssize_t i, j, n = row.n
        for i in range(0, n, 2):
            j = mate(i, n)
            a = self.cells + self.stride * row.slot[i]
            b = self.cells + self.stride * row.slot[j]
            x = values(row.value, i, j)
            largest = firsts(load(a), load(b))
            inverse = seconds(load(a), load(b))
            store(shown + i, times(within(x, largest), inverse))
            if any_above(size(x), largest):
                largest = most(largest, size(x))
                inverse = over(two(1.0, 1.0), largest)
                inverse = where_above(largest, two(TINY, TINY), inverse)
                store(b, seconds(largest, inverse))
                store(a, firsts(largest, inverse))
            store(unit + i, times(x, inverse))
        self.length = squared(unit, n)


cdef class Typical(Sizes):
    """A size is the square of the mean of sqrt|x|."""

    fields = (
        Field("largest", merge="max"),
        Field("inverse"),
        Field("roots", merge="sum"),
        Field("count", merge="sum"),
    )

    cdef void see(self, Row* row) noexcept nogil:
        cdef Pair largest, inverse, roots, count, x, none = two(0.0, 0.0), one = two(1.0, 1.0)
        cdef Pair there, features = none
        cdef double* shown = self.room_for(row.n)
        cdef double* unit = self.unit
        cdef double* a
        cdef double* b
        cdef Py_ssize_t i, j, n = row.n
        for i in range(0, n, 2):
            j = mate(i, n)
            a = self.cells + self.stride * row.slot[i]
            b = self.cells + self.stride * row.slot[j]
            x = values(row.value, i, j)
            largest = firsts(load(a), load(b))
            inverse = seconds(load(a), load(b))
            store(shown + i, times(within(x, largest), inverse))
            largest = most(largest, size(x))
            roots = plus(firsts(load(a + ROOTS), load(b + ROOTS)), root(size(x)))
            there = where_above(size(x), none, one)
            features = plus(features, there)
            count = plus(seconds(load(a + ROOTS), load(b + ROOTS)), there)
            inverse = over(count, roots)
            inverse = where_above(largest, two(TINY, TINY), times(inverse, inverse))
            store(unit + i, times(x, inverse))
            store(b, seconds(largest, inverse))
            store(b + ROOTS, seconds(roots, count))
            store(a, firsts(largest, inverse))
            store(a + ROOTS, firsts(roots, count))
        # as many as there are: where |x| has no mean, neither has |unit|^2
        self.length = first(features) + second(features)


KINDS = {"largest": Largest, "typical": Typical}
