from streamlearn.features.scalars cimport DIGITS, Scalar
from streamlearn.stream.formats.decoder cimport Decoder
from streamlearn.stream.formats.keys cimport Role


cdef class TypedDecoder(Decoder):
    cdef Scalar label
    cdef bint has_label
    cdef char[DIGITS] digits  # of the last integer

    cdef int take_role(self, Role role, Scalar* scalar) except -1
    cdef int set_label(self) except -1
    cdef object as_object(self, Scalar* scalar)
