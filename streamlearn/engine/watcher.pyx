"""An observer of the events that a learner learns, such as the regret tracker."""

from libc.stdlib cimport free

from streamlearn.core.row cimport Row
from streamlearn.core.memory cimport reallocate


cdef class Watcher:
    """An observer of every learned event and its scores before learning.

    A learner has at most one, which it calls in the loop over rows without the GIL. Events are
    collected and processed in groups, so that watching costs little.
    """

    def __dealloc__(self):
        free(self.scores)

    cdef int make_room(self, Py_ssize_t outputs) except -1:
        """Reserve the scores of an event."""
        self.scores = <double*>reallocate(self.scores, outputs * sizeof(double))
        self.score_room = outputs
        return 0

    cdef void process(self, Row* row, const double* y, Py_ssize_t outputs) noexcept nogil:
        """Process the pending events, at least `process_at` and at most MAX_PENDING."""

    cdef void grow_gradient(self, Py_ssize_t features) noexcept nogil:
        """Make room for so many features in `gradient`."""

    cdef double slope_at(self, double score, double label) noexcept nogil:
        """Return the slope of the loss at a score."""
        return 0.0

    cdef void corrected(self) noexcept nogil:
        """Handle a change of the weights without a new event."""

    def swap_classes(self):
        """Handle a swap of the two classes."""

    def use_loss(self, loss):
        """Use this loss, after the learner's classes changed."""
