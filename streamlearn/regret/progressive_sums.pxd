cimport cython
from libc.stdint cimport int64_t

from streamlearn.engine.row_learner cimport RowLearner
from streamlearn.engine.watcher cimport Watcher
from streamlearn.regret.reservoir cimport Reservoir
from streamlearn.regret.score_cells cimport ScoreCells

# Events since Psi(w) was read: the estimated sum of Psi over them, and its variance.
cdef struct PenaltyGap:
    double events, total, variance


@cython.final
cdef class ProgressiveSums(Watcher):
    cdef readonly Reservoir reservoir
    cdef readonly bint records
    cdef readonly ScoreCells cells
    # event k, from 0, has the position first + stride * k
    cdef int64_t first, stride
    # whether others have learned some of the events
    cdef readonly bint joined
    cdef readonly object loss
    cdef bint scalar
    cdef object gradient_array
    cdef readonly Py_ssize_t outputs
    # without the events that are only pending
    cdef double past, weight_past, penalty_past
    cdef double before  # events before the first of these
    cdef double penalty_sum, penalty_rest, penalty_variance
    # the last known Psi(w_t)
    cdef readonly double penalty, next_penalty_read
    # its difference from the value before
    cdef double penalty_change
    cdef bint exact, penalized
    cdef public RowLearner learner
    cdef public object read_penalty
    cdef int64_t position(self, Py_ssize_t pending) noexcept nogil
    cdef int use_gradient(self, gradient) except -1
    cdef void add_value(self, double value) noexcept nogil
    cdef int next_process_at(self) noexcept nogil
    cdef double pending_weight(self) noexcept nogil
    cdef double pending_penalty(self) noexcept nogil
    cdef double penalty_value(self, double* work) noexcept nogil
    cdef void sample_penalty(self) noexcept nogil
    cdef void set_penalty(self, double penalty) noexcept nogil
    cdef PenaltyGap gap_to(self, double penalty) noexcept nogil
    cdef double events_since_read(self) noexcept nogil
