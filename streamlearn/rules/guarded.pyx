"""Rules that tune themselves: they learn whole events, and guard their scores.

A score is kept in [-50, 50]; where it is on the label's scale, in the range of the labels seen.
Every such rule learns from its own guarded score.
"""

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport Pair, first, firsts, load, mate, plus, second, times, two
from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule

from streamlearn.rules.needs import scalar_loss, unpenalised
from streamlearn.rules.sizes import KINDS

DEF LIMIT = 50.0


cdef class Guarded(Rule):
    """A rule without a step size to choose."""

    scalars = ("t", "low", "high")
    needs = (scalar_loss, unpenalised)
    intercept = "inside"
    whole = True
    strides = True

    def start(self):
        self.follows = self.loss.kind == "regression"
        self.low = 0.0 if self.follows else -LIMIT
        self.high = 0.0 if self.follows else LIMIT

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
    """Rules that measure each feature by its size; a slot is its weight times that, and a number.

    A value larger than all before counts as the largest before.
    """

    def start(self):
        Guarded.start(self)
        self.sizes = KINDS[self.size]()
        self.measures = True

    def share(self, sizes):
        """Learn rows that one of these sizes (a dict by their kinds) has seen before."""
        self.sizes = sizes[self.size]
        self.measures = False

    def __sizeof__(self):
        return Guarded.__sizeof__(self) + (self.sizes.__sizeof__() if self.measures else 0)

    cdef int grow(self, Py_ssize_t n) except -1:
        self.sizes.grow(n)
        return Guarded.grow(self, n)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cells[self.stride * j] * self.sizes.cells[self.sizes.stride * j + 1]

    cdef double predict(self, Row* row) noexcept nogil:
        if self.measures:
            self.sizes.show(row)
        return self.shown(row)

    cdef double meet(self, Row* row) noexcept nogil:
        if self.measures:
            self.sizes.see(row)
        return self.shown(row)

    cdef inline double shown(self, Row* row) noexcept nogil:
        """The score of the row that was measured last."""
        cdef const double* cells = self.cells
        cdef const double* shown = self.sizes.shown
        cdef const int* slot = row.slot
        cdef Pair score = two(0.0, 0.0)
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        for i in range(0, n, 2):
            j = mate(i, n)
            score = plus(
                score,
                times(
                    firsts(load(cells + stride * slot[i]), load(cells + stride * slot[j])),
                    load(shown + i),
                ),
            )
        return self.clip(first(score) + second(score))

    def state(self):
        state = Guarded.state(self)
        if self.measures:
            state["sizes"] = self.sizes.state()
        return state

    def restore(self, state):
        Guarded.restore(self, state)
        if "sizes" in state:
            self.sizes.restore(state["sizes"])

    def __reduce__(self):
        """A copy of its own has sizes of its own."""
        if self.penalty is None or self.measures:
            return Guarded.__reduce__(self)
        revive, (*identity, state) = Guarded.__reduce__(self)
        return revive, (*identity, {**state, "sizes": self.sizes.state()})


def kind_of_size(owner, size):
    """One of the kinds of sizes."""
    if size not in KINDS:
        raise ValueError(f"{owner}: size must be one of {', '.join(KINDS)}, got {size!r}")
    return size
