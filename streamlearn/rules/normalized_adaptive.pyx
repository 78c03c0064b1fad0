"""Normalised adaptive steps (Ross, Mineiro, Langford, Normalized Online Learning, 2013).

    N += sum x_j^2 / s_j^2,  G_j += g^2 x_j^2
    w_j <- w_j - rate sqrt(t / N) g x_j / (s_j sqrt(G_j))

with s_j the largest |x_j| so far; when it grows, w_j shrinks with it. `update` is the kind of
step: "explicit", "implicit" (the slope at the place reached) or "invariant" (infinitely many
infinitely small steps; Karampatziakis, Langford 2011).
"""

from libc.math cimport fabs, sqrt

from streamlearn.losses.loss cimport Loss
from streamlearn.row cimport Row
from streamlearn.rules.guarded cimport Sized

from streamlearn.rules.rule import Field
from streamlearn.spec import number

DEF WEIGHT = 0
DEF SQUARES = 1
DEF SIZE = 2
DEF TINY = 1e-150
UPDATES = {"explicit": 0, "implicit": 1, "invariant": 2}


cdef class NormalizedAdaptive(Sized):
    """Normalised adaptive gradient steps, indifferent to the scale of each feature."""

    _names = ("rate", "update")
    _examples = ((), (4.0, "implicit"), (16.0, "invariant"))
    fields = (
        Field("weight", odd=True), Field("squares", merge="sum"), Field("size", merge="max")
    )
    scalars = (*Sized.scalars, "norm")

    def __init__(self, rate=1.0, update="explicit"):
        self.rate = number("NormalizedAdaptive", "rate", rate, above=0.0)
        if update not in UPDATES:
            raise ValueError(
                f"NormalizedAdaptive: update must be one of {', '.join(UPDATES)}, got {update!r}"
            )
        self.kind = update
        self.update_kind = UPDATES[update]

    @property
    def params(self):
        return {"rate": self.rate, "update": self.kind}

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        cdef double p = 0.0, x, m, g, c, reach = 0.0, norm = self.norm
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
            norm += u[i] * u[i]
            p += cell[WEIGHT] * x
        self.norm = norm
        self.t += 1.0
        p = self.clip(p)
        g = weight * loss.slope_at(p, y)
        self.watch_label(loss, y)
        if g == 0.0 or norm == 0.0:
            return p
        c = self.rate * sqrt(self.t / norm)
        for i in range(n):
            if u[i] != 0.0:
                cell = cells + 3 * slot[i]
                x = g * value[i]
                cell[SQUARES] += x * x
                u[i] *= c / sqrt(cell[SQUARES]) if cell[SQUARES] > 0.0 else 0.0
                reach += u[i] * value[i]
        g = self.slope_of_step(loss, p, y, g, weight, reach)
        for i in range(n):
            cells[3 * slot[i] + WEIGHT] -= g * u[i]
        return p

    cdef double slope_of_step(
        self, Loss loss, double p, double y, double g, double weight, double reach
    ) noexcept nogil:
        """The slope to step along, where a step of slope h moves the score by -h reach."""
        cdef double h
        if self.update_kind == 0:
            return g
        if self.update_kind == 1:
            h = weight * loss.implicit_at(p, y, weight * reach)
        else:
            h = weight * loss.flow_at(p, y, weight * reach)
        # at a kink such a step stands still; the slope that the papers choose leaves it
        return h if h != 0.0 else g
