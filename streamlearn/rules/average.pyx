"""Averages of the weights w_1 .. w_t that predicted the first t events.

- uniform: their mean ([Xiao10] Theorem 3)
- tail: for 2^k <= t < 2^(k+1), the mean of those since 2^(k-1)
  ([Takac13] Theorem 1 at powers of two)
- random: one of them, drawn uniformly ([Do09] Theorem 3)

Slots that no event touches are not visited: `Rule.weight_sum` gives the sum of their weights over
the steps in between. Rules without a closed form for that sum cost O(n) per event when averaged.
"""

from libc.stdlib cimport free

from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.table cimport copied, paste, room

import numpy as np

KINDS = {"uniform": UNIFORM, "tail": TAIL, "random": RANDOM}


cdef class Average:
    """The running average of one rule's weights."""

    def __init__(self, Rule rule, kind, seed=0):
        self.rule = rule
        self.kind = KINDS[kind]
        self.lazy = rule.lazy
        self.random = <unsigned long long>(seed & 0xFFFFFFFFFFFFFFFF)
        if self.lazy and self.kind != RANDOM:
            rule.keep_ledger()
        self.grow()

    def __dealloc__(self):
        free(self.recent)
        free(self.older)
        free(self.seen)

    def __sizeof__(self):
        return object.__sizeof__(self) + 24 * self.capacity

    cdef int grow(self) except -1:
        """As many slots as the rule knows; a new one had weight 0 so far."""
        cdef Py_ssize_t j, n = self.rule.n
        if n > self.capacity:
            self.capacity = n if n > 2 * self.capacity else 2 * self.capacity
            self.recent = <double*>room(self.recent, self.capacity * sizeof(double))
            self.older = <double*>room(self.older, self.capacity * sizeof(double))
            self.seen = <double*>room(self.seen, self.capacity * sizeof(double))
        for j in range(self.n, n):
            self.recent[j] = 0.0
            self.older[j] = 0.0
            self.seen[j] = self.rule.t
        self.n = n
        return 0

    cdef double uniform(self) noexcept nogil:
        """A number in [0, 1) from a generator whose state is one integer (splitmix64)."""
        cdef unsigned long long z
        self.random += 0x9E3779B97F4A7C15ULL
        z = self.random
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
        return <double>((z ^ (z >> 31)) >> 11) / 9007199254740992.0

    cdef void before(self, Row* row) noexcept nogil:
        """The row is about to change: add up its slots' weights through this event, t + 1."""
        cdef double t = self.rule.t + 1.0
        cdef Py_ssize_t i, j
        if self.kind == RANDOM:
            if self.uniform() * t < 1.0:
                for j in range(self.n):
                    self.recent[j] = self.rule.weight(j)
        elif self.lazy:
            for i in range(row.n):
                j = row.slot[i]
                self.recent[j] += self.rule.between(j, self.seen[j], t)
                self.seen[j] = t
        else:
            for j in range(self.n):
                self.recent[j] += self.rule.weight(j)

    cdef void after(self) noexcept nogil:
        """The tail begins anew at powers of two."""
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
                self.recent[j] += self.rule.between(j, self.seen[j], t)
                self.seen[j] = t

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        """The average weight of slot j."""
        cdef double t = self.rule.t, total, start = 0.5
        if t == 0.0:
            return self.rule.weight(j)
        if j >= self.n:
            return 0.0
        total = self.recent[j]
        if self.kind == RANDOM:
            return total
        if self.lazy:
            total += self.rule.between(j, self.seen[j], t)
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
        """The average weights of slots start .. stop - 1."""
        last = self.rule.n if stop is None else stop
        return np.array([self.weight(j) for j in range(start, last)])

    def mirror(self):
        """Exchange the two classes."""
        cdef Py_ssize_t j
        for j in range(self.n):
            self.recent[j] = -self.recent[j]
            self.older[j] = -self.older[j]

    def spread(self, Py_ssize_t old, Py_ssize_t new):
        """Give every feature `new` slots instead of `old`, after the rule has done so."""
        cdef Py_ssize_t features = self.n // old
        recent = copied(self.recent, self.n)
        older = copied(self.older, self.n)
        seen = copied(self.seen, self.n)
        self.grow()
        paste(self.recent, widened(recent, features, old, new, 0.0))
        paste(self.older, widened(older, features, old, new, 0.0))
        paste(self.seen, widened(seen, features, old, new, self.rule.t))

    def state(self):
        return {
            "recent": copied(self.recent, self.n),
            "older": copied(self.older, self.n),
            "seen": copied(self.seen, self.n),
            "random": self.random,
        }

    def restore(self, state):
        self.grow()
        paste(self.recent, state["recent"])
        paste(self.older, state["older"])
        paste(self.seen, state["seen"])
        self.random = state["random"]


def widened(array, features, old, new, fill):
    """`array` of features x old entries with room for `new` each."""
    wide = np.full((features, new), fill)
    wide[:, :old] = array.reshape(features, old)
    return wide
