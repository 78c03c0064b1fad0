from streamlearn.rules.scaled cimport Ballistic


cdef class Balanced(Ballistic):
    cdef readonly object radius, gradient_bound
    cdef double given_bound
    cdef public double R, curvature, since
    cdef double settle_bound(self) noexcept nogil
    cdef double balance(self, double curvature, double ratio) noexcept nogil
