from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule


cdef class EventRule(Rule):
    cdef double slope  # of the loss at the score of the event learned last
    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil
    cdef double score_for_learning(self, Row* row) noexcept nogil
    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil
