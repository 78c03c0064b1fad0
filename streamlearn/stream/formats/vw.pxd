from streamlearn.features.pieces cimport Text
from streamlearn.features.reader cimport Reader
from streamlearn.stream.formats.text_decoder cimport TextDecoder


cdef class VWDecoder(TextDecoder):
    cdef bint has_groups  # interactions are declared
    cdef int head(self, const char* p, const char* end) except -1 nogil
    cdef int namespace(self, Reader reader, const char** at, const char* end) except -1 nogil
    cdef const char* declared_namespace(
        self, Reader reader, Text space, const char* p, const char* end, double scale
    ) except NULL nogil
    cdef int declared_features(
        self, Reader reader, Text space, int outer, const char* p, const char* end
    ) except -1 nogil
    cdef int plain_feature(
        self, Reader reader, Text space, const char* word, const char* end) except -1 nogil
