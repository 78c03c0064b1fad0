"""A mixture of rules by exponentiated gradient on the score.

    p = sum pi_k p_k,  g = slope(p),  c_k += g (p_k - p),  V += g^2 sum pi_k (p_k - p)^2
    pi_k proportional to exp(-sqrt(ln K / V) c_k), then (1 - share) pi + share / K

It stays one linear model, w = sum pi_k w_k. Every member learns from its own score.
"""

from libc.math cimport INFINITY, exp, fabs, fmin, log, sqrt
from libc.stdlib cimport calloc, free

from streamlearn.losses.loss cimport FEW, Loss
from streamlearn.losses.total cimport Total, add_up, note, value_of
from streamlearn.core.row cimport Row, prefetch
from streamlearn.rules.guarded cimport Sized
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.sizes cimport Sizes
from streamlearn.rules.table cimport SlotTable, copied, paste, room

from streamlearn.errors import ModelFileError
from streamlearn.rules.coin_betting import CoinBetting
from streamlearn.rules.diagonal_newton import DiagonalNewton
from streamlearn.errors import IncompatibleError
from streamlearn.rules.needs import scalar_loss
from streamlearn.rules.normalized_adaptive import NormalizedAdaptive
from streamlearn.rules.sizes import KINDS
from streamlearn.core.parameters import number

DEF MOST = 32
DEF OUTLANDISH = 1e100
DEF LINE = 8  # numbers in a line of the cache
DEF CACHED = 65536  # numbers that are near anyway: half a MB


def default_rules():
    """Rules that disagree about step sizes."""
    return (
        NormalizedAdaptive(2.0, "explicit", "typical"),
        DiagonalNewton(3.0, "typical"),
        CoinBetting(),
        NormalizedAdaptive(16.0, "invariant", "typical"),
    )


