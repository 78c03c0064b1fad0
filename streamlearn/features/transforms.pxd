"""What declared fields become, without Python objects."""

from libc.stdint cimport int64_t, uint64_t

from streamlearn.features.calendar cimport DateOrder
from streamlearn.features.name_numbers cimport NameNumbers
from streamlearn.features.pieces cimport Pieces, Text
from streamlearn.features.tokens cimport Token, Tokens

cdef enum:  # fields that no transform reads, in place of its number
    AUTO = -1  # as an undeclared field
    IGNORED = -2
    TOP = -3  # for a field that is in no other one

cdef enum FieldKind:
    NUMBER
    CATEGORY
    BUCKETS
    WORDS
    TIME
    LIST
    MAP

cdef enum ValueKind:
    A_NUMBER
    A_BOOL
    A_TEXT

cdef struct Value:  # as a record has it
    ValueKind kind
    double number
    const char* text  # of an integer its digits; of another number NULL
    Py_ssize_t length

cdef struct Transform:
    const char* name
    Py_ssize_t length
    FieldKind kind
    bint drops_invalid
    bint keeps_text  # what is no number is a category
    bint is_wildcard
    uint64_t seen  # the last event with a value
    uint64_t dropped  # invalid values that were not refused
    const Text* features  # of buckets (NULL: in the warm-up) and times, in their order
    # numbers
    bint log1p, has_indicator
    double low, high, center
    # buckets
    const double* edges
    Py_ssize_t edge_count
    Py_ssize_t warmup
    # text
    bint has_words, binary, normalized
    int ngrams, chars
    # times
    bint hour, weekday, month
    double unit
    DateOrder order
    const int64_t* zone_starts
    const int64_t* zone_offsets
    Py_ssize_t zone_count, zone_at  # where the last time was
    # list and map
    char separator

cdef struct Warm:  # a value of the current event
    int transform
    double x


cdef class Transforms(Pieces):
    cdef readonly object fields  # the FieldSpec
    cdef bint has_fields
    cdef Transform* transform
    cdef int transforms
    cdef int wildcard  # what undeclared fields at the top are
    cdef dict numbers  # the same as `field_numbers`, for the declaration
    cdef object outer  # names of fields with declared ones inside
    cdef list held  # objects that transforms point into
    cdef list warm_values  # per transform the values of its warm-up, or None
    cdef uint64_t events
    cdef Warm* warm
    cdef Py_ssize_t warm_count, warm_room
    cdef Tokens tokens  # of the last text
    cdef NameNumbers field_numbers  # name -> number of its transform, AUTO or IGNORED

    cdef int complete(self) except -1 nogil
    cdef int learn_warmup(self) except -1 nogil
    cdef int field_of(self, const char* name, Py_ssize_t length, int parent) noexcept nogil
    cdef bint nests(self, int k) noexcept nogil
    cdef int inside(self, int k) noexcept nogil
    cdef bint has_inner(self, const char* name, Py_ssize_t length) except -1 with gil
    cdef int put(self, int k, Text name, const Value* value) except -1 nogil
    cdef int put_item(self, int k, Text name, const Value* value) except -1 nogil
    cdef int end_list(self, int k, Text name, Py_ssize_t first) except -1 nogil
    cdef bint is_allowed(self, Transform* t, Text name, Py_ssize_t items) except -1 nogil
    cdef bint canonical(
        self, Transform* t, Text name, const Value* value, Text* text) except -1 nogil
    cdef int write_shortest(self, double x, Text* text) except -1 with gil
    cdef int put_number(self, Transform* t, Text name, const Value* value) except -1 nogil
    cdef int put_category(self, Transform* t, Text name, const Value* value) except -1 nogil
    cdef int put_bucket(self, int k, Text name, const Value* value) except -1 nogil
    cdef int put_time(self, Transform* t, Text name, const Value* value) except -1 nogil
    cdef int put_words(self, Transform* t, Text name, const Value* value) except -1 nogil
    cdef int put_map(self, Transform* t, Text name, const Value* value) except -1 nogil
    cdef int put_key(self, Text name, Text key, double x) except -1 nogil
    cdef int put_chars(self, Text name, int n, Token word) except -1 nogil
    cdef int add_warm(self, int k, double x) except -1 nogil
    cdef bint number_of(self, const Value* value, double* x, bint bools) except -1 nogil
    cdef int invalid(self, Transform* t, Text name, object problem) except -1
    cdef int invalid_value(
        self, Transform* t, Text name, const Value* value, const char* wanted
    ) except -1 with gil
    cdef const Text* hold(self, list names) except NULL
    cdef int freeze(self, int k, object edges) except -1
    cdef str name_of_transform(self, int k)
    cdef str kind_of(self, int k)
