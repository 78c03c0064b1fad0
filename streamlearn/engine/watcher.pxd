from streamlearn.losses.loss cimport MAX_PENDING
from streamlearn.losses.loss_sum cimport LossSum, add_pending
from streamlearn.core.row cimport Row


cdef inline void add_tangent(double* gradient, Row* row, double pull) noexcept nogil:
    """Add `pull` times a row, and its intercept of 1."""
    cdef Py_ssize_t i
    if pull == 0.0:
        return
    gradient[0] += pull
    for i in range(row.n):
        gradient[row.slot[i] + 1] += pull * row.value[i]


cdef class Watcher:
    """An observer of every learned event and its scores before learning."""
    cdef double* scores
    cdef Py_ssize_t score_room
    cdef LossSum losses
    # Psi(w) before each of the pending events of `losses`
    cdef double penalties[MAX_PENDING]
    # whether the learner must pass Psi(w)
    cdef bint needs_penalty
    # how many events are noted when it is `process`
    cdef int process_at
    # the sum of weight * slope * row over all events, after that of weight * slope; NULL: not kept
    cdef double* gradient
    # the number of features that have a place there
    cdef Py_ssize_t gradient_room
    cdef int make_room(self, Py_ssize_t outputs) except -1
    cdef void grow_gradient(self, Py_ssize_t features) noexcept nogil
    cdef double slope_at(self, double score, double label) noexcept nogil
    cdef void corrected(self) noexcept nogil
    cdef void process(self, Row* row, const double* y, Py_ssize_t outputs) noexcept nogil

    cdef inline void record_event(
        self, Row* row, const double* y, double weight, Py_ssize_t outputs, double penalty,
        double slope
    ) noexcept nogil:
        """Record a learned event of weight > 0, whose scores before learning are in `scores`.

        penalty: Psi(w) before learning, if needed and known without a pass over all slots, else NaN
        slope: the slope of the loss at the score, if the learner computed it, else NaN
        """
        if self.gradient != NULL:
            if slope != slope:
                slope = self.slope_at(self.scores[0], y[0])
            add_tangent(self.gradient, row, weight * slope)
        self.penalties[self.losses.last.n] = penalty
        add_pending(&self.losses, self.scores[0], y[0], weight, slope)
        if self.losses.last.n >= self.process_at:
            self.process(row, y, outputs)
