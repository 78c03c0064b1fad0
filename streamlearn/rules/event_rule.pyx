"""Rules that learn whole events (row, label, weight), not only the slope of the loss.

They support no batches, whose sum has no label, and no vector losses.
"""

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule

from streamlearn.rules.requirements import scalar_loss


cdef class EventRule(Rule):
    """A rule that learns whole events; it implements `weight` and `apply`."""

    needs = (scalar_loss,)
    intercept = "inside"
    learns_events = True

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        """Learn an event and return its score before learning."""
        cdef double p = self.score_for_learning(row)
        self.slope = loss.slope_at(p, y)
        self.apply(row, loss, y, weight, p, self.slope)
        return p

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        """Return the score of an event that is learned next."""
        return self.query(row)

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        """Learn the event scored last, given the slope at its score p."""
