from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.event_rule cimport EventRule
from streamlearn.rules.feature_sizes cimport FeatureSizes


cdef class SelfTuning(EventRule):
    cdef public double low, high
    cdef bint follows
    cdef double clip(self, double p) noexcept nogil
    cdef void watch_label(self, Loss loss, double y) noexcept nogil


cdef class Normalized(SelfTuning):
    cdef readonly str size
    cdef FeatureSizes sizes
    cdef double sized_score(self, Row* row) noexcept nogil
    cdef bint measures  # whether it measures rows itself; else the owner of shared sizes does
