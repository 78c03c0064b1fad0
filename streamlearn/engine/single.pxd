cimport cython

from streamlearn.engine.learner cimport RowLearner
from streamlearn.engine.weights cimport Minibatch, Weights
from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row


@cython.final
cdef class Single(RowLearner):
    cdef readonly Loss loss
    cdef readonly Weights weights
    cdef readonly Weights free_intercept
    cdef readonly Minibatch batch
    cdef double intercept_sum
    cdef bint whole, watchful, separate_score, inside, special
    cdef int one_slot
    cdef double one_value
    cdef Row one
    cdef double learn_one(self, Row* row, double y, double weight, bint scored) noexcept nogil
    cdef double learn_specially(
        self, Row* row, double y, double weight, bint scored
    ) noexcept nogil
    cdef int correct(self, Row* row, double y, double weight, double back) except -1
    cdef double predict_one(self, Row* row) noexcept nogil
    cdef double positive(self, double score) noexcept nogil
    cdef double ask(self, Row* row) noexcept nogil
    cdef void step(self, Row* row, double slope, double intercept_slope) noexcept nogil


@cython.final
cdef class OneVersusRest(RowLearner):
    cdef readonly list singles
    cdef void** each
    cdef bint log_odds  # the scores of one class against the rest
    cdef int point(self) except -1
