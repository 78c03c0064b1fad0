"""Averages in closed form for rules whose untouched weights follow from two scalars per step.

After each step, |w_j| = c (key_j - T)_+ for every slot that no event touches: c and T are the same
for all slots, and T never decreases. The sum over any number of steps is then a difference of two
prefix sums, so an averaged event costs O(its features).
"""

from libc.stdlib cimport free

from streamlearn.core.memory cimport reallocate
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.table cimport to_array, copy_from_array


cdef class StepSums:
    """Sums of |w_j| = c (key_j - T)_+ over past steps, whose scalars c and T are recorded."""

    def __cinit__(self):
        self.reserve(1024)
        self.restart(0.0)

    def __dealloc__(self):
        free(self.scales)
        free(self.products)
        free(self.thresholds)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Reserve n steps: with as many as slots, settling all slots costs O(1) per step."""
        if n > self.capacity:
            self.scales = <double*>reallocate(self.scales, (n + 1) * sizeof(double))
            self.products = <double*>reallocate(self.products, (n + 1) * sizeof(double))
            self.thresholds = <double*>reallocate(self.thresholds, (n + 1) * sizeof(double))
            self.capacity = n
        return 0

    cdef int append(self, double c, double threshold) noexcept nogil:
        """Append the scalars of the next step; the caller rebases before capacity is reached."""
        cdef Py_ssize_t i = self.size
        self.scales[i + 1] = self.scales[i] + c
        self.products[i + 1] = self.products[i] + c * threshold
        self.thresholds[i + 1] = threshold
        self.size = i + 1
        return 0

    cdef bint full(self) noexcept nogil:
        return self.size >= self.capacity - 1

    cdef double sum_between(self, double key, double a, double b) noexcept nogil:
        """Sum c (key - T)_+ over the steps a < t <= b; T never decreases."""
        cdef Py_ssize_t low = <Py_ssize_t>(a - self.base), high = <Py_ssize_t>(b - self.base)
        cdef Py_ssize_t first = low, middle
        if low >= high:
            return 0.0
        if self.thresholds[high] >= key:
            # skip the steps after the weight became 0
            while low < high:
                middle = (low + high + 1) // 2
                if self.thresholds[middle] < key:
                    low = middle
                else:
                    high = middle - 1
            high = low
        return key * (self.scales[high] - self.scales[first]) - (
            self.products[high] - self.products[first]
        )

    cdef void restart(self, double t) noexcept nogil:
        """Forget all steps; the next one is that of event t + 1."""
        self.scales[0] = 0.0
        self.products[0] = 0.0
        self.thresholds[0] = -1.0
        self.size = 0
        self.base = t

    def state(self):
        m = self.size + 1
        return {
            "base": self.base,
            "scales": to_array(self.scales, m),
            "products": to_array(self.products, m),
            "thresholds": to_array(self.thresholds, m),
        }

    def restore(self, state):
        m = len(state["scales"])
        self.reserve(m)
        copy_from_array(self.scales, state["scales"])
        copy_from_array(self.products, state["products"])
        copy_from_array(self.thresholds, state["thresholds"])
        self.size = m - 1
        self.base = state["base"]


cdef class RecordedSteps(Rule):
    """A rule that records the scalars of every step for its average."""

    cdef void step_scalars(self, double* c, double* threshold) noexcept nogil:
        """Set c and T of the current weights."""

    cdef void record_step(self) noexcept nogil:
        """Record the step taken last."""
        cdef double c, threshold
        if self.step_sums is not None:
            self.step_scalars(&c, &threshold)
            self.step_sums.append(c, threshold)
            self.needs_rebase = self.needs_rebase or self.step_sums.full()

    cdef int record_steps(self) except -1:
        self.step_sums = StepSums()
        self.step_sums.reserve(self.n)
        self.step_sums.restart(self.t)
        self.record_step()
        return 0

    cdef int grow(self, Py_ssize_t n) except -1:
        Rule.grow(self, n)
        if self.step_sums is not None:
            self.step_sums.reserve(self.n)
        return 0

    cdef void rebase(self) noexcept nogil:
        self.needs_rebase = False
        if self.step_sums is not None:
            self.step_sums.restart(self.t)
            self.record_step()

    def state(self):
        state = Rule.state(self)
        if self.step_sums is not None:
            state["step_sums"] = self.step_sums.state()
        return state

    def restore(self, state):
        Rule.restore(self, state)
        if "step_sums" in state:
            self.record_steps()
            self.step_sums.restore(state["step_sums"])
            self.step_sums.reserve(self.n)
