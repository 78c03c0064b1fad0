from streamlearn.stream.sources.rows cimport RowEnds

cdef enum:
    PADDING = 17  # readable bytes before and after lines, so that no line is a special case


cdef struct Line:  # where in a block
    Py_ssize_t start
    Py_ssize_t length


cdef class ByteBlock:
    cdef bytearray text
    cdef char* at
    cdef Py_ssize_t filled  # bytes of it
    cdef Py_ssize_t whole  # of those, the ones in whole lines
    cdef Line* line  # the non-blank ones
    cdef Py_ssize_t lines
    cdef Py_ssize_t room
    cdef int cut(self, Py_ssize_t at) except -1 nogil
    cdef int find_rows(self, RowEnds ends, bint ended) except -1 nogil
    cdef int begin(self, ByteBlock old, Py_ssize_t first, Py_ssize_t at) except -1
    cdef int add(self, Py_ssize_t start, Py_ssize_t stop) except -1 nogil


cdef class LineSlice:
    cdef ByteBlock block
    cdef Py_ssize_t first
    cdef Py_ssize_t n

    cdef inline const char* line(self, Py_ssize_t i, const char** end) noexcept nogil:
        """Return the start of line i, which ends in a zero byte."""
        cdef const Line* one = self.block.line + self.first + i
        end[0] = self.block.at + one.start + one.length
        return self.block.at + one.start
