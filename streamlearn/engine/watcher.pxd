from streamlearn.losses.loss cimport FEW
from streamlearn.losses.total cimport Total, note
from streamlearn.core.row cimport Row


cdef class Watcher:
    """Told of every event that is learned, with the scores before it was."""
    cdef double* scores
    cdef Py_ssize_t score_room
    cdef Total losses
    # Psi(w) before each of the events that `losses` has noted
    cdef double penalties[FEW]
    # whether to ask the learner for Psi(w)
    cdef bint priced
    # how many events are noted when it is `turn`
    cdef int stop
    cdef int make_room(self, Py_ssize_t outputs) except -1
    cdef void corrected(self) noexcept nogil
    cdef void turn(self, Row* row, const double* y, Py_ssize_t outputs) noexcept nogil

    cdef inline void see(
        self, Row* row, const double* y, double weight, Py_ssize_t outputs, double penalty,
        double slope
    ) noexcept nogil:
        """An event of weight > 0 was learned; `scores` are those before.

        penalty: Psi(w) before, where it was asked for and the rule keeps it up to date, else NaN.
        slope: the loss's slope at the score, where the learner asked for it, else NaN.
        """
        self.penalties[self.losses.last.n] = penalty
        note(&self.losses, self.scores[0], y[0], weight, slope)
        if self.losses.last.n >= self.stop:
            self.turn(row, y, outputs)
