from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.event_rule cimport EventRule
from streamlearn.rules.feature_sizes cimport FeatureSizes


cdef class SelfTuning(EventRule):
    cdef public double low, high
    cdef bint follows
    cdef double clip(self, double p) noexcept nogil
    cdef void watch_label(self, Loss loss, double y) noexcept nogil


cdef class Sized(SelfTuning):
    cdef readonly str size
    cdef FeatureSizes sizes
    cdef bint measures  # whether it measures rows itself; else the owner of shared sizes does
    cdef double sized_score(self, Row* row) noexcept nogil


cdef class Normalized(Sized):
    pass


cdef inline double moving_slope(
    bint implicit, Loss loss, double p, double y, double slope, double weight, double reach
) noexcept nogil:
    """Return the slope h of a step that moves the score by -h reach: implicit or invariant."""
    cdef double h
    if implicit:
        h = weight * loss.implicit_at(p, y, weight * reach, slope)
    else:
        h = weight * loss.flow_at(p, y, weight * reach, slope)
    # at a kink the step is 0; the papers' choice of slope moves on
    return h if h != 0.0 else weight * slope
