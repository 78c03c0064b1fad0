"""Coin betting, slot by slot ([Orabona17]).

Each slot bets a fraction of its winnings R on the sign of its next gradient:

    m = largest |x| and |g x|,  G = sum |g x|,  theta = -sum g x,  R = max(0, R - g x w)
    w = (alpha + R) theta / (m (G + beta m))
"""

from libc.math cimport fabs

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport (
    Pair, any_above, first, firsts, subtract, load, partner, maximum, divide, add, second,
    seconds, absolute, store, multiply, make_pair, load_values, select_above,
)
from streamlearn.core.row cimport Row
from streamlearn.rules.self_tuning cimport SelfTuning

from streamlearn.rules.rule import Field
from streamlearn.core.parameters import number

DEF WEIGHT = 0
DEF LARGEST = 1
DEF ABSOLUTE = 2
DEF SUM = 3
DEF REWARD = 4
DEF TINY = 1e-150
DEF HUGE = 1e150


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
        Field("weight", flips_sign=True),  # derived from the others
        Field("largest", merge="max"),
        Field("absolute", merge="sum"),
        Field("sum", merge="sum", flips_sign=True),
        Field("reward", merge="sum"),
    )
    cdef readonly double alpha, beta
    cdef double unclipped_score  # of the event scored last

    def __init__(self, alpha=1.0, beta=1.0):
        self.alpha = number("CoinBetting", "alpha", alpha, above=0.0)
        self.beta = number("CoinBetting", "beta", beta, above=0.0)

    cdef inline double bet(self, const double* cell, double m) noexcept nogil:
        if not TINY < m < HUGE:
            return 0.0  # its square is not a normal number
        return (self.alpha + cell[REWARD]) * cell[SUM] / (m * (cell[ABSOLUTE] + self.beta * m))

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cell(j)[WEIGHT]

    cdef double predict(self, Row* row) noexcept nogil:
        """Score like `score_for_learning`: the row's own |x| counts among the largest seen."""
        return self.shown(row, False)

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        return self.shown(row, True)

    cdef inline double shown(self, Row* row, bint learned) noexcept nogil:
        cdef double p, lost
        cdef Pair x, w, whole, part, score = make_pair(0.0, 0.0), lost_pair = score
        # local copies, because stores would force these to be reloaded
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        for i in range(0, n, 2):
            j = partner(i, n)
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            x = load_values(value, i, j)
            w = firsts(load(a), load(b))
            if any_above(absolute(x), seconds(load(a), load(b))):
                w = make_pair(
                    self.enlarged(a, first(x), learned), self.enlarged(b, second(x), learned)
                )
            # as in `two_sum`
            x = multiply(w, x)
            whole = add(score, x)
            part = subtract(whole, score)
            lost_pair = add(
                lost_pair, add(subtract(score, subtract(whole, part)), subtract(x, part))
            )
            score = whole
        p = first(score)
        lost = first(lost_pair) + second(lost_pair)
        two_sum(second(score), &p, &lost)
        p += lost
        if learned:
            self.unclipped_score = p
        return self.clip(p)

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double g = weight * slope
        cdef Pair x, m, w, gx, reward, sizes, total, part, none = make_pair(0.0, 0.0)
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        self.t += 1.0
        self.watch_label(loss, y)
        # where the score is clipped, a step further out wins nothing: betting on it would make the
        # weights grow without bound
        if g == 0.0 or g * (self.unclipped_score - p) < 0.0:
            return
        for i in range(0, n, 2):
            j = partner(i, n)
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            gx = multiply(make_pair(g, g), load_values(value, i, j))
            gx = select_above(make_pair(HUGE, HUGE), absolute(gx), gx)
            m = absolute(gx)
            w = load(a + WEIGHT)
            x = load(b + WEIGHT)
            reward = subtract(make_pair(a[REWARD], b[REWARD]), multiply(gx, firsts(w, x)))
            reward = maximum(reward, none)
            sizes = load(a + ABSOLUTE)
            total = load(b + ABSOLUTE)
            part = seconds(sizes, total)
            sizes = add(firsts(sizes, total), m)
            total = subtract(part, gx)
            m = maximum(seconds(w, x), m)
            w = divide(
                multiply(add(make_pair(self.alpha, self.alpha), reward), total),
                multiply(m, add(sizes, multiply(make_pair(self.beta, self.beta), m))),
            )
            w = select_above(m, make_pair(TINY, TINY), select_above(make_pair(HUGE, HUGE), m, w))
            b[REWARD] = second(reward)
            store(b + ABSOLUTE, seconds(sizes, total))
            store(b + WEIGHT, seconds(w, m))
            a[REWARD] = first(reward)
            store(a + ABSOLUTE, firsts(sizes, total))
            store(a + WEIGHT, firsts(w, m))

    cdef double enlarged(self, double* cell, double x, bint learned) noexcept nogil:
        """Return the weight of a feature whose |x| may exceed all earlier gradients and values."""
        cdef double m = fabs(x), w
        if m <= cell[LARGEST]:
            return cell[WEIGHT]
        w = self.bet(cell, m)
        if learned:
            cell[LARGEST] = m
            cell[WEIGHT] = w
        return w
