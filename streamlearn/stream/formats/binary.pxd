cimport cython
from libc.stdint cimport uint32_t, uint64_t

from streamlearn.features.scalars cimport Scalar
from streamlearn.stream.formats.framing cimport Framing
from streamlearn.stream.formats.keys cimport SKIPPED, Key, Keys
from streamlearn.stream.formats.typed cimport TypedDecoder

cdef enum:
    DEEPEST = 64


cdef class BinaryDecoder(TypedDecoder):
    cdef readonly Keys keys
    cdef const char* first  # of the record
    cdef const char* p  # the current byte
    cdef const char* end
    cdef uint32_t records  # counted to notice duplicate fields
    cdef uint64_t run  # of the keys, since they were cleared: plans remember keys of one run
    cdef bint has_groups
    cdef bytes kept_text

    cdef Framing framing
    cdef object plan_used
    cdef bint has_indexes  # the framing has a path of message indexes

    cdef int walk(self, int parent) except -1
    cdef int read_header(self) except -1
    cdef int use_plan(self, object plan) except -1
    cdef int find(self, int parent, const char* name, Py_ssize_t length) except -1
    cdef bint enters(self, int number) except -1
    cdef int record_span(self, int number, Py_ssize_t piece) except -1
    cdef int take(self, int number, Scalar* scalar) except -1
    cdef int take_item(self, int number, Scalar* scalar) except -1
    cdef int end_items(self, int number, Py_ssize_t piece) except -1
    cdef bint takes_list(self, int number) except -1
    cdef int refuse_kind(self, int number, object kind) except -1
    cdef int refuse_bytes(self, int number) except -1
    cdef int take_object(self, bytes name, object value, int parent) except -1
    cdef int set_scalar(self, object value, Scalar* to) except -1
    cdef object problem(self, object what, int number)

    @cython.final
    cdef inline int begin_field(self, int number) except -1:
        cdef Key* key = self.keys.key + number
        if key.seen == self.records:
            raise self.problem("is there twice", number)
        key.seen = self.records
        return 0

    @cython.final
    cdef inline int end_field(self, int number, Py_ssize_t piece) except -1:
        """Note which pieces, from this one on, came from the field."""
        return self.record_span(number, piece) if self.has_groups else 0

    @cython.final
    cdef inline bint is_skipped(self, int number) noexcept:
        """Whether nothing in a field matters."""
        return (
            number >= 0 and self.keys.key[number].role == SKIPPED
            and not self.keys.key[number].has_roles)
