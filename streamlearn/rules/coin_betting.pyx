"""Coin betting, slot by slot ([Orabona17]).

Each slot bets a fraction of its winnings R on the sign of its next gradient:

    m = largest |x| and |g x|,  G = sum |g x|,  theta = -sum g x,  R = max(0, R - g x w)
    w = (alpha + R) theta / (m (G + beta m))
"""

from libc.math cimport fabs

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport (
    Pair,
    any_above,
    first,
    firsts,
    less,
    load,
    mate,
    most,
    over,
    plus,
    second,
    seconds,
    size,
    store,
    times,
    two,
    values,
    where_above,
)
from streamlearn.core.row cimport Row
from streamlearn.rules.guarded cimport Guarded

from streamlearn.rules.rule import Field
from streamlearn.core.parameters import number

DEF WEIGHT = 0
DEF LARGEST = 1
DEF ABSOLUTE = 2
DEF SUM = 3
DEF REWARD = 4
DEF TINY = 1e-150
DEF HUGE = 1e150


cdef inline void add(double x, double* total, double* lost) noexcept nogil:
    """total += x, and the rounding error to `lost` (two-sum, [Knuth97] section 4.2.2).

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
    cdef double unguarded  # the score of the event that was met, before it was clipped

    def __init__(self, alpha=1.0, beta=1.0):
        self.alpha = number("CoinBetting", "alpha", alpha, above=0.0)
        self.beta = number("CoinBetting", "beta", beta, above=0.0)

    cdef inline double bet(self, const double* cell, double m) noexcept nogil:
        if not TINY < m < HUGE:
            return 0.0  # its square is no number
        return (self.alpha + cell[REWARD]) * cell[SUM] / (m * (cell[ABSOLUTE] + self.beta * m))

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cells[self.stride * j + WEIGHT]

    cdef double predict(self, Row* row) noexcept nogil:
        """As `meet` scores it: with the row's own |x| among the largest seen."""
        return self.shown(row, False)

    cdef double meet(self, Row* row) noexcept nogil:
        return self.shown(row, True)

    cdef inline double shown(self, Row* row, bint learned) noexcept nogil:
        cdef double p, lost
        cdef Pair x, w, whole, part, score = two(0.0, 0.0), lost_pair = score
        # by names of their own, or they would be read anew after every store
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        for i in range(0, n, 2):
            j = mate(i, n)
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            x = values(value, i, j)
            w = firsts(load(a), load(b))
            if any_above(size(x), seconds(load(a), load(b))):
                w = two(self.enlarged(a, first(x), learned), self.enlarged(b, second(x), learned))
            # as in `add`
            x = times(w, x)
            whole = plus(score, x)
            part = less(whole, score)
            lost_pair = plus(lost_pair, plus(less(score, less(whole, part)), less(x, part)))
            score = whole
        p = first(score)
        lost = first(lost_pair) + second(lost_pair)
        add(second(score), &p, &lost)
        p += lost
        if learned:
            self.unguarded = p
        return self.clip(p)

    cdef void learn_met(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double g = weight * slope
        cdef Pair x, m, w, gx, reward, absolute, total, part, none = two(0.0, 0.0)
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef const double* value = row.value
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        self.t += 1.0
        self.watch_label(loss, y)
        # where the guard holds the score back, a step further out wins nothing: bets on it would
        # make the weights grow without end
        if g == 0.0 or g * (self.unguarded - p) < 0.0:
            return
        for i in range(0, n, 2):
            j = mate(i, n)
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            gx = times(two(g, g), values(value, i, j))
            gx = where_above(two(HUGE, HUGE), size(gx), gx)
            m = size(gx)
            w = load(a + WEIGHT)
            x = load(b + WEIGHT)
            reward = less(two(a[REWARD], b[REWARD]), times(gx, firsts(w, x)))
            reward = most(reward, none)
            absolute = load(a + ABSOLUTE)
            total = load(b + ABSOLUTE)
            part = seconds(absolute, total)
            absolute = plus(firsts(absolute, total), m)
            total = less(part, gx)
            m = most(seconds(w, x), m)
            w = over(
                times(plus(two(self.alpha, self.alpha), reward), total),
                times(m, plus(absolute, times(two(self.beta, self.beta), m))),
            )
            w = where_above(m, two(TINY, TINY), where_above(two(HUGE, HUGE), m, w))
            b[REWARD] = second(reward)
            store(b + ABSOLUTE, seconds(absolute, total))
            store(b + WEIGHT, seconds(w, m))
            a[REWARD] = first(reward)
            store(a + ABSOLUTE, firsts(absolute, total))
            store(a + WEIGHT, firsts(w, m))

    cdef double enlarged(self, double* cell, double x, bint learned) noexcept nogil:
        """The weight of a feature that may be larger than all gradients and values before."""
        cdef double m = fabs(x), w
        if m <= cell[LARGEST]:
            return cell[WEIGHT]
        w = self.bet(cell, m)
        if learned:
            cell[LARGEST] = m
            cell[WEIGHT] = w
        return w
