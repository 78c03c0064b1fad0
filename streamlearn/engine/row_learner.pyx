"""The hot loop: rows in, scores out, with two calls of the rule per row.

A learner is a Single (one output), OneVersusRest (one output per class) or Joint (all classes in
one vector, for losses of several outputs).

An intercept is either free, with its own rule on slot 0, or inside the penalty: then it is slot 0
and the features follow, with `shift` = 1.
"""

from libc.math cimport NAN
from libc.stdlib cimport free
from libc.string cimport memcpy

from streamlearn.engine.rows cimport Rows
from streamlearn.core.row cimport Row
from streamlearn.core.memory cimport reallocate

import numpy as np

from streamlearn.errors import DivergenceError


cdef double* data_of(array) except? NULL:
    return NULL if array is None else <double*><size_t>array.ctypes.data


cdef class RowLearner:
    """The base class of learners, which learn from rows: one score per row, or one per class."""

    def __cinit__(self):
        self.slope = NAN

    def __dealloc__(self):
        free(self.slot)
        free(self.value)

    cdef int make_room(self, Py_ssize_t n) except -1:
        """Reserve a row of n features and an intercept."""
        if n + 1 > self.row_room:
            self.row_room = 2 * n + 16
            self.slot = <int*>reallocate(self.slot, self.row_room * sizeof(int))
            self.value = <double*>reallocate(self.value, self.row_room * sizeof(double))
        if self.watcher is not None and self.watcher.score_room < self.outputs:
            self.watcher.make_room(self.outputs)
        return 0

    cdef int grow(self, Py_ssize_t features) except -1:
        """Grow to this number of features."""
        self.features = max(self.features, features)
        return 0

    def extend(self, features):
        """Grow to this number of features."""
        self.grow(features)

    cdef void with_intercept(self, Row* row, Row* out) noexcept nogil:
        """Set `out` to the row with the intercept as slot 0."""
        cdef Py_ssize_t i
        self.slot[0] = 0
        self.value[0] = 1.0
        for i in range(row.n):
            self.slot[i + 1] = row.slot[i] + 1
        memcpy(self.value + 1, row.value, row.n * sizeof(double))
        out.n = row.n + 1
        out.slot = self.slot
        out.value = self.value
        out.square = row.square + 1.0

    cdef bint can_learn(self, Row* row, const double* y, double weight) noexcept nogil:
        """Return whether this row can be learned, without learning it."""
        return True

    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil:
        """Learn one row; write its scores before learning to `scores` if not NULL."""

    cdef void predict(self, Row* row, double* scores) noexcept nogil:
        """Write the scores of one row."""

    cdef void class_probabilities(
        self, const double* scores, Py_ssize_t k, double* out
    ) noexcept nogil:
        """Write the class probabilities for the scores of k outputs; one output has two classes."""

    cdef void prefetch_row(self, Row* row) noexcept nogil:
        """Prefetch the state of a coming row (if `prefetches`)."""

    cdef double penalty_now(self) noexcept nogil:
        """Return Psi of the predicting weights, NaN if that needs a pass over all slots."""
        return NAN

    cdef double penalty_summed(self, double* work) noexcept nogil:
        """Return Psi of the predicting weights by a pass over all slots, NaN if not l1 and l2.

        Add to `work` the slots and steps that it took.
        """
        return NAN

    cdef int raise_if_diverged(self) except -1:
        """Raise DivergenceError if an event could not be learned."""
        if self.diverged:
            self.diverged = False
            raise DivergenceError
        return 0

    cdef int enter(self) except -1:
        if self.busy:
            raise RuntimeError(
                "this learner is in use by another thread; wait, or copy the model per thread")
        self.busy = True

    def probabilities(self, scores):
        """Return the class probabilities, a row for each row of scores."""
        cdef Py_ssize_t i, n, k, several
        cdef const double* score
        cdef double* share
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        n, k = scores.shape
        several = max(k, 2)
        shares = np.empty((n, several))
        score = <const double*><size_t>scores.ctypes.data
        share = <double*><size_t>shares.ctypes.data
        for i in range(n):
            self.class_probabilities(score + i * k, k, share + i * several)
        return shares

    def positive_probabilities(self, scores):
        """Return the probability of the second of two classes for each score of one output."""
        cdef double score
        cdef double[2] share
        cdef list found = []
        for score in scores:
            self.class_probabilities(&score, 1, share)
            found.append(share[1])
        return found

    def run(
        self, Rows rows, labels, weights, scores, Py_ssize_t start=0, stop=None, skip=False
    ):
        """Learn rows start .. stop - 1 without the GIL, and write their scores before learning.

        `labels` is float64 with an entry or row for each of these rows, or None: score them only.
        `weights` and `scores` likewise, or None. A row that diverges raises DivergenceError; with
        `skip`, it is not learned, and its scores are NaN. Slots are added with the row that
        introduces them, so results do not depend on batch sizes.
        """
        cdef Columns columns
        cdef Py_ssize_t last = rows.n if stop is None else stop
        columns.labels, columns.weights = data_of(labels), data_of(weights)
        columns.width = labels.shape[1] if labels is not None and labels.ndim == 2 else 1
        columns.scores, columns.skips = data_of(scores), skip
        self.make_room(rows.longest)
        self.enter()
        try:
            with nogil:
                self.run_rows(rows, &columns, start, last)
        finally:
            self.busy = False

    cdef int run_rows(
        self, Rows rows, const Columns* columns, Py_ssize_t start, Py_ssize_t stop
    ) except -1 nogil:
        cdef Py_ssize_t i, k
        cdef double weight = 0.0 if columns.labels == NULL else 1.0
        cdef double* scores = NULL
        cdef bint ahead = self.prefetches and rows.square != NULL  # rows are read in place
        cdef Row row
        for i in range(start, stop):
            if rows.known != NULL and rows.known[i] > self.features:
                with gil:
                    self.grow(<Py_ssize_t>rows.known[i])
            if ahead and i + AHEAD < stop:
                rows.row(i + AHEAD, &row)
                self.prefetch_row(&row)
            rows.row(i, &row)
            if columns.weights != NULL:
                weight = columns.weights[i - start]
            if columns.scores != NULL:
                scores = columns.scores + (i - start) * self.outputs
            if weight != 0.0:
                learn_watched(
                    self, &row, columns.labels + (i - start) * columns.width, weight, scores)
                if self.diverged:
                    if not columns.skips:
                        with gil:
                            self.raise_if_diverged()
                    self.diverged = False
                    for k in range(self.outputs if scores != NULL else 0):
                        scores[k] = NAN
            elif scores != NULL:
                self.predict(&row, scores)
        return 0

    def score(self, Rows rows):
        """Return the scores of all rows, computed without the GIL."""
        scores = np.empty((rows.n, self.outputs))
        self.run(rows, None, None, scores)
        return scores
