cimport cython

from streamlearn.engine.learner cimport RowLearner
from streamlearn.engine.watcher cimport Watcher
from streamlearn.regret.reservoir cimport Reservoir

# Events before which Psi(w) was not read: its sum over them, and the variance of that.
cdef struct Gap:
    double events, total, variance


@cython.final
cdef class Account(Watcher):
    cdef Reservoir sample
    cdef readonly object loss
    cdef bint scalar
    cdef readonly Py_ssize_t outputs
    # without the events that are noted only
    cdef double past, weight_past, penalty_past
    cdef double penalty_sum, penalty_rest, penalty_variance
    # how many of those noted the sample knows of
    cdef int offered
    # Psi(w_t) as it was known last
    cdef readonly double penalty, next_look
    # from what it was known as before that
    cdef double penalty_change
    cdef bint exact, penalised
    cdef public RowLearner learner
    cdef public object look
    cdef public object wake
    cdef double due
    cdef void add_value(self, double value) noexcept nogil
    cdef int next_stop(self) noexcept nogil
    cdef double last_weights(self) noexcept nogil
    cdef double last_penalties(self) noexcept nogil
    cdef double penalty_value(self) noexcept nogil
    cdef void peek(self) noexcept nogil
    cdef void learn_penalty(self, double penalty) noexcept nogil
    cdef Gap gap_to(self, double penalty) noexcept nogil
    cdef double events_behind(self) noexcept nogil
    cdef int rouse(self) except -1
