from libc.stdint cimport uint32_t, uint64_t

from streamlearn.engine.events cimport Events
from streamlearn.features.reader cimport Reader
from streamlearn.features.transforms cimport Value
from streamlearn.stream.formats.decoder cimport Decoder
from streamlearn.stream.formats.keys cimport Key, Keys

cdef struct SeenText:  # a text of the current list
    uint32_t list_number
    int piece


cdef class JSONDecoder(Decoder):
    cdef readonly Keys keys
    cdef const char* p  # the current byte
    cdef const char* end
    cdef uint32_t records  # counted to notice duplicate fields
    cdef bint has_groups  # interactions are declared
    cdef const char* text  # the last string
    cdef Py_ssize_t length
    cdef char* scratch  # for strings with escapes
    cdef Py_ssize_t scratch_room
    cdef SeenText* seen_texts
    cdef uint32_t lists
    cdef const char* label_text  # NULL: none
    cdef Py_ssize_t label_length
    cdef object kept_label

    cdef bint read_declared(self, const char* at, Py_ssize_t n, Events events) except -1
    cdef bint read_fast(self, const char* at, Py_ssize_t n, Events events) except -1
    cdef bint walk(self, const char* at, Py_ssize_t n) except -1
    cdef bint object(self, int parent, int depth) except -1
    cdef bint value(self, int number, int depth) except -1
    cdef bint feature(self, Key* key) except -1
    cdef bint one_hot(self, Key* key) except -1
    cdef bint strings(self, Key* key) except -1
    cdef bint new_in_list(self, Py_ssize_t first, Key* key) except -1
    cdef uint64_t seed(self) noexcept
    cdef bint declared(self, int number, int depth) except -1
    cdef bint declared_list(self, Key* key) except -1
    cdef bint scalar(self, Value* value) except -1
    cdef bint role(self, Key* key) except -1
    cdef bint read_number_role(self, Key* key) except -1
    cdef bint read_string_role(self, Key* key) except -1
    cdef bint finish(self, Events events) except -1
    cdef bint literal(self, const char* text, int length) noexcept
    cdef bint skip(self, int depth) except -1
    cdef bint string(self) except -1
    cdef bint unescape(self, const char* first, const char* at) except -1
    cdef bytes payload(self, bytes value)
    cdef int read_slow(self, bytes value, Events events) except -1
