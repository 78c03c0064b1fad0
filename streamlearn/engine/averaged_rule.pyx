"""The weights of one output with their average, and the gradient sums of mini-batches."""

cimport cython
from libc.math cimport NAN, fabs
from libc.stdlib cimport free

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row, squared
from streamlearn.rules.average cimport Average
from streamlearn.rules.event_rule cimport EventRule
from streamlearn.rules.rule cimport Rule
from streamlearn.core.memory cimport reallocate

import numpy as np


@cython.final
cdef class AveragedRule:
    """A bound rule and, optionally, the average that predicts instead of its current weights."""

    def __init__(self, Rule rule, average="last", seed=0):
        self.rule = rule
        self.simple = rule.penalty.simple
        self.stays_finite = rule.stays_finite
        if average != "last":
            self.average = Average(rule, average, seed)

    cdef int grow(self, Py_ssize_t n) except -1:
        if n > self.rule.n:
            self.rule.grow(n)
            if self.average is not None:
                self.average.grow()
        return 0

    cdef double predict(self, Row* row) noexcept nogil:
        return self.rule.predict(row) if self.average is None else self.average.score(row)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.rule.weight(j) if self.average is None else self.average.weight(j)

    cdef double penalty(self, double* work) noexcept nogil:
        """Return Psi of the predicting weights by a pass over all slots; NaN if not l1 and l2.

        Add to `work` the slots that were read and the steps that were replayed for it.
        """
        cdef double replayed = self.rule.replayed
        cdef double l1 = self.rule.penalty.l1, l2 = self.rule.penalty.l2
        cdef double w, total = 0.0
        cdef Py_ssize_t j
        if not self.simple:
            return NAN
        for j in range(self.rule.free_slots, self.rule.n):
            w = fabs(self.weight(j))
            if w > 0.0:
                total += w * (l1 + 0.5 * l2 * w)
        work[0] += self.rule.n + (self.rule.replayed - replayed)
        return total

    cdef void before(self, Row* row) noexcept nogil:
        """Update the average before a step."""
        self.average.before(row)
        if self.rule.erases_weights():
            self.average.settle(self.rule.t + 1.0)

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        cdef double p
        if self.average is not None:
            self.average.before(row)
        p = (<EventRule>self.rule).learn(row, loss, y, weight)
        if self.average is not None or self.rule.needs_rebase:
            self.after()
        return p

    cdef void after(self) noexcept nogil:
        if self.average is not None:
            self.average.after()
        if self.rule.needs_rebase:
            if self.average is not None:
                self.average.settle(self.rule.t)
            self.rule.rebase()

    def values(self, start=0, stop=None):
        """Return the predicting weights of slots start .. stop - 1."""
        shown = self.rule if self.average is None else self.average
        return shown.weights(start, stop)

    def scoring(self):
        """Return how `predict` computes a score, as a form of docs/reference/snapshots.md."""
        return (self.rule if self.average is None else self.average).scoring()

    def swap_classes(self):
        self.rule.swap_classes()
        if self.average is not None:
            self.average.swap_classes()

    def widen_outputs(self, old, new):
        self.rule.widen_outputs(old, new)
        if self.average is not None:
            self.average.widen_outputs(old, new)

    def state(self):
        state = {"rule": self.rule.state()}
        if self.average is not None:
            state["average"] = self.average.state()
        return state

    def restore(self, state):
        self.rule.restore(state["rule"])
        if self.average is not None:
            self.average.restore(state["average"])


@cython.final
cdef class Minibatch:
    """Sums of slope * x over the events of a mini-batch, and the slots that they touch."""

    def __init__(self, size):
        self.size = size

    def __dealloc__(self):
        free(self.sums)
        free(self.slot)
        free(self.value)
        free(self.marked)

    cdef int grow(self, Py_ssize_t n) except -1:
        cdef Py_ssize_t j
        if n > self.capacity:
            self.capacity = n if n > 2 * self.capacity else 2 * self.capacity
            self.sums = <double*>reallocate(self.sums, self.capacity * sizeof(double))
            self.slot = <int*>reallocate(self.slot, self.capacity * sizeof(int))
            self.value = <double*>reallocate(self.value, self.capacity * sizeof(double))
            self.marked = <bint*>reallocate(self.marked, self.capacity * sizeof(bint))
        for j in range(self.n, n):
            self.sums[j] = 0.0
            self.marked[j] = False
        if n > self.n:
            self.n = n
        return 0

    cdef void add(self, Row* row, double slope) noexcept nogil:
        cdef Py_ssize_t i, j
        for i in range(row.n):
            j = row.slot[i]
            if not self.marked[j]:
                self.marked[j] = True
                self.slot[self.touched] = <int>j
                self.touched += 1
            self.sums[j] += slope * row.value[i]

    cdef bint complete(self) noexcept nogil:
        """Count one event and return whether the batch is full."""
        self.count += 1
        return self.count >= self.size

    cdef void take(self, Row* row) noexcept nogil:
        """Set `row` to the mean gradient and clear the batch."""
        cdef Py_ssize_t i, j
        for i in range(self.touched):
            j = self.slot[i]
            self.value[i] = self.sums[j] / self.size
            self.sums[j] = 0.0
            self.marked[j] = False
        row.n = self.touched
        row.slot = self.slot
        row.value = self.value
        row.square = squared(self.value, self.touched)
        self.touched = 0
        self.count = 0

    def swap_classes(self):
        cdef Py_ssize_t j
        for j in range(self.n):
            self.sums[j] = -self.sums[j]

    def pending(self):
        """Return the touched slots and their sums."""
        slots = [self.slot[i] for i in range(self.touched)]
        return slots, [self.sums[j] for j in slots]

    def widen_outputs(self, old, new):
        """Give every feature `new` slots instead of `old`."""
        slots, sums = self.pending()
        for j in slots:
            self.sums[<Py_ssize_t>j] = 0.0
            self.marked[<Py_ssize_t>j] = False
        self.touched = 0
        moved = [j // old * new + j % old for j in slots]
        self.hold(max(self.n // old * new, self.n), self.count, moved, sums)

    def hold(self, n, count, slots, sums):
        """Set the pending sums."""
        cdef Py_ssize_t j
        self.grow(n)
        self.count = count
        for j, total in zip(slots, sums, strict=True):
            self.marked[j] = True
            self.slot[self.touched] = <int>j
            self.touched += 1
            self.sums[j] = total

    def state(self):
        slots, sums = self.pending()
        return {
            "n": self.n,
            "count": self.count,
            "slots": np.array(slots, dtype=np.int64),
            "sums": np.array(sums),
        }

    def restore(self, state):
        self.hold(state["n"], state["count"], state["slots"].tolist(), state["sums"].tolist())
