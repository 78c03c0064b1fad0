cimport cython

from streamlearn.engine.calibration cimport Calibration
from streamlearn.engine.row_learner cimport RowLearner
from streamlearn.engine.averaged_rule cimport Minibatch, AveragedRule
from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row


@cython.final
cdef class Single(RowLearner):
    cdef readonly Loss loss
    cdef readonly AveragedRule weights
    cdef readonly AveragedRule free_intercept
    cdef readonly Minibatch batch
    cdef readonly Calibration calibration  # None: scores are not calibrated
    cdef double intercept_sum
    cdef bint learns_events, observes_events, separate_score, inside
    cdef bint needs_slope  # of the loss, before the rule learns
    cdef int intercept_slot
    cdef double intercept_value
    cdef Row intercept_row
    cdef double learn_one(self, Row* row, double y, double weight, bint scored) noexcept nogil
    cdef double predict_one(self, Row* row) noexcept nogil
    cdef double predict_raw(self, Row* row, double* apart) noexcept nogil
    cdef double calibrate(self, double p, double apart) noexcept nogil
    cdef double positive_probability(self, double score) noexcept nogil
    cdef double query(self, Row* row) noexcept nogil
    cdef double query_and_predict(self, Row* row, double* shown) noexcept nogil
    cdef void step(self, Row* row, double slope, double intercept_slope) noexcept nogil


@cython.final
cdef class OneVersusRest(RowLearner):
    cdef readonly list singles
    cdef void** single_pointers
    cdef bint log_odds  # the scores of one class against the rest
    cdef int update_pointers(self) except -1
