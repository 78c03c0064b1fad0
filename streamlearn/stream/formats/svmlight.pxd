from streamlearn.features.reader cimport Reader
from streamlearn.stream.formats.text_decoder cimport TextDecoder


cdef class SVMLightDecoder(TextDecoder):
    cdef bint simple  # no field is declared
    cdef int read_line(self, Reader reader, const char* p, const char* end) except -1 nogil
    cdef bint query(self, const char** at, const char* end) noexcept nogil
    cdef int make_columns(self) except -1 nogil
    cdef int reserve(self, Py_ssize_t columns) except -1 with gil
    cdef int read_as_event(self) except -1 with gil
