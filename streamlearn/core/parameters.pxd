cdef class Parameterized:
    pass
