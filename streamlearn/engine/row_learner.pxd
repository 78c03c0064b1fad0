from libc.math cimport NAN, isfinite
from libc.string cimport memcpy

from streamlearn.engine.rows cimport Rows
from streamlearn.engine.watcher cimport Watcher
from streamlearn.core.row cimport Row


cdef enum:
    AHEAD = 3  # prefetch the row this many rows ahead

# The arrays of a run, each with an entry per row.
cdef struct Columns:
    const double* labels  # NULL: the rows are only scored
    Py_ssize_t width  # of the labels
    const double* weights  # NULL: 1.0
    double* scores  # to write; NULL: none
    bint skips  # rows that diverge, instead of raising DivergenceError


cdef class RowLearner:
    cdef readonly Py_ssize_t outputs, features, shift
    cdef public Watcher watcher
    cdef bint busy
    cdef bint prefetches  # as its rules
    # a score was not finite or a gradient too large, and the event was not learned
    cdef bint diverged
    # the slope of the loss at the score of the event learned last, NaN if it was not computed
    cdef double slope
    cdef int raise_if_diverged(self) except -1
    cdef Py_ssize_t row_room
    cdef int* slot
    cdef double* value
    cdef int make_room(self, Py_ssize_t n) except -1
    cdef int grow(self, Py_ssize_t features) except -1
    cdef int enter(self) except -1
    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil
    cdef void predict(self, Row* row, double* scores) noexcept nogil
    cdef bint can_learn(self, Row* row, const double* y, double weight) noexcept nogil
    cdef int run_rows(
        self, Rows rows, const Columns* columns, Py_ssize_t start, Py_ssize_t stop
    ) except -1 nogil
    cdef void class_probabilities(
        self, const double* scores, Py_ssize_t k, double* out
    ) noexcept nogil
    cdef void prefetch_row(self, Row* row) noexcept nogil
    cdef double penalty_now(self) noexcept nogil
    cdef double penalty_summed(self, double* work) noexcept nogil
    cdef void with_intercept(self, Row* row, Row* out) noexcept nogil


cdef inline bint is_learnable(double p, double slope, Row* row) noexcept nogil:
    """Return whether a row with this score and slope can be learned.

    Rules sum squares of gradients, and one that is not finite would make weights NaN forever. The
    1 is for the intercept.
    """
    return isfinite(p) and slope * slope * (1.0 + row.square) < 1e300


cdef inline void learn_watched(
    RowLearner learner, Row* row, const double* y, double weight, double* scores
) noexcept nogil:
    """Learn one row and notify the watcher, if there is one."""
    cdef double penalty = NAN
    if learner.watcher is None:
        learner.learn(row, y, weight, scores)
        return
    if learner.watcher.needs_penalty:
        penalty = learner.penalty_now()
    learner.learn(row, y, weight, learner.watcher.scores)
    if scores != NULL:
        memcpy(scores, learner.watcher.scores, learner.outputs * sizeof(double))
    if not learner.diverged and weight > 0.0:
        if learner.features > learner.watcher.gradient_room:
            learner.watcher.grow_gradient(learner.features)
        learner.watcher.record_event(row, y, weight, learner.outputs, penalty, learner.slope)
