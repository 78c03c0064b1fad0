from streamlearn.core.row cimport Row
from streamlearn.rules.recorded_steps cimport RecordedSteps


cdef class Scaled(RecordedSteps):
    cdef public double scale, square, peak, changes, largest_gradient, bound_sum
    cdef double dot, length
    # <w, x> of the row scored last
    cdef const int* cached_slots
    cdef double cached_score
    cdef double l2
    cdef void measure(self, Row* row, double slope) noexcept nogil
    cdef double gradient_norm(self) noexcept nogil
    cdef void move(
        self, Row* row, double slope, double step, double shrink, double radius
    ) noexcept nogil
    cdef void refresh(self) noexcept nogil


cdef class ProjectedSubgradient(Scaled):
    cdef readonly object project
    cdef public double largest_loss, largest_weight
    cdef double fixed_radius
    cdef bint proved
    cdef double limit(self) noexcept nogil
