from streamlearn.rules.scaled cimport ProjectedSubgradient


cdef class AdaptiveCurvature(ProjectedSubgradient):
    cdef readonly object radius, gradient_bound
    cdef double given_bound
    cdef public double R, curvature, since
    cdef double update_gradient_bound(self) noexcept nogil
    cdef double balance(self, double curvature, double ratio) noexcept nogil
