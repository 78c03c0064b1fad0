"""A diagonal second-order learner with an implicit step.

With u = x / s (s_j the size of feature j, the largest |x_j| so far), q_j from `prior` on and
B = sum u_j^2 / q_j, the slope h at the place reached solves h = slope(p - h B), and

    w_j <- w_j - h u_j / (q_j s_j),   then   q_j += u_j^2 times the loss's curvature at p.

`size` "typical" is a size that outliers hardly move (rules/sizes.pyx).
"""

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport (
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
)
from streamlearn.core.row cimport Row
from streamlearn.rules.guarded cimport Sized

from streamlearn.rules.guarded import kind_of_size
from streamlearn.rules.rule import Field
from streamlearn.core.parameters import number

DEF CURVATURE = 1


cdef class DiagonalNewton(Sized):
    """Implicit Newton steps along each slot; `prior` is the curvature each starts with."""

    _names = ("prior", "size")
    _examples = ((), (0.7,), (3.0, "typical"))
    fields = (Field("weight", odd=True), Field("curvature"))
    cdef readonly double prior

    def __init__(self, prior=3.0, size="largest"):
        self.prior = number("DiagonalNewton", "prior", prior, above=0.0)
        self.size = kind_of_size("DiagonalNewton", size)

    cdef void born(self, Py_ssize_t j) noexcept nogil:
        self.cells[self.stride * j + CURVATURE] = self.prior

    cdef void learn_met(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double h, bend = weight * loss.curvature_at(p, y)
        cdef Pair u, w, q, reach = two(0.0, 0.0)
        # by names of their own, or they would be read anew after every store
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef double* moves = self.scratch_for(row.n + 1)
        cdef const double* unit = self.sizes.unit
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        for i in range(0, n, 2):
            j = mate(i, n)
            u = load(unit + i)
            w = over(u, seconds(load(cells + stride * slot[i]), load(cells + stride * slot[j])))
            store(moves + i, w)
            reach = plus(reach, times(u, w))
        h = weight * loss.implicit_at(p, y, weight * (first(reach) + second(reach)), slope)
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
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            u = load(unit + i)
            w = less(firsts(load(a), load(b)), times(two(h, h), load(moves + i)))
            q = plus(seconds(load(a), load(b)), times(times(u, u), two(bend, bend)))
            store(b, seconds(w, q))
            store(a, firsts(w, q))
