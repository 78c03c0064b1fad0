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


cdef inline void add(double x, double* total, double* lost) noexcept nogil:
    """total += x, and what the rounding took to `lost` (Knuth's two-sum).

    Bets on labels that are numbers are chaotic: without it the order of an event's features, by a
    last digit in its score, would show in the first digits a hundred events later.
    """
    cdef double whole = total[0] + x
    cdef double part = whole - total[0]
    lost[0] += (total[0] - (whole - part)) + (x - part)
    total[0] = whole


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
        cdef double p = 0.0, lost = 0.0
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cells + 4 * row.slot[i]
            add(self.bet(cell, fmax(cell[LARGEST], fabs(row.value[i]))) * row.value[i], &p, &lost)
        return self.clip(p + lost)

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        cdef double p = 0.0, lost = 0.0, g, gx
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cells + 4 * row.slot[i]
            cell[LARGEST] = fmax(cell[LARGEST], fabs(row.value[i]))
            add(self.bet(cell, cell[LARGEST]) * row.value[i], &p, &lost)
        self.t += 1.0
        p = self.clip(p + lost)
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
