"""Who wants to know what a learner learns: the regret tracker, for one."""

from libc.stdlib cimport free

from streamlearn.core.row cimport Row
from streamlearn.rules.table cimport room


cdef class Watcher:
    """Told of every event that is learned, with the scores before it was.

    A learner has at most one; it is called within the run over rows, without the GIL. Events are
    noted, and only now and then is there more to do, so that watching costs little.
    """

    def __dealloc__(self):
        free(self.scores)

    cdef int make_room(self, Py_ssize_t outputs) except -1:
        """Room for the scores of an event."""
        self.scores = <double*>room(self.scores, outputs * sizeof(double))
        self.score_room = outputs
        return 0

    cdef void turn(self, Row* row, const double* y, Py_ssize_t outputs) noexcept nogil:
        """At least `stop` events are noted, this one last: no more than FEW can be."""

    cdef void corrected(self) noexcept nogil:
        """The weights moved, and no event was learned."""

    def mirror(self):
        """The two classes changed places."""

    def use_loss(self, loss):
        """The learner's loss is now this one, for other classes."""
