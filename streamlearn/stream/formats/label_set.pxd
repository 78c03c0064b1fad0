cdef class LabelSet:
    cdef readonly list labels
    cdef readonly bint closed
    cdef readonly long long closed_at
    cdef public long long events
    cdef readonly bint declared
    cdef readonly bint allows_any
    cdef readonly object warmup
    cdef long long due
    cdef readonly object positive_values  # declared; all other values are negative
    cdef readonly list negative_values  # the first ones, until all positive ones have occurred
    cdef readonly list positive_seen  # the positive values that have occurred
    cdef object most, allowed
    cdef bint booleans
    cdef dict known

    cdef object normalized(self, object value)
    cdef object like_the_first(self, object value)
    cdef list positive_as(self, object value)
    cdef int set_labels(self, labels) except -1
    cdef object refusal(self, labels)
    cdef int detect_booleans(self, labels) except -1
    cdef int close(self) except -1
