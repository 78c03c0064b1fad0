from streamlearn.rules.rule cimport Rule


cdef class StepSums:
    cdef Py_ssize_t size, capacity
    cdef double base
    cdef double* scales      # prefix sums of c
    cdef double* products    # prefix sums of c T
    cdef double* thresholds
    cdef int append(self, double c, double threshold) noexcept nogil
    cdef double sum_between(self, double key, double a, double b) noexcept nogil
    cdef bint full(self) noexcept nogil
    cdef void restart(self, double t) noexcept nogil
    cdef int reserve(self, Py_ssize_t n) except -1


cdef class RecordedSteps(Rule):
    cdef StepSums step_sums  # None without an average
    cdef void step_scalars(self, double* c, double* threshold) noexcept nogil
    cdef void record_step(self) noexcept nogil
