"""The pieces of an event, before any name is looked up.

Names and Hashing differ only in how a name becomes a slot, so they share what makes the pieces: the
UTF-8 of a name (in place if the key itself is the name, else composed in an arena) and a finite
value.
"""

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8, PyUnicode_FromObject
from libc.math cimport isfinite
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from streamlearn.errors import InvalidEventError

from streamlearn.core.memory cimport reallocate
from streamlearn.features.text cimport ascii_of, bytes_of, copy_text, hash_text, is_ascii, length_of

from streamlearn.features.fields import spec

cdef Py_ssize_t MAX_CROSSES = 1 << 20
cdef Py_ssize_t MAX_TEXT = 1 << 28  # bytes of all names of one event
cdef Py_ssize_t KEEP_PIECES = 1 << 14  # buffers that a giant event left greater are given back
cdef Py_ssize_t KEEP_TEXT = 1 << 20
cdef enum:
    MAX_FIELDS = 8  # of an interaction, as its declaration allows


def canonical_name(name):
    """Return the name as a str, an int of 64 bits, or a tuple of these; None if invalid."""
    if isinstance(name, str):
        return PyUnicode_FromObject(name) if encodes(name) else None
    if isinstance(name, tuple):
        parts = tuple([canonical_name(part) for part in name])
        return None if any([part is None for part in parts]) else parts
    if isinstance(name, (bool, np.bool_, np.timedelta64)):
        return None
    if isinstance(name, (int, np.integer)):
        name = int(name)
        return name if -(1 << 63) <= name < 1 << 63 else None
    return None


def encodes(text):
    """Return whether UTF-8 can encode the text: no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def short_repr(value):
    """Return a short repr of any value, for messages."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def field_error(field, problem):
    """A InvalidEventError that names the field."""
    return InvalidEventError(f"field {short_repr(field)} {problem}", field)


