"""Sorted numbers with the sums of the largest, for thresholds over all slots.

A treap over slots, keyed by (key, slot). Each node knows the count, sum and sum of squares of its
subtree. Finding the level c at which the sum of (key - c) over the larger keys equals r takes
O(log n), and so does changing one key. The shape depends on the keys alone (a slot's priority is a
hash of its number), so a tree rebuilt after loading gives bit-identical answers.
"""

from libc.stdlib cimport free
from libc.string cimport memset

from streamlearn.core.memory cimport reallocate
from streamlearn.core.random cimport GOLDEN_GAMMA, mix64

DEF NONE = -1


cdef inline unsigned long long priority(Py_ssize_t j) noexcept nogil:
    return mix64(<unsigned long long>j + GOLDEN_GAMMA)


cdef class Order:
    def __cinit__(self):
        self.root = NONE
        self.capacity = 0

    def __dealloc__(self):
        free(self.left)
        free(self.right)
        free(self.count)
        free(self.key)
        free(self.total)
        free(self.square)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Reserve slots 0 .. n-1."""
        if n <= self.capacity:
            return 0
        self.left = <Py_ssize_t*>reallocate(self.left, n * sizeof(Py_ssize_t))
        self.right = <Py_ssize_t*>reallocate(self.right, n * sizeof(Py_ssize_t))
        self.count = <Py_ssize_t*>reallocate(self.count, n * sizeof(Py_ssize_t))
        self.key = <double*>reallocate(self.key, n * sizeof(double))
        self.total = <double*>reallocate(self.total, n * sizeof(double))
        self.square = <double*>reallocate(self.square, n * sizeof(double))
        memset(self.count + self.capacity, 0, (n - self.capacity) * sizeof(Py_ssize_t))
        self.capacity = n
        return 0

    cdef void clear(self) noexcept nogil:
        self.root = NONE
        if self.capacity > 0:
            memset(self.count, 0, self.capacity * sizeof(Py_ssize_t))

    cdef bint before(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        return self.key[i] < self.key[j] or (self.key[i] == self.key[j] and i < j)

    cdef void refresh(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t a = self.left[j], b = self.right[j]
        cdef double k = self.key[j]
        self.count[j] = 1
        self.total[j] = k
        self.square[j] = k * k
        if a != NONE:
            self.count[j] += self.count[a]
            self.total[j] += self.total[a]
            self.square[j] += self.square[a]
        if b != NONE:
            self.count[j] += self.count[b]
            self.total[j] += self.total[b]
            self.square[j] += self.square[b]

    cdef void split(
        self, Py_ssize_t t, Py_ssize_t j, Py_ssize_t* low, Py_ssize_t* high
    ) noexcept nogil:
        """Split into the slots before slot j's key and those after."""
        if t == NONE:
            low[0] = NONE
            high[0] = NONE
        elif self.before(t, j):
            self.split(self.right[t], j, &self.right[t], high)
            low[0] = t
            self.refresh(t)
        else:
            self.split(self.left[t], j, low, &self.left[t])
            high[0] = t
            self.refresh(t)

    cdef Py_ssize_t merge(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
        if low == NONE:
            return high
        if high == NONE:
            return low
        if priority(low) > priority(high):
            self.right[low] = self.merge(self.right[low], high)
            self.refresh(low)
            return low
        self.left[high] = self.merge(low, self.left[high])
        self.refresh(high)
        return high

    cdef Py_ssize_t put(self, Py_ssize_t t, Py_ssize_t j) noexcept nogil:
        if t == NONE or priority(j) > priority(t):
            self.split(t, j, &self.left[j], &self.right[j])
            self.refresh(j)
            return j
        if self.before(j, t):
            self.left[t] = self.put(self.left[t], j)
        else:
            self.right[t] = self.put(self.right[t], j)
        self.refresh(t)
        return t

    cdef Py_ssize_t take(self, Py_ssize_t t, Py_ssize_t j) noexcept nogil:
        if t == j:
            return self.merge(self.left[t], self.right[t])
        if self.before(j, t):
            self.left[t] = self.take(self.left[t], j)
        else:
            self.right[t] = self.take(self.right[t], j)
        self.refresh(t)
        return t

    cdef void insert(self, Py_ssize_t j, double key) noexcept nogil:
        self.key[j] = key
        self.left[j] = NONE
        self.right[j] = NONE
        self.count[j] = 1
        self.root = self.put(self.root, j)

    cdef void remove(self, Py_ssize_t j) noexcept nogil:
        """Remove slot j, if present."""
        if self.count[j] == 0:
            return
        self.root = self.take(self.root, j)
        self.count[j] = 0

    cdef double level(self, double target) noexcept nogil:
        """Return c with sum max(0, key - c) = target, over all keys.

        Searches from the largest key down: if the m largest keys sum to S, c = (S - target) / m,
        and m is right when the next key is not above c.
        """
        cdef Py_ssize_t t = self.root, m = 0, right, taken
        cdef double s = 0.0, k, above
        while t != NONE:
            right = self.right[t]
            k = self.key[t]
            taken = m + (self.count[right] if right != NONE else 0)
            above = s + (self.total[right] if right != NONE else 0.0)
            # is this key above the level?
            if above - taken * k < target:
                m, s = taken + 1, above + k
                t = self.left[t]
            else:
                t = right
        return (s - target) / m if m else 0.0

    cdef double soft_total(self, double threshold) noexcept nogil:
        """Return sum max(0, key - threshold)."""
        cdef Py_ssize_t t = self.root, r
        cdef double s = 0.0
        while t != NONE:
            r = self.right[t]
            if self.key[t] > threshold:
                s += self.key[t] - threshold
                if r != NONE:
                    s += self.total[r] - self.count[r] * threshold
                t = self.left[t]
            else:
                t = r
        return s

    cdef double soft_square(self, double threshold) noexcept nogil:
        """Return sum max(0, key - threshold)^2."""
        cdef Py_ssize_t t = self.root, r
        cdef double s = 0.0, k
        while t != NONE:
            r = self.right[t]
            k = self.key[t] - threshold
            if k > 0.0:
                s += k * k
                if r != NONE:
                    s += self.square[r] - threshold * (
                        2.0 * self.total[r] - self.count[r] * threshold
                    )
                t = self.left[t]
            else:
                t = r
        return s if s > 0.0 else 0.0
