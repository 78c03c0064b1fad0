"""The self-tuning rules under l1 and l2, in FTRL-proximal form (rules/composite.pyx).

    adaptive  D = s E,  E = sqrt(G) / (rate pace),  pace = sqrt(t / N)
              z += h x - (E_new - E) s w
              normalized adaptive steps [Ross13]; h is g, or the slope of an implicit or
              invariant step
    newton    D = prior s^2 + sum b,  b = curvature x^2
              z += h x - b w
              h is the slope at the end of the step
    coin      D = m (A + beta m) / (alpha + R),  A = sum |g x|
              z += g x,  R = max(0, R - g x w - l1 |w| (events since the last))
              coin betting [Orabona17]; m is the largest |x| and |g x|

s is the size of a feature, and s w stays when it changes.
"""

from libc.math cimport fabs, sqrt

from streamlearn.losses.loss cimport DBL_MAX, Loss
from streamlearn.core.row cimport Row, soft
from streamlearn.rules.composite cimport (
    SCALE, SIZE, SQUARES, Z, AdaptiveComposite, Composite, SizedComposite,
)
from streamlearn.rules.self_tuning cimport moving_slope

import numpy as np

from streamlearn.rules.slot_state import PerSlot

cdef enum:
    CURVATURE = SIZE + 1  # of newton
    ABSOLUTE = Z + 1  # and the rest of coin betting
    REWARD
    LARGEST
    LAST


cdef class FTRLAdaptive(AdaptiveComposite):
    """`NormalizedAdaptive` under l1 and l2."""

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef const double* cell = self.cell(j)
        return self.weight_for(j, cell[SIZE] * cell[SCALE])

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double h = self.slope_of_step(row, loss, y, weight, p, slope), E
        cdef const double* weights = self.scratch  # times sizes
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            if row.value[i] != 0.0:
                cell = self.cell(row.slot[i])
                E = sqrt(cell[SQUARES]) / self.pace
                cell[Z] += h * row.value[i] - (E - cell[SCALE]) * weights[i]
                cell[SCALE] = E
                cell[SIZE] = self.size_of(row.slot[i])


cdef class FTRLNewton(SizedComposite):
    """`DiagonalNewton` under l1 and l2."""

    _names = ("prior", "size")
    fields = (*SizedComposite.fields, PerSlot("curvature"))
    cdef readonly double prior

    def __init__(self, prior, size):
        self.prior, self.size = prior, size

    cdef double denominator(self, const double* cell) noexcept nogil:
        return self.prior * cell[SIZE] * cell[SIZE] + cell[CURVATURE]

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.weight_for(j, self.denominator(self.cell(j)))

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double bend = weight * loss.curvature_at(p, y), g = weight * slope, reach = 0.0, x, h
        cdef double D, b
        cdef double* cell
        cdef Py_ssize_t i, j
        if bend == 0.0:
            # a piecewise linear loss: use the squared slope, as in online Newton steps
            bend = weight * slope * slope
        self.t += 1.0
        self.watch_label(loss, y)
        for i in range(row.n):
            j, x = row.slot[i], row.value[i]
            cell = self.cell(j)
            if x != 0.0:
                cell[SIZE] = self.size_of(j)
                cell[SQUARES] += g * x * g * x
                D = self.denominator(cell)
                if D > 0.0:
                    reach += x * x / D
        h = moving_slope(True, loss, p, y, slope, weight, reach)
        for i in range(row.n):
            j, x = row.slot[i], row.value[i]
            cell = self.cell(j)
            b = bend * x * x
            cell[Z] += h * x
            cell[Z] -= b * self.weight(j)
            cell[CURVATURE] += b


cdef class FTRLCoinBetting(Composite):
    """`CoinBetting` under l1 and l2."""

    _names = ("alpha", "beta")
    fields = (
        *Composite.fields,
        *[PerSlot(name) for name in ("absolute", "reward", "largest", "last")],
    )
    cdef readonly double alpha, beta
    cdef double unclipped_score  # of the event scored last

    def __init__(self, alpha, beta):
        self.alpha, self.beta, self.size = alpha, beta, None

    cdef double weight_with(self, Py_ssize_t j, double m) noexcept nogil:
        """Return the weight if the largest |x| were m."""
        cdef const double* cell = self.cell(j)
        cdef double z = soft(cell[Z], self.threshold(j)), stake
        m = m if m > cell[LARGEST] else cell[LARGEST]
        stake = m * (cell[ABSOLUTE] + self.beta * m)
        if z == 0.0 or stake <= 0.0:
            return 0.0
        stake = (self.alpha + cell[REWARD]) / stake
        return -z * stake / (1.0 + self.ridge(j) * stake)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.weight_with(j, 0.0)

    cdef double sized_score(self, Row* row) noexcept nogil:
        """Return the score, where the row's own |x| counts among the largest seen."""
        cdef double* weights = self.scratch_for(row.n)
        cdef double p = 0.0
        cdef Py_ssize_t i
        for i in range(row.n):
            weights[i] = self.weight_with(row.slot[i], fabs(row.value[i]))
            p += weights[i] * row.value[i]
        self.unclipped_score = p
        return self.clip(p)

    def scoring(self, sizes=None):
        """Return how `predict` computes a score."""
        cells = self.slots()
        columns = {
            "weight": self.weights(), "largest": cells[:, LARGEST], "absolute": cells[:, ABSOLUTE],
            "wealth": self.alpha + cells[:, REWARD],
            "kept": np.array([-soft(self.cell(j)[Z], self.threshold(j)) for j in range(self.n)]),
            "ridge": np.array([self.ridge(j) for j in range(self.n)]),
        }
        return {
            "kind": "coins", "low": self.low, "high": self.high, "beta": self.beta,
            "least": 0.0, "most": DBL_MAX, "columns": columns,
        }

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double g = weight * slope, x, gx, w, m, paid
        cdef const double* weights = self.scratch
        cdef double* cell
        cdef Py_ssize_t i, j
        self.t += 1.0
        self.watch_label(loss, y)
        if g * (self.unclipped_score - p) < 0.0:
            g = 0.0  # beyond the clipped score there is nothing to win
        for i in range(row.n):
            j, x, w = row.slot[i], row.value[i], weights[i]
            if x == 0.0:
                continue
            cell, gx, m = self.cell(j), g * x, fabs(x)
            paid = self.penalty.l1 * fabs(w) * (self.t - cell[LAST])
            w = cell[REWARD] - gx * w - (paid if j >= self.free_slots else 0.0)
            m = m if m > fabs(gx) else fabs(gx)
            cell[REWARD] = w if w > 0.0 else 0.0
            cell[LARGEST] = m if m > cell[LARGEST] else cell[LARGEST]
            cell[ABSOLUTE] += fabs(gx)
            cell[SQUARES] += gx * gx
            cell[Z] += gx
            cell[LAST] = self.t
