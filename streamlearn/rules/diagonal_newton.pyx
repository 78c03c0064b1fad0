"""A diagonal second-order learner with an implicit step.

With u = x / s (s_j the largest |x_j| so far), q_j from `prior` on and B = sum u_j^2 / q_j, the
slope h at the place reached solves h = slope(p - h B), and

    w_j <- w_j - h u_j / (q_j s_j),   then   q_j += u_j^2 times the loss's curvature at p.
"""

from libc.math cimport fabs

from streamlearn.losses.loss cimport Loss
from streamlearn.row cimport Row
from streamlearn.rules.guarded cimport Sized

from streamlearn.rules.rule import Field
from streamlearn.spec import number

DEF WEIGHT = 0
DEF CURVATURE = 1
DEF SIZE = 2
DEF TINY = 1e-150


cdef class DiagonalNewton(Sized):
    """Implicit Newton steps along each slot; `prior` is the curvature each starts with."""

    _names = ("prior",)
    _examples = ((), (0.7,))
    fields = (Field("weight", odd=True), Field("curvature"), Field("size", merge="max"))
    cdef readonly double prior

    def __init__(self, prior=3.0):
        self.prior = number("DiagonalNewton", "prior", prior, above=0.0)

    cdef void born(self, Py_ssize_t j) noexcept nogil:
        self.cells[3 * j + CURVATURE] = self.prior

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        cdef double p = 0.0, reach = 0.0, x, m, g, h, bend
        cdef double* cell
        cdef double* u = self.scratch_for(row.n)
        # by names of their own, or they would be read anew after every store
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, n = row.n
        for i in range(n):
            cell = cells + 3 * slot[i]
            x = value[i]
            m = fabs(x)
            if m > cell[SIZE]:
                cell[WEIGHT] *= cell[SIZE] / m
                cell[SIZE] = m
            # 1 / size of a smaller one would overflow
            u[i] = x / cell[SIZE] if cell[SIZE] > TINY else 0.0
            reach += u[i] * u[i] / cell[CURVATURE]
            p += cell[WEIGHT] * x
        self.t += 1.0
        p = self.clip(p)
        g = loss.slope_at(p, y)
        bend = weight * loss.curvature_at(p, y)
        if bend == 0.0:
            # a loss made of straight pieces: its slope stands in, as in online Newton steps
            bend = weight * g * g
        h = weight * loss.implicit_at(p, y, weight * reach)
        if h == 0.0:
            # at a kink such a step stands still; the slope that the papers choose leaves it
            h = weight * g
        self.watch_label(loss, y)
        for i in range(n):
            if u[i] != 0.0:
                cell = cells + 3 * slot[i]
                cell[WEIGHT] -= h * u[i] / (cell[CURVATURE] * cell[SIZE])
                cell[CURVATURE] += u[i] * u[i] * bend
        return p
