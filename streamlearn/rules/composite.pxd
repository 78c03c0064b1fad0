from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.self_tuning cimport Sized

cdef enum:
    MAX_RULES = 32

cdef enum:  # the numbers with which a slot begins
    SQUARES
    Z
    SIZE
    SCALE


cdef class Support:
    cdef tuple rules
    cdef int count
    cdef void* each[MAX_RULES]  # borrowed pointers to the rules
    cdef int[MAX_RULES] place  # their places in the mixture
    cdef bint[MAX_RULES] votes
    cdef void vote(self, const double* pi) noexcept nogil
    cdef bint has(self, Py_ssize_t j) noexcept nogil


cdef class Composite(Sized):
    cdef Composite leader  # the rule whose G is in the thresholds
    cdef double threshold(self, Py_ssize_t j) noexcept nogil
    cdef double ridge(self, Py_ssize_t j) noexcept nogil
    cdef double weight_for(self, Py_ssize_t j, double D) noexcept nogil


cdef class SizedComposite(Composite):
    cdef double size_of(self, Py_ssize_t j) noexcept nogil


cdef class AdaptiveComposite(SizedComposite):
    cdef readonly double rate
    cdef readonly str update
    cdef public double norm
    cdef double pace
    cdef bint explicit, implicit
    cdef double slope_of_step(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil
