from streamlearn.core.row cimport Row
from streamlearn.losses.loss cimport Loss
from streamlearn.rules.self_tuning cimport SelfTuning
from streamlearn.rules.sparse_slot cimport IN_SLOTS, NEWTON, Strengths

cdef enum:
    BASE = IN_SLOTS  # the score of the mean label, on the intercept (rules/base_rate.pyx)
    MEMBERS


cdef class SparseMixture(SelfTuning):
    cdef readonly double share
    cdef public double features, variance  # N and the sum of pi d^2
    cdef Strengths[2] strengths  # now, of slots outside and inside the penalty
    cdef double[MEMBERS] pi  # the shares
    cdef double[MEMBERS] audible  # the shares without those of silent members
    cdef int voters  # the members that decide where the follower may be non-zero, a bit for each
    cdef double[MEMBERS] regret
    cdef double[MEMBERS] penalty_sum
    # of the event scored last
    cdef double[MEMBERS] scores
    cdef double coin_unclipped
    cdef Py_ssize_t present  # features that are not ignored
    cdef double labels, mass  # sum a y, sum a
    cdef double base_score(self) noexcept nogil
    cdef void share_out(self) noexcept nogil
    cdef void set_l1(self, double l1) noexcept nogil
    cdef void set_strengths(self) noexcept nogil
    cdef inline const Strengths* strengths_of(self, Py_ssize_t j) noexcept nogil:
        return self.strengths + (j >= self.free_slots)
    cdef void charge(self, double slope, double p) noexcept nogil
