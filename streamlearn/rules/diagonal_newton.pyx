"""A diagonal second-order learner with an implicit step.

With u = x / s (s_j the largest |x_j| so far), q_j from `prior` on and B = sum u_j^2 / q_j, the
slope h at the place reached solves h = slope(p - h B), and

    w_j <- w_j - h u_j / (q_j s_j),   then   q_j += u_j^2 times the loss's curvature at p.
"""

from streamlearn.losses.loss cimport Loss
from streamlearn.pairs cimport (
    Pair,
    first,
    firsts,
    less,
    load,
    mate,
    over,
    plus,
    second,
    seconds,
    store,
    times,
    two,
    values,
)
from streamlearn.row cimport Row
from streamlearn.rules.guarded cimport Sized

from streamlearn.rules.rule import Field
from streamlearn.spec import number

DEF WEIGHT = 0
DEF CURVATURE = 1


cdef class DiagonalNewton(Sized):
    """Implicit Newton steps along each slot; `prior` is the curvature each starts with."""

    _names = ("prior",)
    _examples = ((), (0.7,))
    fields = (Field("weight", odd=True), Field("curvature"))
    cdef readonly double prior
    cdef double reach  # of the event that was met: what a step of slope 1 moves its score by

    def __init__(self, prior=3.0):
        self.prior = number("DiagonalNewton", "prior", prior, above=0.0)

    cdef void born(self, Py_ssize_t j) noexcept nogil:
        self.cells[2 * j + CURVATURE] = self.prior

    cdef double meet(self, Row* row) noexcept nogil:
        cdef Pair u, v, score = two(0.0, 0.0), reach = score
        # by names of their own, or they would be read anew after every store
        cdef const double* cells
        cdef const double* a
        cdef const double* b
        cdef const double* unit
        cdef double* moves = self.scratch_for(row.n + 1)
        cdef Py_ssize_t i, j, n = row.n
        self.measure(row)
        cells = self.cells
        unit = self.sizes.unit
        for i in range(0, n, 2):
            j = mate(i, n)
            a = cells + 2 * row.slot[i]
            b = cells + 2 * row.slot[j]
            u = load(unit + i)
            v = over(u, seconds(load(a), load(b)))
            store(moves + i, v)
            reach = plus(reach, times(u, v))
            score = plus(score, times(firsts(load(a), load(b)), values(row.value, i, j)))
        self.reach = first(reach) + second(reach)
        return self.clip(first(score) + second(score))

    cdef void learn_met(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double h = weight * loss.implicit_at(p, y, weight * self.reach)
        cdef double bend = weight * loss.curvature_at(p, y)
        cdef Pair u, w, q
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef const double* moves = self.scratch
        cdef const double* unit = self.sizes.unit
        cdef const double* inverse = self.sizes.inverse
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n
        self.t += 1.0
        self.watch_label(loss, y)
        if bend == 0.0:
            # a loss made of straight pieces: its slope stands in, as in online Newton steps
            bend = weight * slope * slope
        if h == 0.0:
            # at a kink such a step stands still; the slope that the papers choose leaves it
            h = weight * slope
        for i in range(0, n, 2):
            j = mate(i, n)
            a = cells + 2 * slot[i]
            b = cells + 2 * slot[j]
            u = load(unit + i)
            w = times(times(two(h, h), load(moves + i)), load(inverse + i))
            w = less(firsts(load(a), load(b)), w)
            q = plus(seconds(load(a), load(b)), times(times(u, u), two(bend, bend)))
            store(b, seconds(w, q))
            store(a, firsts(w, q))
