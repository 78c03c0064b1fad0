"""The size of every feature: rules divide by it, so that results do not depend on units.

"largest" is the largest |x| so far, as in [Ross13]. "typical" is the square of the mean of sqrt|x|
over the events that have the feature: outliers, common in amounts and counts, hardly change it,
while the largest would shrink all other values to almost 0.

Sizes depend on the rows, not on what is learned. Rules that see the same rows share them, so each
row is measured once for all of them. Weights are stored in units of 1 / size: as a size grows, the
weight w = cell / size shrinks automatically.
"""

from libc.stdlib cimport abort, free, malloc

from streamlearn.core.pairs cimport (
    Pair, any_above, first, firsts, minimum, subtract, load, partner, maximum, divide, add,
    square_root, second, seconds, absolute, store, multiply, make_pair, load_values,
    select_above,
)
from streamlearn.core.row cimport Row, squared
from streamlearn.rules.slot_state cimport SlotState
from streamlearn.rules.table cimport SlotTable

from streamlearn.rules.slot_state import PerSlot

# a slot's numbers begin with the largest |x| and 1 / size
DEF INVERSE = 1
DEF ROOTS = 2  # the sum of sqrt|x|, followed by the count
DEF TINY = 1e-150  # the inverse of a smaller size would overflow; such a feature counts as 0


cdef class FeatureSizes(SlotState):
    """The sizes of all slots, and the scaled values of the row measured last."""

    def __cinit__(self):
        self.attach(SlotTable(len(self.fields)), 0)

    def __dealloc__(self):
        free(self.seen)

    cdef double* room_for(self, Py_ssize_t n) noexcept nogil:
        """Reserve `shown` and `unit` for n features, with the last pair padded."""
        if n + 1 > self.seen_room:
            self.seen_room = 2 * n + 16
            free(self.seen)
            self.seen = <double*>malloc(2 * self.seen_room * sizeof(double))
            if self.seen == NULL:
                abort()
        self.shown = self.seen
        self.unit = self.seen + self.seen_room
        return self.shown

    cdef void observe(self, Row* row) noexcept nogil:
        """Scale a row that is learned next by the sizes before it, and update the sizes."""

    cdef void measure(self, Row* row) noexcept nogil:
        """Scale a row that is only scored, by the current sizes."""
        cdef Pair a, b
        cdef double* shown = self.room_for(row.n)
        cdef const double* cells = self.cells
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        for i in range(0, n, 2):
            j = partner(i, n)
            a = load(cells + stride * row.slot[i])
            b = load(cells + stride * row.slot[j])
            a, b = firsts(a, b), seconds(a, b)
            store(shown + i, multiply(within(load_values(row.value, i, j), a), b))

    def scoring(self):
        """Return the numbers that `measure` needs."""
        cells = self.table.copy_columns(self.offset, 2, self.n)
        return {"largest": cells[:, 0], "inverse": cells[:, 1]}


cdef inline Pair within(Pair x, Pair largest) noexcept nogil:
    """Clip x to the largest |x| so far, so that an outlier counts as the largest value."""
    return maximum(minimum(x, largest), subtract(make_pair(0.0, 0.0), largest))


cdef class LargestSizes(FeatureSizes):
    """Sizes that are the largest |x|."""

    fields = (PerSlot("largest", merge="max"), PerSlot("inverse", merge="derived"))

    def derive(self):
        cdef Py_ssize_t j
        cdef double* cell
        for j in range(self.n):
            cell = self.cell(j)
            cell[INVERSE] = 1.0 / cell[0] if cell[0] > TINY else 0.0

    cdef void observe(self, Row* row) noexcept nogil:
        cdef Pair largest, inverse, x
        # local copies, because stores would force these to be reloaded
        cdef double* shown = self.room_for(row.n)
        cdef double* unit = self.unit
        cdef double* a
        cdef double* b
        cdef Py_ssize_t i, j, n = row.n
        # for each feature, two at a time (core/pairs.pxd):
        #     shown = clip(x, largest) inverse
        #     largest = max(largest, |x|),  inverse = 1 / largest
        #     unit = x inverse
        for i in range(0, n, 2):
            j = partner(i, n)
            a = self.cells + self.stride * row.slot[i]
            b = self.cells + self.stride * row.slot[j]
            x = load_values(row.value, i, j)
            largest = firsts(load(a), load(b))
            inverse = seconds(load(a), load(b))
            store(shown + i, multiply(within(x, largest), inverse))
            if any_above(absolute(x), largest):
                largest = maximum(largest, absolute(x))
                inverse = divide(make_pair(1.0, 1.0), largest)
                inverse = select_above(largest, make_pair(TINY, TINY), inverse)
                store(b, seconds(largest, inverse))
                store(a, firsts(largest, inverse))
            store(unit + i, multiply(x, inverse))
        self.length = squared(unit, n)


cdef class TypicalSizes(FeatureSizes):
    """Sizes that are the square of the mean of sqrt|x|."""

    fields = (
        PerSlot("largest", merge="max"),
        PerSlot("inverse", merge="derived"),
        PerSlot("roots", merge="sum"),
        PerSlot("count", merge="sum"),
    )

    def derive(self):
        cdef Py_ssize_t j
        cdef double* cell
        for j in range(self.n):
            cell = self.cell(j)
            cell[INVERSE] = (cell[ROOTS + 1] / cell[ROOTS]) ** 2 if cell[0] > TINY else 0.0

    cdef void observe(self, Row* row) noexcept nogil:
        cdef Pair largest, inverse, roots, count, x, there
        cdef Pair none = make_pair(0.0, 0.0), one = make_pair(1.0, 1.0), features = none
        cdef double* shown = self.room_for(row.n)
        cdef double* unit = self.unit
        cdef double* a
        cdef double* b
        cdef Py_ssize_t i, j, n = row.n
        # for each feature, two at a time (core/pairs.pxd):
        #     shown = clip(x, largest) inverse
        #     largest = max(largest, |x|),  roots += sqrt|x|,  count += 1
        #     inverse = (count / roots)^2,  unit = x inverse
        for i in range(0, n, 2):
            j = partner(i, n)
            a = self.cells + self.stride * row.slot[i]
            b = self.cells + self.stride * row.slot[j]
            x = load_values(row.value, i, j)
            largest = firsts(load(a), load(b))
            inverse = seconds(load(a), load(b))
            store(shown + i, multiply(within(x, largest), inverse))
            largest = maximum(largest, absolute(x))
            roots = add(firsts(load(a + ROOTS), load(b + ROOTS)), square_root(absolute(x)))
            there = select_above(absolute(x), none, one)
            features = add(features, there)
            count = add(seconds(load(a + ROOTS), load(b + ROOTS)), there)
            inverse = divide(count, roots)
            inverse = select_above(largest, make_pair(TINY, TINY), multiply(inverse, inverse))
            store(unit + i, multiply(x, inverse))
            store(b, seconds(largest, inverse))
            store(b + ROOTS, seconds(roots, count))
            store(a, firsts(largest, inverse))
            store(a + ROOTS, firsts(roots, count))
        # the number of features: where |x| has no mean, neither has |unit|^2
        self.length = first(features) + second(features)


SIZE_KINDS = {"largest": LargestSizes, "typical": TypicalSizes}
