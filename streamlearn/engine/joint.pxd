cimport cython

from streamlearn.engine.row_learner cimport RowLearner
from streamlearn.engine.averaged_rule cimport Minibatch, AveragedRule
from streamlearn.losses.loss cimport VectorLoss
from streamlearn.core.row cimport Row


@cython.final
cdef class Joint(RowLearner):
    cdef readonly VectorLoss loss
    cdef readonly AveragedRule weights
    cdef readonly AveragedRule free_intercept
    cdef readonly Minibatch batch
    cdef readonly Minibatch intercept_batch
    cdef bint observes_events, separate_score, inside
    cdef Py_ssize_t wide_room
    cdef int* wide_slot
    cdef double* numbers
    cdef void output_row(self, Row* row, Py_ssize_t k, Row* out) noexcept nogil
    cdef void query(self, Row* row, double* scores, bint shown) noexcept nogil
