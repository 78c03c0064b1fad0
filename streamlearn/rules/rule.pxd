from streamlearn.losses.loss cimport Loss
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.core.row cimport Row
from streamlearn.rules.table cimport SlotTable
from streamlearn.core.parameters cimport Parameterized


cdef class StepSums:
    """Scale c and threshold T of past steps: |w_j| = c (key - T)_+ after each of them."""
    cdef Py_ssize_t size, capacity
    cdef double base
    cdef double* scales      # prefix sums of c
    cdef double* products    # prefix sums of c T
    cdef double* thresholds
    cdef int append(self, double c, double threshold) noexcept nogil
    cdef double sum_between(self, double key, double a, double b) noexcept nogil
    cdef bint full(self) noexcept nogil
    cdef void drop_until(self, double t) noexcept nogil
    cdef int reserve(self, Py_ssize_t n) except -1


cdef class Rule(Parameterized):
    cdef SlotTable table
    cdef double* cells  # of slot 0, in the table
    cdef readonly int width
    cdef Py_ssize_t offset, stride  # of a slot's numbers; from one slot to the next
    cdef bint table_is_shared  # the table is shared
    cdef readonly Py_ssize_t n
    cdef public double t
    cdef readonly Penalty penalty
    cdef readonly object loss
    cdef StepSums step_sums
    # set by a rule when averages must be settled and `rebase` called before the next step
    cdef bint needs_rebase
    # set by a rule that must `observe` every event of a batch before it learns their sum
    cdef bint observes_events
    # evaluates the slope at a point other than its weights
    cdef bint separate_query
    # prefetches the state of coming rows
    cdef bint prefetches
    # untouched slots keep their weight, or it has a closed form over time
    cdef public bint lazy
    cdef void prefetch_row(self, Row* row, Py_ssize_t shift) noexcept nogil
    cdef inline double* cell(self, Py_ssize_t j) noexcept nogil:
        """Return the numbers of slot j, in the order of `fields`."""
        return self.cells + self.stride * j
    cdef double* scratch
    cdef Py_ssize_t scratch_room
    cdef double* scratch_for(self, Py_ssize_t n) noexcept nogil
    cdef double query(self, Row* row) noexcept nogil
    cdef double score(self, Row* row) noexcept nogil
    cdef double predict(self, Row* row) noexcept nogil
    cdef void update(self, Row* row, double slope) noexcept nogil
    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil
    cdef double score_for_learning(self, Row* row) noexcept nogil
    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil
    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil
    cdef double weight(self, Py_ssize_t j) noexcept nogil
    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil
    cdef void rebase(self) noexcept nogil
    cdef bint erases_weights(self) noexcept nogil
    cdef double penalty_now(self) noexcept nogil
    cdef int grow(self, Py_ssize_t n) except -1
    cdef int slots_added(self, Py_ssize_t old) except -1
    cdef void init_slot(self, Py_ssize_t j) noexcept nogil
    cdef int record_steps(self) except -1
