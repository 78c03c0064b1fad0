cdef class Spec:
    pass
