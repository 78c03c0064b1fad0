"""The loss l(p, y) of a prediction p, as the compiled code calls it."""


cdef class Loss:
    cdef double value_at(self, double p, double y) noexcept nogil
    cdef double slope_at(self, double p, double y) noexcept nogil
    cdef double curvature_at(self, double p, double y) noexcept nogil
    cdef double implicit_at(self, double p, double y, double b) noexcept nogil
    cdef double flow_at(self, double p, double y, double b) noexcept nogil


cdef class VectorLoss:
    cdef double value_of(self, const double* f, Py_ssize_t k, const double* y) noexcept nogil
    cdef void slopes_of(self, const double* f, Py_ssize_t k, const double* y, double* out) noexcept nogil
