"""Coin betting, slot by slot.

Orabona, Tommasi, Training Deep Networks without Learning Rates, 2017.

Each slot bets a fraction of its winnings R on the sign of its next gradient:

    m = largest |x| and |g x|,  G = sum |g x|,  theta = -sum g x,  R = max(0, R - g x w)
    w = (alpha + R) theta / (m (G + beta m))
"""

from libc.math cimport fabs

from streamlearn.losses.loss cimport Loss
from streamlearn.row cimport Row
from streamlearn.rules.guarded cimport Guarded

from streamlearn.rules.rule import Field
from streamlearn.spec import number

DEF WEIGHT = 0
DEF LARGEST = 1
DEF ABSOLUTE = 2
DEF SUM = 3
DEF REWARD = 4
DEF WIDTH = 5
DEF TINY = 1e-150
DEF HUGE = 1e150


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
        Field("weight", odd=True),  # as it follows from the others
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
        if not TINY < m < HUGE:
            return 0.0  # its square is no number
        return (self.alpha + cell[REWARD]) * cell[SUM] / (m * (cell[ABSOLUTE] + self.beta * m))

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cells[WIDTH * j + WEIGHT]

    cdef double predict(self, Row* row) noexcept nogil:
        """As `learn` scores it: with the row's own |x| among the largest seen."""
        cdef double p = 0.0, lost = 0.0, x, m
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cells + WIDTH * row.slot[i]
            x = row.value[i]
            m = fabs(x)
            add((self.bet(cell, m) if m > cell[LARGEST] else cell[WEIGHT]) * x, &p, &lost)
        return self.clip(p + lost)

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        cdef double p = 0.0, lost = 0.0, x, m, g, gx
        cdef double* cell
        # by names of their own, or they would be read anew after every store
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, n = row.n
        for i in range(n):
            cell = cells + WIDTH * slot[i]
            x = value[i]
            m = fabs(x)
            if m > cell[LARGEST]:
                cell[LARGEST] = m
                cell[WEIGHT] = self.bet(cell, m)
            add(cell[WEIGHT] * x, &p, &lost)
        self.t += 1.0
        p = self.clip(p + lost)
        g = weight * loss.slope_at(p, y)
        self.watch_label(loss, y)
        if g == 0.0:
            return p
        for i in range(n):
            gx = g * value[i]
            if gx != 0.0 and fabs(gx) < HUGE:
                cell = cells + WIDTH * slot[i]
                m = cell[REWARD] - gx * cell[WEIGHT]
                cell[REWARD] = m if m > 0.0 else 0.0
                m = fabs(gx)
                if m > cell[LARGEST]:
                    cell[LARGEST] = m
                cell[ABSOLUTE] += m
                cell[SUM] -= gx
                cell[WEIGHT] = self.bet(cell, cell[LARGEST])
        return p
