"""The steps of stochastic dual coordinate ascent, one example or a batch at a time ([Takac13] 4).

- SingleSteps: exact maximization over one dual at a time (14). Examples whose dual stays at an end
  of its range are skipped for a while (liblinear's shrinking), until `measure` reactivates them.
- BatchSteps: b examples, each maximized at the same w (15), then applied together.
"""

cimport cython
from libc.math cimport fmax, fmin, pow

from streamlearn.hindsight.dual_problem cimport PATIENCE, DualProblem, Example
from streamlearn.core.random cimport next64
from streamlearn.core.row cimport prefetch, soft

import numpy as np

cdef enum:
    PREFETCH_DISTANCE = 8  # a row is fetched so many examples before its use
    SAMPLE_EVERY = 8  # the gap is estimated from one example in so many


cdef class DualAscent(DualProblem):
    """Epochs over the examples in a random order that `seed` determines."""

    def __init__(
        self, rows, loss, labels, weights, l1, l2, *, seed=0, averaged=False
    ):
        DualProblem.__init__(self, rows, loss, labels, weights, l1, l2, averaged)
        self.state = seed
        self.orders = np.empty(self.n, dtype=np.int32)
        self.order = <int*><size_t>self.orders.ctypes.data

    def begin(self, bint again=False):
        """Begin an epoch over the active examples, in a new order or again in the last one."""
        self.at = 0
        self.sampled = self.sampled_weight = self.visited_weight = 0.0
        if again:
            return
        awake = np.flatnonzero((self.still_counts < PATIENCE) & (self.table[:, 2] > 0.0))
        self.active = len(awake)
        self.orders[: self.active] = awake
        cdef Py_ssize_t k, other
        cdef int i
        with nogil:
            for k in range(self.active - 1, 0, -1):
                other = self.random_below(k + 1)
                i = self.order[k]
                self.order[k] = self.order[other]
                self.order[other] = i

    @property
    def estimate(self):
        """The gap estimated in this epoch from a sample of the examples, each before its step."""
        if self.sampled_weight == 0.0:
            return 0.0
        return self.sampled / self.sampled_weight * self.visited_weight

    cdef Py_ssize_t random_below(self, Py_ssize_t n) noexcept nogil:
        """Return a random number from 0 to n - 1: the upper half of splitmix64, scaled."""
        return <Py_ssize_t>(((next64(&self.state) >> 32) * <unsigned long long>n) >> 32)

    cdef void sample_gap(self, Py_ssize_t k, Py_ssize_t i, double p) noexcept nogil:
        cdef double weight = self.example[i].weight
        self.visited_weight += weight
        if k % SAMPLE_EVERY == 0:
            self.sampled += self.gap_at(i, p)
            self.sampled_weight += weight

    cdef void prefetch_rows(self, Py_ssize_t k) noexcept nogil:
        """Prefetch what the steps after k will read: a random order has no locality."""
        cdef Py_ssize_t i, a, n, line
        if self.rows.first == NULL:
            return
        if k + 2 * PREFETCH_DISTANCE < self.active:
            i = self.order[k + 2 * PREFETCH_DISTANCE]
            prefetch(self.rows.first + i)
            prefetch(self.example + i)
        if k + PREFETCH_DISTANCE < self.active:
            i = self.order[k + PREFETCH_DISTANCE]
            a = <Py_ssize_t>self.rows.first[i]
            n = min(<Py_ssize_t>self.rows.first[i + 1] - a, 64)
            if self.rows.doubles != NULL:
                for line in range(0, n + 7, 8):
                    prefetch(self.rows.doubles + a + line)
            if self.rows.short_index != NULL:
                for line in range(0, n + 15, 16):
                    prefetch(self.rows.short_index + a + line)


