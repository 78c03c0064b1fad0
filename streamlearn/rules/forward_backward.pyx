"""Forward-backward splitting, FOBOS ([Duchi09]; [Xiao10] equation (28)).

    w <- prox( w - alpha_t slope x ),  the prox of alpha_t Psi

Untouched slots are lazy: w_j = scale * soft(v_j, drift - mark_j), where `drift` is the sum of the
thresholds of all steps and mark_j its value when slot j was last touched.
"""

from libc.math cimport fabs

from streamlearn.penalties.penalty cimport Penalty
from streamlearn.core.row cimport Row
from streamlearn.rules.recorded_steps cimport RecordedSteps
from streamlearn.rules.scaled cimport Scaled
from streamlearn.rules.schedules cimport Schedule

from streamlearn.rules.requirements import simple
from streamlearn.rules.slot_state import PerSlot
from streamlearn.rules.schedules import Inverse, InverseSqrt, schedule

DEF VECTOR = 0
DEF MARK = 1


cdef class ForwardBackward(Scaled):
    """FOBOS with a chosen step size: a number, or a `sl.rules.schedules` object; O(d) per event."""

    _names = ("step",)
    _examples = ((0.1,), (InverseSqrt(0.3),), (Inverse(0.8),))
    needs = (simple,)
    cdef readonly Schedule step

    def __init__(self, step):
        self.step = schedule("ForwardBackward", step)

    def implementation(self, Penalty penalty):
        return L1ForwardBackward(self.step) if penalty.l1 > 0.0 else ForwardBackward(self.step)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double step = self.step.at(self.t + 1.0), shrink = 1.0 / (1.0 + step * self.l2)
        self.measure(row, slope)
        # the prox of l2 also divides the new gradient
        self.move(row, slope, step * shrink, shrink, self.penalty.radius)

    @property
    def step_size(self):
        return self.step(self.t + 1.0)


cdef class L1ForwardBackward(RecordedSteps):
    """ForwardBackward for penalties with an l1 part."""

    _names = ("step",)
    fields = (PerSlot("vector", merge="average", flips_sign=True), PerSlot("mark", merge="max"))
    scalar_merges = {"t": "mean", "scale": "max", "drift": "max"}  # settled: 1 and 0
    scalars = ("t", "scale", "drift")
    cdef readonly Schedule step
    cdef public double scale, drift
    cdef double l1, l2

    def __init__(self, step):
        self.step = step

    def start(self):
        self.l1 = self.penalty.l1
        self.l2 = self.penalty.l2
        self.scale = 1.0

    def for_intercept(self):
        from streamlearn.penalties.norms import Zero

        return ForwardBackward(self.step).bind(Zero(), self.loss)

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
        self.cell(j)[MARK] = self.drift

    @property
    def slots_are_independent(self):
        """Not: the penalty moves all slots."""
        return False

    cdef double vector(self, Py_ssize_t j) noexcept nogil:
        cdef double v = self.cell(j)[VECTOR], threshold = self.drift - self.cell(j)[MARK]
        if v > threshold:
            return v - threshold
        if v < -threshold:
            return v + threshold
        return 0.0

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.scale * self.vector(j)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double step = self.step.at(self.t + 1.0), m = step * slope / self.scale
        cdef Py_ssize_t i, j
        for i in range(row.n):
            j = row.slot[i]
            self.cell(j)[VECTOR] = self.vector(j) - m * row.value[i]
            self.cell(j)[MARK] = self.drift
        self.drift += step * self.l1 / self.scale
        self.scale /= 1.0 + step * self.l2
        self.t += 1.0
        self.needs_rebase = self.scale < 1e-100 or self.drift > 1e100
        self.record_step()
        # sums over past scales lose digits when the scale decreases fast
        if self.step_sums is not None and self.scale < 1e-3:
            self.needs_rebase = True

    cdef void rebase(self) noexcept nogil:
        """Reset the scale to 1 and the drift to 0."""
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[VECTOR] = self.weight(j)
            self.cell(j)[MARK] = 0.0
        self.scale = 1.0
        self.drift = 0.0
        RecordedSteps.rebase(self)

    cdef void step_scalars(self, double* c, double* threshold) noexcept nogil:
        c[0] = self.scale
        threshold[0] = self.drift

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        cdef double v = self.cell(j)[VECTOR]
        cdef double total = self.step_sums.sum_between(fabs(v) + self.cell(j)[MARK], a, b)
        return total if v >= 0.0 else -total

    @property
    def step_size(self):
        return self.step(self.t + 1.0)
