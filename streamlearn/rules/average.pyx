"""Averages of the weights w_1 .. w_t that predicted the first t events.

- uniform: their mean ([Xiao10] Theorem 3)
- tail: for 2^k <= t < 2^(k+1), the mean of those since 2^(k-1)
  ([Takac13] Theorem 1 at powers of two)
- random: one of them, drawn uniformly ([Do09] Theorem 3)

Slots that no event touches are not visited: `Rule.weight_sum` gives the sum of their weights over
the steps in between. Rules without a closed form for that sum cost O(n) per event when averaged.
"""

from libc.stdlib cimport free

from streamlearn.core.random cimport next64
from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule
from streamlearn.core.memory cimport reallocate
from streamlearn.rules.table cimport to_array, copy_from_array

import numpy as np

AVERAGES = {"uniform": UNIFORM, "tail": TAIL, "random": RANDOM}


cdef class Average:
    """The running average of one rule's weights."""

    def __init__(self, Rule rule, kind, seed=0):
        self.rule = rule
        self.kind = AVERAGES[kind]
        self.lazy = rule.averages_lazily
        self.random = <unsigned long long>(seed & 0xFFFFFFFFFFFFFFFF)
        if self.lazy and self.kind != RANDOM:
            rule.record_steps()
        self.grow()

    def __dealloc__(self):
        free(self.recent)
        free(self.older)
        free(self.seen)

    cdef int grow(self) except -1:
        """Grow to the rule's slots; a new slot had weight 0 so far."""
        cdef Py_ssize_t j, n = self.rule.n
        if n > self.capacity:
            self.capacity = n if n > 2 * self.capacity else 2 * self.capacity
            self.recent = <double*>reallocate(self.recent, self.capacity * sizeof(double))
            self.older = <double*>reallocate(self.older, self.capacity * sizeof(double))
            self.seen = <double*>reallocate(self.seen, self.capacity * sizeof(double))
        for j in range(self.n, n):
            self.recent[j] = 0.0
            self.older[j] = 0.0
            self.seen[j] = self.rule.t
        self.n = n
        return 0

    cdef double uniform(self) noexcept nogil:
        """Draw a number in [0, 1) by SplitMix64, whose state is one integer."""
        return <double>(next64(&self.random) >> 11) / 9007199254740992.0

    cdef void before(self, Row* row) noexcept nogil:
        """Add up the weights of the row's slots through event t + 1, before they change."""
        cdef double t = self.rule.t + 1.0
        cdef Py_ssize_t i, j
        if self.kind == RANDOM:
            if self.uniform() * t < 1.0:
                for j in range(self.n):
                    self.recent[j] = self.rule.weight(j)
        elif self.lazy:
            for i in range(row.n):
                j = row.slot[i]
                self.recent[j] += self.rule.weight_sum(j, self.seen[j], t)
                self.seen[j] = t
        else:
            for j in range(self.n):
                self.recent[j] += self.rule.weight(j)

    cdef void after(self) noexcept nogil:
        """Restart the tail at powers of two."""
        cdef unsigned long long t = <unsigned long long>self.rule.t
        cdef Py_ssize_t j
        if self.kind == TAIL and t & (t - 1) == 0:
            self.settle(self.rule.t)
            for j in range(self.n):
                self.older[j] = self.recent[j]
                self.recent[j] = 0.0

    cdef void settle(self, double t) noexcept nogil:
        """Add up every slot's weights through step t."""
        cdef Py_ssize_t j
        if self.lazy and self.kind != RANDOM:
            for j in range(self.n):
                self.recent[j] += self.rule.weight_sum(j, self.seen[j], t)
                self.seen[j] = t

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        """Return the average weight of slot j."""
        cdef double t = self.rule.t, total, start = 0.5
        if t == 0.0:
            return self.rule.weight(j)
        if j >= self.n:
            return 0.0
        total = self.recent[j]
        if self.kind == RANDOM:
            return total
        if self.lazy:
            total += self.rule.weight_sum(j, self.seen[j], t)
        if self.kind == UNIFORM:
            return total / t
        while 4.0 * start <= t:
            start *= 2.0
        return (total + self.older[j]) / (t - <Py_ssize_t>start)

    cdef double score(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef Py_ssize_t i
        for i in range(row.n):
            p += self.weight(row.slot[i]) * row.value[i]
        return p

    def weights(self, start=0, stop=None):
        """Return the average weights of slots start .. stop - 1."""
        cdef Py_ssize_t j, first = start, last = self.rule.n if stop is None else stop
        out = np.empty(max(last - first, 0))
        cdef double* w = <double*><size_t>out.ctypes.data
        with nogil:
            for j in range(first, last):
                w[j - first] = self.weight(j)
        return out

    def scoring(self):
        """Return how `score` computes a score, as a form of docs/reference/snapshots.md."""
        return {"kind": "sum", "columns": {"weight": self.weights()}}

    def swap_classes(self):
        """Swap the two classes."""
        cdef Py_ssize_t j
        for j in range(self.n):
            self.recent[j] = -self.recent[j]
            self.older[j] = -self.older[j]

    def widen_outputs(self, Py_ssize_t old, Py_ssize_t new):
        """Give every feature `new` slots instead of `old`, after the rule has done so."""
        cdef Py_ssize_t features = self.n // old
        recent = to_array(self.recent, self.n)
        older = to_array(self.older, self.n)
        seen = to_array(self.seen, self.n)
        self.grow()
        copy_from_array(self.recent, widened(recent, features, old, new, 0.0))
        copy_from_array(self.older, widened(older, features, old, new, 0.0))
        copy_from_array(self.seen, widened(seen, features, old, new, self.rule.t))

    def state(self):
        return {
            "recent": to_array(self.recent, self.n),
            "older": to_array(self.older, self.n),
            "seen": to_array(self.seen, self.n),
            "random": self.random,
        }

    def restore(self, state):
        self.grow()
        copy_from_array(self.recent, state["recent"])
        copy_from_array(self.older, state["older"])
        copy_from_array(self.seen, state["seen"])
        self.random = state["random"]


def widened(array, features, old, new, fill):
    """Widen `array` from features x old to features x new entries, filling with `fill`."""
    wide = np.full((features, new), fill)
    wide[:, :old] = array.reshape(features, old)
    return wide
