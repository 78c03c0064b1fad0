"""Truncated gradient ([Langford09]; [Xiao10] equation (29)).

Every K-th step, weights up to the ceiling theta move toward 0 by alpha_t lambda K, and those that
would cross it become 0. Untouched slots are lazy: `drift` is the sum of the truncations so far.
"""

from libc.math cimport INFINITY, fabs, floor

from streamlearn.core.row cimport Row
from streamlearn.rules.recorded_steps cimport RecordedSteps
from streamlearn.rules.schedules cimport Schedule

from streamlearn.rules.requirements import l1_only
from streamlearn.rules.slot_state import PerSlot
from streamlearn.rules.schedules import InverseSqrt, schedule
from streamlearn.core.parameters import number

DEF WEIGHT = 0
DEF MARK = 1
DEF SEEN = 2


cdef class TruncatedGradient(RecordedSteps):
    """Gradient descent with l1 truncation every K-th step ([Xiao10] equation (29)); O(d) per event.

    `step` is a number or a `sl.rules.schedules` object, `every` is K, and `ceiling` is theta.
    """

    _names = ("step", "every", "ceiling")
    _examples = ((0.15,), (InverseSqrt(0.3), 3), (InverseSqrt(0.3), 2, 0.1))
    fields = (
        PerSlot("weight", merge="average", flips_sign=True), PerSlot("mark", merge="derived"),
        PerSlot("seen", merge="derived"),
    )
    scalar_merges = {"t": "mean", "drift": "mean"}
    scalars = ("t", "drift")
    needs = (l1_only,)
    cdef readonly Schedule step
    cdef readonly int every
    cdef readonly double ceiling
    cdef public double drift
    cdef double l1

    def __init__(self, step, every=1, ceiling=INFINITY):
        self.step = schedule("TruncatedGradient", step)
        if int(every) != every or every < 1:
            raise ValueError(f"TruncatedGradient: every must be an integer >= 1, got {every!r}")
        self.every = every
        if ceiling != INFINITY:
            ceiling = number("TruncatedGradient", "ceiling", ceiling, low=0.0)
        self.ceiling = ceiling

    def start(self):
        self.l1 = self.penalty.l1

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
        self.cell(j)[MARK] = self.drift
        self.cell(j)[SEEN] = self.t

    @property
    def slots_are_independent(self):
        """Not: the penalty moves all slots."""
        return False

    def settle(self):
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[WEIGHT] = self.weight(j)
        self.derive()

    def derive(self):
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[MARK] = self.drift
            self.cell(j)[SEEN] = self.t

    cdef double truncation(self, double t) noexcept nogil:
        return self.step.at(t) * self.l1 * self.every

    cdef double next_time(self, double t) noexcept nogil:
        """Return the first step after t that truncates."""
        return (floor(t / self.every) + 1.0) * self.every

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double w = self.cell(j)[WEIGHT], m = fabs(w), when
        if m > self.ceiling:
            # only the first truncation, the largest, can reach it
            when = self.next_time(self.cell(j)[SEEN])
            return 0.0 if when <= self.t and m <= self.truncation(when) else w
        m -= self.drift - self.cell(j)[MARK]
        if m <= 0.0:
            return 0.0
        return m if w > 0.0 else -m

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double t = self.t + 1.0, m = self.step.at(t) * slope
        cdef Py_ssize_t i, j
        for i in range(row.n):
            j = row.slot[i]
            self.cell(j)[WEIGHT] = self.weight(j) - m * row.value[i]
            self.cell(j)[MARK] = self.drift
            self.cell(j)[SEEN] = self.t
        if t == self.next_time(self.t):
            self.drift += self.truncation(t)
        self.t = t
        self.record_step()

    # -- averages --------------------------------------------------------------------------------

    cdef void step_scalars(self, double* c, double* threshold) noexcept nogil:
        c[0] = 1.0
        threshold[0] = self.drift

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        cdef double w = self.cell(j)[WEIGHT], m = fabs(w), when
        if m > self.ceiling:
            when = self.next_time(self.cell(j)[SEEN])
            if m <= self.truncation(when) and when < b:
                b = when if when > a else a
            return (b - a) * w
        m = self.step_sums.sum_between(m + self.cell(j)[MARK], a, b)
        return m if w > 0.0 else -m

    @property
    def step_size(self):
        return self.step(self.t + 1.0)
