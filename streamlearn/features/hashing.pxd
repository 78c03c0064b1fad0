from streamlearn.features.reader cimport Reader


cdef class Hashing(Reader):
    cdef readonly int bits
