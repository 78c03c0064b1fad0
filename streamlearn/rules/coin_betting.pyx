"""Coin betting, slot by slot.

Orabona, Tommasi, Training Deep Networks without Learning Rates, 2017.

Each slot bets a fraction of its winnings R on the sign of its next gradient:

    m = largest |x| and |g x|,  G = sum |g x|,  theta = -sum g x,  R = max(0, R - g x w)
    w = (alpha + R) theta / (m (G + beta m))
"""

from libc.math cimport fabs, fmax

from streamlearn.losses.loss cimport Loss
from streamlearn.row cimport Row
from streamlearn.rules.guarded cimport Guarded

from streamlearn.rules.rule import Field
from streamlearn.spec import number

DEF LARGEST = 0
DEF ABSOLUTE = 1
DEF SUM = 2
DEF REWARD = 3


cdef class CoinBetting(Guarded):
    """Coin betting on each slot: no step size; bold where gradients agree."""

    _names = ("alpha", "beta")
    _examples = ((), (0.5, 2.0))
    fields = (
        Field("largest", merge="max"),
        Field("absolute", merge="sum"),
        Field("sum", merge="sum", odd=True),
        Field("reward", merge="sum"),
    )
    cdef readonly double alpha, beta

    def __init__(self, alpha=1.0, beta=1.0):
        self.alpha = number("CoinBetting", "alpha", alpha, above=0.0)
        self.beta = number("CoinBetting", "beta", beta, above=0.0)

    cdef inline double bet(self, const double* cell, double m) noexcept nogil:
        if m == 0.0:
            return 0.0
        return (self.alpha + cell[REWARD]) * cell[SUM] / (m * (cell[ABSOLUTE] + self.beta * m))

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.bet(self.cells + 4 * j, self.cells[4 * j + LARGEST])

    cdef double predict(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cells + 4 * row.slot[i]
            p += self.bet(cell, fmax(cell[LARGEST], fabs(row.value[i]))) * row.value[i]
        return self.clip(p)

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        cdef double p = 0.0, g, gx
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cells + 4 * row.slot[i]
            cell[LARGEST] = fmax(cell[LARGEST], fabs(row.value[i]))
            p += self.bet(cell, cell[LARGEST]) * row.value[i]
        self.t += 1.0
        p = self.clip(p)
        g = weight * loss.slope_at(p, y)
        self.watch_label(loss, y)
        if g == 0.0:
            return p
        for i in range(row.n):
            gx = g * row.value[i]
            cell = self.cells + 4 * row.slot[i]
            cell[REWARD] = fmax(0.0, cell[REWARD] - gx * self.bet(cell, cell[LARGEST]))
            cell[LARGEST] = fmax(cell[LARGEST], fabs(gx))
            cell[ABSOLUTE] += fabs(gx)
            cell[SUM] -= gx
        return p
