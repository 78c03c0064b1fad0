cimport cython
from libc.string cimport memcpy

from streamlearn.engine.rows cimport Rows
from streamlearn.engine.watcher cimport Watcher
from streamlearn.losses.loss cimport Loss, VectorLoss
from streamlearn.row cimport Row
from streamlearn.rules.average cimport Average
from streamlearn.rules.rule cimport Rule


@cython.final
cdef class Weights:
    cdef readonly Rule rule
    cdef readonly Average average
    cdef int grow(self, Py_ssize_t n) except -1
    cdef double predict(self, Row* row) noexcept nogil
    cdef void before(self, Row* row) noexcept nogil
    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil
    cdef void after(self) noexcept nogil
    cdef inline double query(self, Row* row) noexcept nogil:
        return self.rule.query(row)
    cdef inline void update(self, Row* row, double slope) noexcept nogil:
        if self.average is not None:
            self.before(row)
        self.rule.update(row, slope)
        if self.average is not None or self.rule.tired:
            self.after()
    cdef double weight(self, Py_ssize_t j) noexcept nogil


@cython.final
cdef class Batch:
    cdef readonly Py_ssize_t size, count
    cdef Py_ssize_t n, capacity, touched
    cdef double* sums
    cdef int* slot
    cdef double* value
    cdef bint* marked
    cdef int grow(self, Py_ssize_t n) except -1
    cdef void add(self, Row* row, double slope) noexcept nogil
    cdef bint complete(self) noexcept nogil
    cdef void take(self, Row* row) noexcept nogil


# The arrays of a run, one item for each row: labels, weights (or NULL), and places for scores.
cdef struct Columns:
    const double* labels
    Py_ssize_t width  # of the labels
    const double* weights
    double* scores


cdef class Learner:
    cdef readonly Py_ssize_t outputs, features, shift
    cdef public Watcher watcher
    cdef bint busy
    # a score or slope was not finite, and its event was left out
    cdef bint diverged
    cdef int complain(self) except -1
    cdef Py_ssize_t row_room
    cdef int* slot
    cdef double* value
    cdef int make_room(self, Py_ssize_t n) except -1
    cdef int know(self, Py_ssize_t features) except -1
    cdef int enter(self) except -1
    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil
    cdef void predict(self, Row* row, double* scores) noexcept nogil
    cdef void learn_all(
        self, Rows rows, const Columns* columns, Py_ssize_t start, Py_ssize_t stop
    ) noexcept nogil
    cdef double penalty_now(self) noexcept nogil
    cdef void placed(self, Row* row, Row* out) noexcept nogil


cdef inline void learn_watched(
    Learner learner, Row* row, const double* y, double weight, double* scores
) noexcept nogil:
    """Learn one row, and tell the watcher if there is one."""
    cdef double penalty
    if learner.watcher is None:
        learner.learn(row, y, weight, scores)
        return
    penalty = learner.penalty_now()
    learner.learn(row, y, weight, learner.watcher.scores)
    if scores != NULL:
        memcpy(scores, learner.watcher.scores, learner.outputs * sizeof(double))
    if not learner.diverged and weight > 0.0:
        learner.watcher.see(row, y, weight, learner.outputs, penalty)


@cython.final
cdef class Single(Learner):
    cdef readonly Loss loss
    cdef readonly Weights weights
    cdef readonly Weights free_intercept
    cdef readonly Batch batch
    cdef double intercept_sum
    cdef bint whole, watchful, separate_score, inside, special
    cdef int one_slot
    cdef double one_value
    cdef Row one
    cdef double learn_one(self, Row* row, double y, double weight, bint scored) noexcept nogil
    cdef double learn_specially(
        self, Row* row, double y, double weight, bint scored
    ) noexcept nogil
    cdef double predict_one(self, Row* row) noexcept nogil
    cdef double ask(self, Row* row) noexcept nogil
    cdef void step(self, Row* row, double slope, double intercept_slope) noexcept nogil


@cython.final
cdef class OneVersusRest(Learner):
    cdef readonly list singles
    cdef void** each
    cdef int point(self) except -1


@cython.final
cdef class Joint(Learner):
    cdef readonly VectorLoss loss
    cdef readonly Weights weights
    cdef readonly Weights free_intercept
    cdef readonly Batch batch
    cdef readonly Batch intercept_batch
    cdef bint watchful, separate_score, inside
    cdef Py_ssize_t wide_room
    cdef int* wide_slot
    cdef double* numbers
    cdef void of_class(self, Row* row, Py_ssize_t k, Row* out) noexcept nogil
    cdef void ask(self, Row* row, double* scores, bint shown) noexcept nogil