cdef class Mixture(Rule):
    """Any rules side by side on the same rows, weighed by how well they predict.

    `rules` None: members that need no tuning. `share` is what every member keeps between them,
    so that one that was bad can come back. `shares`, `members` and `losses` (each member's
    progressive loss, its sum over the events) can be inspected.

    >>> Mixture([CoinBetting(), DiagonalNewton(3.0)]).rules
    (CoinBetting(alpha=1.0, beta=1.0), DiagonalNewton(prior=3.0, size='largest'))
    """

    _names = ("rules", "share")
    _examples = ((), ((CoinBetting(), NormalizedAdaptive(2.0)), 0.01))
    scalars = ("t", "variance")
    needs = (scalar_loss,)
    intercept = "inside"
    whole = True
    cdef readonly tuple rules
    cdef readonly double share
    cdef readonly tuple members
    cdef public double variance
    cdef int count
    # the members again, borrowed, for code without the GIL
    cdef void* each[MOST]
    # of the features, by their kind, for all members that measure them; and again, borrowed
    cdef dict sizes
    cdef int kinds
    cdef void* measures[MOST]
    cdef int seats  # how many numbers of a slot in the table are in use
    cdef bint recording
    cdef double boldness  # log K
    cdef double[MOST] pi
    cdef double[MOST] regrets
    cdef Total* totals
    # of the event that was met
    cdef double[MOST] scores
    cdef double[MOST] slopes
    # prefix sums of pi over past steps, for averages
    cdef double* history
    cdef Py_ssize_t steps, room_for
    cdef double base

    def __init__(self, rules=None, share=1e-3):
        self.rules = default_rules() if rules is None else tuple(rules)
        if not 1 <= len(self.rules) <= MOST:
            raise ValueError(f"Mixture: needs 1 to {MOST} rules, got {len(self.rules)}")
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise ValueError(f"Mixture: rules must be rules, got {rule!r}")
        self.share = number("Mixture", "share", share, low=0.0, high=1.0)

    def __dealloc__(self):
        free(self.history)
        free(self.totals)

    def __sizeof__(self):
        sizes = sum([sizes.__sizeof__() for sizes in (self.sizes or {}).values()])
        return Rule.__sizeof__(self) + self.room_for * self.count * sizeof(double) + sizes

    def start(self):
        cdef int k
        self.members = tuple(rule.bind(self.penalty, self.loss) for rule in self.rules)
        if self.penalty.on_simplex:
            raise IncompatibleError(
                "Mixture: weights on a simplex do not mix with an intercept; use the rule alone"
            )
        self.count = len(self.members)
        self.fetches = True
        self.boldness = log(<double>self.count)
        self.totals = <Total*>calloc(self.count, sizeof(Total))
        if self.totals == NULL:
            raise MemoryError
        sized = [member for member in self.members if isinstance(member, Sized)]
        self.sizes = {name: KINDS[name]() for name in sorted({member.size for member in sized})}
        for k, sizes in enumerate(self.sizes.values()):
            self.measures[k] = <void*>sizes
        self.kinds = len(self.sizes)
        for member in sized:
            member.share(self.sizes)
        self.lay_table()
        self.lazy = all(type(m).whole and m.lazy for m in self.members)
        self.watchful = any((<Rule>m).watchful for m in self.members)
        for k in range(self.count):
            self.pi[k] = 1.0 / self.count
            self.each[k] = <void*>self.members[k]

    def lay_table(self):
        """One table for all that strides, a slot of which begins with a line of the cache."""
        seated = [*self.sizes.values(), *(m for m in self.members if m.strides)]
        self.seats = sum([one.width for one in seated])
        padded = (self.seats + LINE - 1) // LINE * LINE
        self.table = SlotTable(padded if self.seats > LINE // 2 else self.seats)
        offset = 0
        for one in seated:
            one.sit(self.table, offset)
            offset += one.width

    cdef int grow(self, Py_ssize_t n) except -1:
        self.table.reserve(n)
        for sizes in self.sizes.values():
            (<Sizes>sizes).grow(n)
        for member in self.members:
            (<Rule>member).grow(n)
        self.n = max(self.n, n)
        if self.recording:
            self.reserve(n)
        return 0

    # -- one row --------------------------------------------------------------------------------

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double w = 0.0
        cdef int k
        for k in range(self.count):
            w += self.pi[k] * (<Rule>self.each[k]).weight(j)
        return w

    cdef double predict(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef int k
        for k in range(self.kinds):
            (<Sizes>self.measures[k]).show(row)
        for k in range(self.count):
            p += self.pi[k] * (<Rule>self.each[k]).predict(row)
        return p

    cdef void see(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        cdef int k
        for k in range(self.count):
            if (<Rule>self.each[k]).watchful:
                (<Rule>self.each[k]).see(row, loss_at_zero, weight)

    cdef void fetch(self, Row* row, Py_ssize_t shift) noexcept nogil:
        """All that a row needs of a table that no cache holds, at once."""
        cdef const double* cells = self.table.cells
        cdef Py_ssize_t i, line, width = self.table.width
        if self.n * width < CACHED:
            return
        for i in range(row.n):
            for line in range(0, width, LINE):
                prefetch(cells + width * (row.slot[i] + shift) + line)

    cdef double meet(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef int k
        for k in range(self.kinds):
            (<Sizes>self.measures[k]).see(row)
        for k in range(self.count):
            self.scores[k] = (<Rule>self.each[k]).meet(row)
        for k in range(self.count):
            if not fabs(self.scores[k]) <= OUTLANDISH:
                # a member that diverges must not take the others with it
                self.scores[k] = 0.0
            p += self.pi[k] * self.scores[k]
        return p

    cdef void learn_met(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double d, spread = 0.0, g = weight * slope, rate, least, total = 0.0
        cdef int k
        # all slopes before all moves, so that their exponentials are under way together
        for k in range(self.count):
            self.slopes[k] = loss.slope_at(self.scores[k], y)
        for k in range(self.count):
            (<Rule>self.each[k]).learn_met(row, loss, y, weight, self.scores[k], self.slopes[k])
            if (<Rule>self.each[k]).tired:
                (<Rule>self.each[k]).rest()
        for k in range(self.count):
            note(&self.totals[k], self.scores[k], y, weight, self.slopes[k])
            if self.totals[k].last.n == FEW:
                add_up(&self.totals[k], loss.sum_of(&self.totals[k].last))
        least = INFINITY
        for k in range(self.count):
            d = self.scores[k] - p
            self.regrets[k] += g * d
            least = fmin(least, self.regrets[k])
            spread += self.pi[k] * d * d
        self.variance += g * g * spread
        if self.variance > 0.0:
            rate = sqrt(self.boldness / self.variance)
            for k in range(self.count):
                self.pi[k] = exp(rate * (least - self.regrets[k]))
                total += self.pi[k]
            total = (1.0 - self.share) / total
            for k in range(self.count):
                self.pi[k] = self.pi[k] * total + self.share / self.count
        self.t += 1.0
        if self.recording:
            self.record()

    # -- averages --------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t n) except -1:
        if n + 1 > self.room_for:
            self.room_for = n + 1
            self.history = <double*>room(
                self.history, self.room_for * self.count * sizeof(double)
            )
        return 0

    cdef void record(self) noexcept nogil:
        cdef double* last = self.history + self.steps * self.count
        cdef int k
        for k in range(self.count):
            last[self.count + k] = last[k] + self.pi[k]
        self.steps += 1
        self.tired = self.steps >= self.room_for - 1

    cdef int keep_ledger(self) except -1:
        cdef int k
        self.recording = True
        self.reserve(max(1024, self.n))
        self.base = self.t
        self.steps = 0
        for k in range(self.count):
            self.history[k] = 0.0
        self.record()
        return 0

    cdef double between(self, Py_ssize_t j, double a, double b) noexcept nogil:
        """Members keep the weight of a slot left alone; only their shares move."""
        cdef double* first = self.history + <Py_ssize_t>(a - self.base) * self.count
        cdef double* last = self.history + <Py_ssize_t>(b - self.base) * self.count
        cdef double total = 0.0
        cdef int k
        if b <= a:
            return 0.0
        for k in range(self.count):
            total += (last[k] - first[k]) * (<Rule>self.each[k]).weight(j)
        return total

    cdef void rest(self) noexcept nogil:
        cdef int k
        if self.recording:
            self.base = self.t
            self.steps = 0
            for k in range(self.count):
                self.history[k] = 0.0
            self.record()
        self.tired = False

    # -- what users see, and state -----------------------------------------------------------------

    @property
    def shares(self):
        """pi, one number for each member."""
        return [self.pi[k] for k in range(self.count)]

    @property
    def losses(self):
        """The sum of each member's losses, before learning."""
        return [value_of(&self.totals[k], self.loss) for k in range(self.count)]

    def bound(self, u):
        return None, "no bound is proved for Mixture"

    def state(self):
        cdef Py_ssize_t size = (self.steps + 1) * self.count
        state = {
            "t": self.t,
            "variance": self.variance,
            "n": self.n,
            "pi": copied(self.pi, self.count),
            "regrets": copied(self.regrets, self.count),
            "totals": [self.total_state(k) for k in range(self.count)],
            "cells": self.table.part(0, self.seats, self.n),
            "members": [
                member.scalars_now() if member.strides else member.state()
                for member in self.members
            ],
        }
        if self.recording:
            state["base"] = self.base
            state["history"] = copied(self.history, size)
        return state

    def total_state(self, int k):
        """The losses of member k, and the events whose losses are not added up yet."""
        cdef Total* total = self.totals + k
        last = total.last
        noted = [
            [last.score[i], last.label[i], last.weight[i], last.slope[i]] for i in range(last.n)
        ]
        return [total.sum, total.rest, noted]

    def restore(self, state):
        if any([len(state[name]) != self.count for name in ("pi", "regrets", "totals", "members")]):
            raise ModelFileError(f"not the state of a Mixture of {self.count} rules")
        if state["cells"].shape != (state["n"], self.seats):
            raise ModelFileError(f"not the state of this Mixture: {state['cells'].shape} numbers")
        self.grow(state["n"])
        self.t = state["t"]
        self.variance = state["variance"]
        paste(self.pi, state["pi"])
        paste(self.regrets, state["regrets"])
        for k, total in enumerate(state["totals"]):
            self.totals[k].sum, self.totals[k].rest, noted = total
            self.totals[k].last.n = 0
            for score, label, weight, slope in noted:
                note(&self.totals[k], score, label, weight, slope)
        self.table.paste(0, state["cells"])
        for member, saved in zip(self.members, state["members"], strict=True):
            if member.strides:
                member.restore_scalars(saved)
            else:
                member.restore(saved)
        if "history" in state:
            self.recording = True
            self.steps = len(state["history"]) // self.count - 1
            self.reserve(max(1024, self.n, self.steps + 1))
            paste(self.history, state["history"])
            self.base = state["base"]

    def mirror(self):
        for member in self.members:
            member.mirror()