@cython.final
cdef class SingleSteps(DualAscent):
    """One example at a time."""

    def run(self, Py_ssize_t examples):
        """Visit up to so many examples; return whether the epoch is over."""
        cdef Py_ssize_t k, i, stop = min(self.at + examples, self.active)
        cdef Example* x
        cdef double p, dual
        with nogil:
            for k in range(self.at, stop):
                self.prefetch_rows(k)
                i = self.order[k]
                x = self.example + i
                p = self.rows.dot(i, self.weight) + self.offset
                self.sample_gap(k, i, p)
                dual = self.best_dual(i, p, x.curvature)
                self.clock += 1
                if dual == x.dual:
                    if self.still[i] < PATIENCE:
                        self.still[i] += 1
                else:
                    self.still[i] = 0
                    self.add(i, x.weight * (x.dual - dual) / self.l2)
                    self.assign(i, dual)
            self.at = stop
        return self.at == self.active


@cython.final
cdef class BatchSteps(DualAscent):
    """`size` examples at a time: [Takac13] 4.1 (naive), 4.2 (safe) and 4.3 (aggressive).

    The paper assumes |x_i| <= 1. Its formulas are applied to the rows divided by their norms, with
    steps times |x_i|, so that beta multiplies |x_i|^2 whatever the scale of the rows. `safe_beta`
    is beta_b. The paper's guarantee holds on average over batches; here it holds for each batch,
    because steps that could lower the dual objective are shortened.
    """

    def __init__(
        self, rows, loss, labels, weights, l1, l2, *, Py_ssize_t size, update, double safe_beta,
        seed=0, averaged=False
    ):
        DualAscent.__init__(
            self, rows, loss, labels, weights, l1, l2, seed=seed, averaged=averaged
        )
        self.size, self.safe_beta = size, safe_beta
        self.naive, self.adaptive = update == "naive", update == "aggressive"
        self.beta = 1.0 if self.naive else safe_beta
        self.keep = np.zeros((3, size)), np.zeros((2, self.columns))
        batch, sums = self.keep
        self.score = <double*><size_t>batch.ctypes.data
        self.first = self.score + size
        self.second = self.first + size
        self.sum = <double*><size_t>sums.ctypes.data
        self.other = self.sum + self.columns
        self.found = np.empty(self.columns, dtype=np.int64)
        self.touched = <long long*><size_t>self.found.ctypes.data
        self.marks = np.zeros(self.columns, dtype=np.uint8)
        self.mark = <unsigned char*><size_t>self.marks.ctypes.data

    def run(self, Py_ssize_t examples):
        """Visit at least so many examples, if there are; return whether the epoch is over."""
        cdef Py_ssize_t stop = min(self.at + examples, self.active), b
        with nogil:
            while self.at < stop:
                b = min(self.size, self.active - self.at)
                self.take_batch(self.order + self.at, b)
                self.clock += 1
                self.at += b
        return self.at == self.active

    cdef void take_batch(self, const int* picks, Py_ssize_t b) noexcept nogil:
        """Take the steps of one batch."""
        cdef Py_ssize_t k
        for k in range(b):
            self.prefetch_rows(self.at + k)
            self.score[k] = self.rows.dot(picks[k], self.weight) + self.offset
            self.sample_gap(self.at + k, picks[k], self.score[k])
        self.best_duals(picks, b, self.beta, self.first)
        if self.naive:
            for k in range(b):
                self.add(picks[k], self.row_coefficient(picks[k], self.first[k]))
                self.assign(picks[k], self.first[k])
        else:
            self.safe_batch(picks, b)

    cdef void safe_batch(self, const int* picks, Py_ssize_t b) noexcept nogil:
        """Take the steps of a batch, shortened if together they could lower the dual objective."""
        cdef double beta = self.beta, square, length, ratio, trial, share = 1.0
        cdef double* dual = self.first
        self.list_columns(picks, b)
        square = self.joint_square(picks, b, dual, self.sum)
        length = self.separate_squares(picks, b, dual)
        if self.adaptive and length > 0.0:
            ratio = fmin(fmax(square / length, 1.0), self.safe_beta)
            self.best_duals(picks, b, ratio, self.second)
            trial = self.joint_square(picks, b, self.second, self.other)
            if self.dual_gain(
                picks, b, self.second, trial
            ) > self.dual_gain(picks, b, dual, square):
                dual, beta, square = self.second, ratio, trial
                length = self.separate_squares(picks, b, dual)
                self.sum, self.other = self.other, self.sum
            self.beta = pow(self.beta, 0.95) * pow(ratio, 0.05)
        # The steps maximize the gain minus beta length / 2. So without the quadratic term they gain
        # at least beta length, and a share s of them gains s beta length - s^2 square / 2.
        if square > 2.0 * beta * length:
            share = beta * length / square
        self.apply_steps(picks, b, dual, share)

    cdef void best_duals(
        self, const int* picks, Py_ssize_t b, double beta, double* dual
    ) noexcept nogil:
        cdef Py_ssize_t i, k
        for k in range(b):
            i = picks[k]
            dual[k] = self.best_dual(i, self.score[k], beta * self.example[i].curvature)

    cdef double row_coefficient(self, Py_ssize_t i, double dual) noexcept nogil:
        """Return the multiple of x_i that is added to v."""
        cdef Example* x = self.example + i
        return x.weight * (x.dual - dual) / self.l2

    cdef void list_columns(self, const int* picks, Py_ssize_t b) noexcept nogil:
        """List the columns of the batch."""
        cdef Py_ssize_t k, e, j, n, start
        cdef double x
        for k in range(b):
            start = self.rows.begin(picks[k], &n)
            for e in range(n):
                j = self.rows.entry(e, start, &x)
                if not self.mark[j]:
                    self.mark[j] = 1
                    self.touched[self.count] = j
                    self.count += 1

    cdef double joint_square(
        self, const int* picks, Py_ssize_t b, const double* dual, double* total
    ) noexcept nogil:
        """Write the change of v to `total`; return l2 times its square, d' Q d / (lambda n^2)."""
        cdef Py_ssize_t k
        cdef double square = 0.0
        for k in range(self.count):
            total[self.touched[k]] = 0.0
        for k in range(b):
            self.rows.add(picks[k], self.row_coefficient(picks[k], dual[k]), total)
        for k in range(self.count):
            square += total[self.touched[k]] * total[self.touched[k]]
        return self.l2 * square

    cdef double separate_squares(
        self, const int* picks, Py_ssize_t b, const double* dual
    ) noexcept nogil:
        """Return |d|^2 in the same unit: the square if the rows were orthogonal."""
        cdef Py_ssize_t k
        cdef Example* x
        cdef double total = 0.0
        for k in range(b):
            x = self.example + picks[k]
            total += x.weight * x.curvature * (x.dual - dual[k]) * (x.dual - dual[k])
        return total

    cdef double dual_gain(
        self, const int* picks, Py_ssize_t b, const double* dual, double square
    ) noexcept nogil:
        """Return what the steps add to D (with l1, a lower bound of it)."""
        cdef Py_ssize_t k
        cdef Example* x
        cdef double total = -0.5 * square
        for k in range(b):
            x = self.example + picks[k]
            total += x.weight * (
                self.conjugate_at(x.dual, x.label)
                - self.conjugate_at(dual[k], x.label)
                + (dual[k] - x.dual) * self.score[k]
            )
        return total

    cdef void apply_steps(
        self, const int* picks, Py_ssize_t b, const double* dual, double share
    ) noexcept nogil:
        """Apply a share of the steps, whose sum is known, and clear the list of columns."""
        cdef Py_ssize_t k, j
        cdef double old
        for k in range(b):
            old = self.example[picks[k]].dual
            self.assign(picks[k], dual[k] if share == 1.0 else old + share * (dual[k] - old))
        for k in range(self.count):
            j = <Py_ssize_t>self.touched[k]
            self.mark[j] = 0
            self.v[j] += share * self.sum[j]
            if self.l1 > 0.0:
                self.weight[j] = soft(self.v[j], self.threshold)
        self.count = 0
