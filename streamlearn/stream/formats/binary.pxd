from libc.stdint cimport int64_t, uint32_t, uint64_t

from streamlearn.engine.events cimport Events
from streamlearn.features.transforms cimport A_NUMBER, Value
from streamlearn.stream.formats.decoder cimport Decoder
from streamlearn.stream.formats.framing cimport Framing
from streamlearn.stream.formats.keys cimport Key, Keys

cdef enum:
    DEEPEST = 64

cdef struct Scalar:  # a value of a field
    Value value
    bint is_whole
    int64_t whole  # an integer, exactly
    bint is_unsigned  # it is `<uint64_t>whole`
    double seconds  # of a time: the length of its unit; 0: it is none


cdef inline int clear(Scalar* scalar) noexcept:
    """Begin a new value: a number."""
    scalar.value.kind = A_NUMBER
    scalar.value.text = NULL
    scalar.value.length = 0
    scalar.value.number = 0.0
    scalar.is_whole = scalar.is_unsigned = False
    scalar.seconds = 0.0
    return 0


cdef class BinaryDecoder(Decoder):
    cdef readonly Keys keys
    cdef const char* first  # of the record
    cdef const char* p  # the current byte
    cdef const char* end
    cdef uint32_t records  # counted to notice duplicate fields
    cdef uint64_t run  # of the keys, since they were cleared: plans remember keys of one run
    cdef bint has_groups
    cdef char[24] digits  # of the last integer
    cdef Scalar label
    cdef bint has_label
    cdef bytes kept_text

    cdef Framing framing
    cdef object plan_used
    cdef bint has_indexes  # the framing has a path of message indexes

    cdef int walk(self, int parent) except -1
    cdef int read_header(self) except -1
    cdef int use_plan(self, object plan) except -1
    cdef int set_label(self) except -1
    cdef int find(self, int parent, const char* name, Py_ssize_t length) except -1
    cdef int begin_field(self, int number) except -1
    cdef int end_field(self, int number, Py_ssize_t piece) except -1
    cdef bint enters(self, int number) except -1
    cdef bint is_skipped(self, int number) noexcept
    cdef int take(self, int number, Scalar* scalar) except -1
    cdef int take_role(self, Key* key, Scalar* scalar) except -1
    cdef int take_item(self, int number, Scalar* scalar) except -1
    cdef int end_items(self, int number, Py_ssize_t piece) except -1
    cdef int refuse_kind(self, int number, object kind) except -1
    cdef int refuse_bytes(self, int number) except -1
    cdef int take_object(self, bytes name, object value, int parent) except -1
    cdef int set_scalar(self, object value, Scalar* to) except -1
    cdef int write_digits(self, Scalar* scalar) noexcept
    cdef object as_object(self, Scalar* scalar)
    cdef object problem(self, object what, int number)
    cdef Py_ssize_t check_utf8(self, const char* text, Py_ssize_t length) noexcept
