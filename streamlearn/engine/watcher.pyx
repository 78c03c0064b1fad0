"""Who wants to know what a learner learns: the regret tracker, for one."""

from libc.stdlib cimport free

from streamlearn.row cimport Row
from streamlearn.rules.table cimport room


cdef class Watcher:
    """Told of every event that is learnt, with the scores before it was.

    A learner has at most one; it is called within the run over rows, without the GIL.
    """

    def __dealloc__(self):
        free(self.scores)

    cdef int make_room(self, Py_ssize_t outputs) except -1:
        """Room for the scores of an event."""
        self.scores = <double*>room(self.scores, outputs * sizeof(double))
        self.score_room = outputs
        return 0

    cdef void see(
        self, Row* row, const double* y, double weight, Py_ssize_t outputs, double penalty,
        double slope
    ) noexcept nogil:
        """An event of weight > 0 was learnt; `scores` are those before.

        penalty: Psi(w) before, where the rule keeps it up to date, else NaN.
        slope: the loss's slope at the score, where the learner asked for it, else NaN.
        """

    def mirror(self):
        """The two classes changed places."""

    def use_loss(self, loss):
        """The learner's loss is now this one, for other classes."""