cdef class Pieces:
    def __cinit__(self, *args, **kwargs):
        self.kept = []
        self.groups = self.crossings = ()
        self.others = -1

    def __dealloc__(self):
        free(self.piece)
        free(self.arena)
        free(self.span)
        free(self.repeated)

    def _set_interactions(self, interactions):
        names = list(dict.fromkeys([name for fields in interactions for name in fields]))
        self.groups = tuple([name.encode() for name in names])
        self.crossings = tuple(
            [tuple([names.index(name) for name in fields]) for fields in interactions])
        self.others = names.index(spec.OTHERS) if spec.OTHERS in names else -1

    cdef int begin(self) except -1 nogil:
        if self.room > KEEP_PIECES or self.arena_room > KEEP_TEXT:
            self.release()
        self.n = self.used = self.spans = self.settled = 0
        self.repeats = False
        return 0

    # Repeated names

    cdef int merge_repeated(self, Py_ssize_t first, bint sums) except -1 nogil:
        """Merge the pieces from `first` on that have the same name; with `sums`, add them up."""
        cdef Py_ssize_t i, k, n = first, mask, room = 64
        cdef const Text* text
        cdef const Text* other
        cdef uint64_t hash
        cdef Seen* seen
        if self.n - first < 2:
            return 0
        while room < 2 * (self.n - first):
            room *= 2
        if room > self.repeated_room or self.merges == <uint32_t> -1:
            with gil:
                self.repeated = <Seen*> reallocate(self.repeated, room * sizeof(Seen))
            memset(self.repeated, 0, room * sizeof(Seen))
            self.repeated_room = room
            self.merges = 0
        self.merges += 1
        seen = self.repeated
        mask = self.repeated_room - 1
        for i in range(first, self.n):
            text = &self.piece[i].text
            # the seed is unknown to the text's author
            hash = hash_text(
                self.arena + text.start, text.length, <uint64_t> <size_t> <void*> seen)
            k = hash & mask
            while seen[k].merge == self.merges:
                other = &self.piece[seen[k].position].text
                if other.length == text.length and memcmp(
                        self.arena + other.start, self.arena + text.start, text.length) == 0:
                    break
                k = (k + 1) & mask
            if seen[k].merge == self.merges:
                if sums:
                    self.piece[seen[k].position].value += self.piece[i].value
                continue
            seen[k] = Seen(self.merges, <int> n)
            self.piece[n] = self.piece[i]
            n += 1
        self.n = n
        return 0

    # Interactions

    cdef int record_span(self, Text field, Py_ssize_t first) except -1 with gil:
        """Record which pieces came from this field, if an interaction names it."""
        cdef Py_ssize_t g
        cdef bytes group
        if first == self.n:
            return 0
        for g in range(len(self.groups)):
            group = <bytes> self.groups[g]
            if g != self.others and PyBytes_GET_SIZE(group) == field.length and memcmp(
                    PyBytes_AS_STRING(group), self.bytes_at(&field), field.length) == 0:
                self.add_span(g, first, self.n)
        return 0

    cdef int cross(self) except -1 with gil:
        cdef Py_ssize_t made = 0, spans = self.spans, n = self.n
        for fields in self.crossings:
            if self.others in fields:
                self.add_others(fields, n)
            made = self.cross_fields(fields, made)
            self.spans = spans
        return 0

    cdef int add_others(self, tuple fields, Py_ssize_t n) except -1:
        """Add the spans of the first n pieces that came from none of these fields."""
        cdef Py_ssize_t i = 0, first, spans = self.spans
        while i < n:
            while i < n and self.is_spanned(fields, i, spans):
                i += 1
            first = i
            while i < n and not self.is_spanned(fields, i, spans):
                i += 1
            if i > first:
                self.add_span(self.others, first, i)
        return 0

    cdef bint is_spanned(self, tuple fields, Py_ssize_t i, Py_ssize_t spans) except -1:
        """Whether a piece came from one of these fields."""
        cdef Py_ssize_t s
        for s in range(spans):
            if self.span[s].first <= i < self.span[s].last and self.span[s].group in fields:
                return True
        return False

    cdef int add_span(self, Py_ssize_t group, Py_ssize_t first, Py_ssize_t last) except -1:
        if self.spans == self.span_room:
            self.span_room = 2 * self.span_room + 8
            self.span = <Span*> reallocate(self.span, self.span_room * sizeof(Span))
        self.span[self.spans] = Span(group, first, last)
        self.spans += 1
        return 0

    cdef Py_ssize_t cross_fields(self, tuple fields, Py_ssize_t made) except -1:
        """Cross every combination of pieces from the fields; return the count of crosses so far."""
        cdef Py_ssize_t k = len(fields)
        cdef Py_ssize_t s, f, group, choices = 1, count
        cdef Py_ssize_t[MAX_FIELDS] at  # the span of each field
        cdef Py_ssize_t[MAX_FIELDS] member  # the piece chosen from it
        for f in range(k):
            group = fields[f]
            count = 0
            at[f] = -1
            for s in range(self.spans):
                if self.span[s].group == group:
                    if at[f] < 0:
                        at[f] = s
                        member[f] = self.span[s].first
                    count += self.span[s].last - self.span[s].first
            if count == 0:
                return made
            choices = choices * count if choices <= MAX_CROSSES else choices
        if made + choices > MAX_CROSSES:
            name = self.groups[fields[0]].decode()
            raise field_error(
                name, f"and its interactions give more than {MAX_CROSSES} crossed features: cross"
                " fewer fields, or fields that hold less")
        while True:
            self.cross_pieces(member, k)
            f = k - 1
            while f >= 0:  # the next choice, the last field fastest
                member[f] += 1
                group = fields[f]
                s = at[f]
                if member[f] == self.span[s].last:
                    s += 1
                    while s < self.spans and self.span[s].group != group:
                        s += 1
                    at[f] = s
                    if s == self.spans:
                        at[f] = self.first_span(group)
                        member[f] = self.span[at[f]].first
                        f -= 1
                        continue
                    member[f] = self.span[s].first
                break
            if f < 0:
                return made + choices

    cdef Py_ssize_t first_span(self, Py_ssize_t group) noexcept:
        cdef Py_ssize_t s = 0
        while self.span[s].group != group:
            s += 1
        return s

    cdef int cross_pieces(self, const Py_ssize_t* member, Py_ssize_t n) except -1:
        cdef Text text = self.piece[member[0]].text
        cdef double x = 1.0
        cdef Py_ssize_t i
        for i in range(n):
            if self.piece[member[i]].value == 0.0:
                return 0
            x *= self.piece[member[i]].value
        if x == 0.0:  # an underflow
            return 0
        for i in range(1, n):
            self.join(text, b"^", self.piece[member[i]].text, &text)
        if not isfinite(x):
            raise field_error(
                self.decode(text), "is a product too large for a float: scale its fields down")
        return self.push(text, NULL, TEXT, x)

    # Buffers

    cdef int settle(self) except -1:
        """Hold the names that pieces borrow, before user code runs."""
        while self.settled < self.n:
            if self.piece[self.settled].name != NULL:
                self.kept.append(<object> self.piece[self.settled].name)
            self.settled += 1
        return 0

    cdef int utf8(self, PyObject* text, Text* out, Text* field) except -1:
        """Set `out` to the UTF-8 of a name, or of a value of the field."""
        out.start = 0
        if is_ascii(text):
            out.at = ascii_of(text)
            out.length = length_of(text)
            return 0
        try:
            out.at = bytes_of(text, &out.length)
        except UnicodeEncodeError:
            name = self.decode(field[0]) if field != NULL else short_repr(<object> text)
            raise field_error(
                name, "has a lone surrogate, which is no valid Unicode: decode it with"
                " errors='replace'") from None
        return 0

    cdef int join(self, Text head, char joint, Text tail, Text* out) except -1 nogil:
        """Write head + joint + tail to the arena."""
        cdef Py_ssize_t length = head.length + 1 + tail.length
        cdef char* to
        if length > self.arena_room - self.used:
            self.reserve_text(length)
        to = self.arena + self.used
        copy_text(to, self.bytes_at(&head), head.length)
        to[head.length] = joint
        copy_text(to + head.length + 1, self.bytes_at(&tail), tail.length)
        out[0] = Text(NULL, self.used, length)
        self.used += length
        self.repeats = True
        return 0

    cdef int grow_pieces(self) except -1 with gil:
        cdef Py_ssize_t room = 2 * self.room + 16
        self.piece = <Piece*> reallocate(self.piece, room * sizeof(Piece))
        self.room = room
        return 0

    cdef int reserve_text(self, Py_ssize_t more) except -1 with gil:
        cdef Py_ssize_t room = 2 * self.arena_room + more + 256
        if self.used + more > MAX_TEXT:
            raise InvalidEventError(
                f"the names of the event's features take more than {MAX_TEXT} bytes: use shorter"
                " field names, or fewer values in one field")
        self.arena = <char*> reallocate(self.arena, room)
        self.arena_room = room
        return 0

    cdef int release(self) except -1 with gil:
        free(self.piece)
        free(self.arena)
        self.piece = NULL
        self.arena = NULL
        self.room = self.arena_room = 0
        return 0

    cdef str decode(self, Text text):
        return PyUnicode_DecodeUTF8(self.bytes_at(&text), text.length, NULL)

    cdef object name_of_piece(self, Py_ssize_t i):
        if self.piece[i].name != NULL:
            return <object> self.piece[i].name
        if self.piece[i].kind == COLUMN:
            return <long long> self.piece[i].hash
        return self.decode(self.piece[i].text)
