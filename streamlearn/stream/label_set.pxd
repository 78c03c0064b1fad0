cdef class LabelSet:
    cdef readonly list labels
    cdef readonly bint closed
    cdef readonly long long closed_at
    cdef public long long events
    cdef readonly bint declared
    cdef readonly bint anything
    cdef readonly object warmup
    cdef long long due
    cdef object most, positive_values, allowed
    cdef bint booleans
    cdef dict known

    cdef object taken(self, object value)
    cdef int begin_with(self, labels) except -1
    cdef object refused(self, labels)
    cdef int spell(self, labels) except -1
    cdef int close(self) except -1
