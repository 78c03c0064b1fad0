"""Stochastic gradient descent: [Xiao10] equation (3) with the subgradient of section 6.2.

    w <- project_C( w - alpha_t (slope x + xi) ),   xi = l1 sgn(w) + l2 w
"""

from libc.math cimport fabs

from streamlearn.penalties.penalty cimport Penalty
from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.scaled cimport Scaled
from streamlearn.rules.schedules cimport Schedule

from streamlearn.rules.requirements import simple
from streamlearn.rules.slot_state import PerSlot
from streamlearn.rules.schedules import Inverse, InverseSqrt, schedule

DEF WEIGHT = 0
DEF SEEN = 1


cdef class GradientDescent(Scaled):
    """Gradient descent with a chosen step size: a number, or a `sl.rules.schedules` object.

    With l2 or a ball, an event costs O(d). The subgradient of l1 has no lazy form, because near 0 a
    weight changes sign at nearly every step: a slot untouched for k events replays up to k steps.
    It never yields exact zeros; ForwardBackward and DualAveraging do.
    """

    _names = ("step",)
    _examples = ((0.1,), (InverseSqrt(0.3),), (Inverse(0.8),))
    needs = (simple,)
    cdef readonly Schedule step

    def __init__(self, step):
        self.step = schedule(type(self).__name__, step)

    def implementation(self, Penalty penalty):
        return L1GradientDescent(self.step) if penalty.l1 > 0.0 else GradientDescent(self.step)

    cdef bint erases_weights(self) noexcept nogil:
        return self.step.at(self.t + 1.0) * self.l2 == 1.0

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double step = self.step.at(self.t + 1.0)
        self.measure(row, slope)
        self.move(row, slope, step, 1.0 - step * self.l2, self.penalty.radius)

    @property
    def step_size(self):
        return self.step(self.t + 1.0)


cdef class L1GradientDescent(Rule):
    """GradientDescent for penalties with an l1 part."""

    _names = ("step",)
    fields = (
        PerSlot("weight", merge="average", flips_sign=True), PerSlot("seen", merge="derived"),
    )
    cdef readonly Schedule step
    cdef double l1, l2

    def __init__(self, step):
        self.step = step

    def start(self):
        self.l1 = self.penalty.l1
        self.l2 = self.penalty.l2

    def for_intercept(self):
        from streamlearn.penalties.norms import Zero

        return GradientDescent(self.step).bind(Zero(), self.loss)

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
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
            self.cell(j)[SEEN] = self.t

    cdef double replay(self, double w, double t, double now, double* total) noexcept nogil:
        """Return w after the steps t+1 .. now; `total` accumulates the weights on the way."""
        cdef double alpha, sign, path, begun = t
        if self.l2 == 0.0 and w != 0.0 and total == NULL:
            # in closed form if the sign does not change on the way
            path = self.l1 * (self.step.total(now) - self.step.total(t))
            if path < fabs(w):
                return w - path if w > 0.0 else w + path
        while t < now and w != 0.0:
            t += 1.0
            alpha = self.step.at(t)
            sign = 1.0 if w > 0.0 else -1.0
            w -= alpha * (self.l2 * w + self.l1 * sign)
            if total != NULL:
                total[0] += w
        self.replayed += t - begun
        return w

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.replay(self.cell(j)[WEIGHT], self.cell(j)[SEEN], self.t, NULL)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double alpha = self.step.at(self.t + 1.0), w, sign
        cdef Py_ssize_t i, j
        for i in range(row.n):
            j = row.slot[i]
            w = self.weight(j)
            sign = 1.0 if w > 0.0 else (-1.0 if w < 0.0 else 0.0)
            w -= alpha * (slope * row.value[i] + self.l2 * w + self.l1 * sign)
            self.cell(j)[WEIGHT] = w
            self.cell(j)[SEEN] = self.t + 1.0
        self.t += 1.0

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        """Sum step by step: there is no closed form near 0."""
        cdef double w, total
        if b <= a:
            return 0.0
        # w_{a+1} is the weight after a steps
        w = self.replay(self.cell(j)[WEIGHT], self.cell(j)[SEEN], a, NULL)
        total = w
        self.replay(w, a, b - 1.0, &total)
        return total

    @property
    def step_size(self):
        return self.step(self.t + 1.0)
