from streamlearn.penalties.penalty cimport Penalty
from streamlearn.core.row cimport Row
from streamlearn.rules.slot_state cimport SlotState


cdef class Rule(SlotState):
    cdef public double t  # steps taken
    cdef readonly Penalty penalty
    cdef readonly object loss
    # the learner must settle averages and call `rebase` before the next step
    cdef bint needs_rebase
    # it must `observe` every event of a batch before it learns their sum
    cdef bint observes_events
    # it evaluates the slope at a point other than its weights
    cdef bint query_is_not_score
    # it prefetches the state of coming rows
    cdef bint prefetches
    # this many of the first slots are outside the penalty: an intercept inside the row
    cdef public Py_ssize_t free_slots
    # steps that reads of lagging weights have replayed, one by one
    cdef readonly double replayed
    # `weight_sum` is exact, so averages visit only the slots of a row
    cdef public bint averages_lazily
    cdef double* scratch
    cdef Py_ssize_t scratch_room
    cdef double* scratch_for(self, Py_ssize_t n) noexcept nogil
    cdef double weight(self, Py_ssize_t j) noexcept nogil
    cdef double score(self, Row* row) noexcept nogil
    cdef double query(self, Row* row) noexcept nogil
    cdef double query_and_predict(self, Row* row, double* shown) noexcept nogil
    cdef double predict(self, Row* row) noexcept nogil
    cdef void update(self, Row* row, double slope) noexcept nogil
    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil
    cdef void prefetch_row(self, Row* row, Py_ssize_t shift) noexcept nogil
    cdef double penalty_now(self) noexcept nogil
    cdef int record_steps(self) except -1
    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil
    cdef bint erases_weights(self) noexcept nogil
    cdef void rebase(self) noexcept nogil
