"""An event in pieces (name, value) in reused buffers, nothing looked up yet."""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

cdef enum Kind:
    TEXT  # named by text
    COLUMN  # named by an int
    TUPLE  # named by a tuple
    SLOT  # named by text, with its slot kept where `hash` points to, -1 before it is known

cdef struct Text:  # UTF-8
    const char* at  # inside a str that is kept alive elsewhere; NULL: in the arena
    Py_ssize_t start  # where in the arena
    Py_ssize_t length

cdef struct Piece:
    Text text  # of an int it may be empty, unless interactions are declared
    PyObject* name  # borrowed: the str, int or tuple it came as; NULL: put together
    double value
    uint64_t hash  # of an int without a name object the int itself
    Kind kind

cdef struct Span:  # the pieces first .. last-1 came from one field of interactions
    Py_ssize_t group
    Py_ssize_t first
    Py_ssize_t last


cdef struct Seen:  # a cell of the table by which repeated names are found
    uint32_t merge
    int position


cdef class Pieces:
    cdef tuple groups  # the fields that occur in interactions, as UTF-8
    cdef Py_ssize_t others  # the index of "*", all other fields; -1: no interaction has it
    cdef tuple crossings  # per interaction the indices of its groups
    cdef Piece* piece
    cdef Py_ssize_t n
    cdef Py_ssize_t room
    cdef bint repeats  # two pieces may have one name
    cdef char* arena
    cdef Py_ssize_t used
    cdef Py_ssize_t arena_room
    cdef Span* span
    cdef Py_ssize_t spans
    cdef Py_ssize_t span_room
    cdef list kept  # objects that borrowed pointers need
    cdef Py_ssize_t settled  # pieces whose names are among them
    cdef Seen* repeated
    cdef Py_ssize_t repeated_room
    cdef uint32_t merges  # so that the table need not be cleared

    cdef int begin(self) except -1 nogil
    cdef int merge_repeated(self, Py_ssize_t first, bint sums) except -1 nogil
    cdef int cross(self) except -1 with gil
    cdef Py_ssize_t cross_fields(self, tuple fields, Py_ssize_t made) except -1
    cdef int add_others(self, tuple fields, Py_ssize_t n) except -1
    cdef bint is_spanned(self, tuple fields, Py_ssize_t i, Py_ssize_t spans) except -1
    cdef int add_span(self, Py_ssize_t group, Py_ssize_t first, Py_ssize_t last) except -1
    cdef Py_ssize_t first_span(self, Py_ssize_t group) noexcept
    cdef int cross_pieces(self, const Py_ssize_t* member, Py_ssize_t n) except -1
    cdef int record_span(self, Text field, Py_ssize_t first) except -1 with gil
    cdef int settle(self) except -1
    cdef int utf8(self, PyObject* text, Text* out, Text* field) except -1
    cdef int join(self, Text head, char joint, Text tail, Text* out) except -1 nogil
    cdef int grow_pieces(self) except -1 with gil
    cdef int reserve_text(self, Py_ssize_t more) except -1 with gil
    cdef int release(self) except -1 with gil
    cdef str decode(self, Text text)
    cdef object name_of_piece(self, Py_ssize_t i)

    cdef inline int push(
        self, Text text, PyObject* name, Kind kind, double value
    ) except -1 nogil:
        """Add a piece."""
        cdef Piece* p
        if self.n == self.room:
            self.grow_pieces()
        p = self.piece + self.n
        p.text = text
        p.name = name
        p.kind = kind
        p.value = value
        self.n += 1
        return 0

    cdef inline const char* bytes_at(self, const Text* text) noexcept nogil:
        return text.at if text.at != NULL else self.arena + text.start
