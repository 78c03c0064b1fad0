"""Coin betting, slot by slot ([Orabona17]).

Each slot bets a fraction of its winnings R on the sign of its next gradient:

    m = largest |x| and |g x|,  G = sum |g x|,  theta = -sum g x,  R = max(0, R - g x w)
    w = (alpha + R) theta / (m (G + beta m))

Under l1 or l2, a bet is one soft threshold (rules/ftrl_forms.pyx).
"""

from libc.math cimport fabs

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.rules.self_tuning cimport SelfTuning

from streamlearn.rules.ftrl_forms import FTRLCoinBetting
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

DEF WEIGHT = 0
DEF LARGEST = 1
DEF ABSOLUTE = 2
DEF SUM = 3
DEF REWARD = 4
DEF TINY = 1e-150
DEF HUGE = 1e150


cdef inline double larger(double x, double y) noexcept nogil:
    """The maximum, in one instruction: fmax() is a function call."""
    return x if x > y else y


cdef inline void two_sum(double x, double* total, double* lost) noexcept nogil:
    """total += x, and the rounding error to `lost` (two-sum, [Knuth97] section 4.2.2).

    Bets on numeric labels are chaotic: without compensation, the order of an event's features would
    change the last digit of its score, and the first digits a hundred events later.
    """
    cdef double whole = total[0] + x
    cdef double part = whole - total[0]
    lost[0] += (total[0] - (whole - part)) + (x - part)
    total[0] = whole


cdef class CoinBetting(SelfTuning):
    """Coin betting on each slot: no step size, and larger bets where gradients agree."""

    _names = ("alpha", "beta")
    _examples = ((), (0.5, 2.0))
    fields = (
        PerSlot("weight", merge="derived", flips_sign=True),
        PerSlot("largest", merge="max"),
        PerSlot("absolute", merge="seen"),
        PerSlot("sum", merge="slotwise", flips_sign=True),
        PerSlot("reward", merge="slotwise"),
    )
    evidence = "absolute"
    cdef readonly double alpha, beta
    cdef double unclipped_score  # of the event scored last

    def __init__(self, alpha=1.0, beta=1.0):
        self.alpha = number("CoinBetting", "alpha", alpha, above=0.0)
        self.beta = number("CoinBetting", "beta", beta, above=0.0)

    def implementation(self, Penalty penalty):
        """Use the form that takes l1 and l2, if there is such a penalty."""
        return (FTRLCoinBetting if penalty.l1 + penalty.l2 > 0.0 else type(self))(**self.params)

    cdef inline double bet(self, double m, double G, double theta, double R) noexcept nogil:
        """The formula above; 0 where m^2 is not a normal number."""
        cdef double w = (self.alpha + R) * theta / (m * (G + self.beta * m))
        return w if TINY < m < HUGE else 0.0

    def derive(self):
        cdef Py_ssize_t j
        cdef double* cell
        for j in range(self.n):
            cell = self.cell(j)
            cell[REWARD] = larger(0.0, cell[REWARD])
            cell[WEIGHT] = 0.0
            if cell[LARGEST] > 0.0:
                cell[WEIGHT] = self.bet(cell[LARGEST], cell[ABSOLUTE], cell[SUM], cell[REWARD])

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cell(j)[WEIGHT]

    def scoring(self):
        """Return how `predict` computes a score."""
        weight, largest, sizes, total, reward = self.table.copy_columns(
            self.offset, self.width, self.n
        ).T
        return {
            "kind": "bets",
            "low": self.low,
            "high": self.high,
            "beta": self.beta,
            "least": TINY,
            "most": HUGE,
            "columns": {
                "weight": weight,
                "largest": largest,
                "absolute": sizes,
                "wealth": (self.alpha + reward) * total,
            },
        }

    cdef double predict(self, Row* row) noexcept nogil:
        return self.score_with_row(row, False)

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        return self.score_with_row(row, True)

    cdef inline double score_with_row(self, Row* row, bint learned) noexcept nogil:
        """Return the score, where the row's own |x| counts among the largest seen."""
        cdef double p = 0.0, lost = 0.0, w, m
        cdef double* cell
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, n = row.n, stride = self.stride
        for i in range(n):
            cell = cells + stride * slot[i]
            w = cell[WEIGHT]
            m = fabs(value[i])
            if m > cell[LARGEST]:
                w = self.bet(m, cell[ABSOLUTE], cell[SUM], cell[REWARD])
                if learned:
                    cell[LARGEST] = m
                    cell[WEIGHT] = w
            two_sum(w * value[i], &p, &lost)
        p += lost
        if learned:
            self.unclipped_score = p
        return self.clip(p)

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double g = weight * slope, gx, R, m, G, theta
        cdef double* cell
        cdef double* cells = self.cells
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, n = row.n, stride = self.stride
        self.t += 1.0
        self.watch_label(loss, y)
        # where the score is clipped, a step further out wins nothing: betting on it would make the
        # weights grow without bound
        if g == 0.0 or g * (self.unclipped_score - p) < 0.0:
            return
        for i in range(n):
            cell = cells + stride * slot[i]
            gx = g * value[i]
            gx = gx if fabs(gx) < HUGE else 0.0
            R = larger(0.0, cell[REWARD] - gx * cell[WEIGHT])
            m = larger(cell[LARGEST], fabs(gx))
            G = cell[ABSOLUTE] + fabs(gx)
            theta = cell[SUM] - gx
            cell[WEIGHT] = self.bet(m, G, theta, R)
            cell[LARGEST] = m
            cell[ABSOLUTE] = G
            cell[SUM] = theta
            cell[REWARD] = R
