"""The text format of svmlight and LIBSVM: `label [qid:n] column:value ... [# comment]`."""

from libc.math cimport isfinite
from libc.stdint cimport uint64_t
from libc.string cimport memchr, memcmp

from streamlearn.engine.events cimport Events
from streamlearn.features.pieces cimport COLUMN, Piece, Text
from streamlearn.features.reader cimport Reader
from streamlearn.core.numbers cimport Decimal, number_at, short_whole, value_at
from streamlearn.stream.formats.text cimport past_spaces, shown_text
from streamlearn.stream.formats.text_decoder cimport TextDecoder

from streamlearn.errors import InvalidEventError

cdef enum:
    OWN = 1 << 22  # columns below have their number as their slot, as in a matrix


cdef class SVMLightDecoder(TextDecoder):
    """Lines such as `+1 3:0.5 17:1 # comment`; column j is the feature named j, an int.

    A model that learns the file equals one that learns its matrix (`learn_rows`, with the file's
    column numbers). `qid:n` is the event's id. A label is a number, mapped by `positive` if it is
    declared.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events
    >>> events = Events()
    >>> SVMLightDecoder(Names()).decode([b"+1 1:0.5 3:2 # two", b"-1 2:x"], events)
    >>> events.row_of(0), events.label_of(0)
    ([(1, 0.5), (3, 2.0)], 1)
    >>> events.invalid[0].reason
    "field 2 is 'x': a value is a number"
    """

    def __init__(self, reader, fields=None, learners=(), grow_always=False):
        TextDecoder.__init__(self, reader, fields, learners, grow_always)
        self.simple = not self.reader.fields

    cdef int line(self, const char* p, const char* end, Events events) except -1 nogil:
        cdef const char* comment
        p = past_spaces(p)
        comment = <const char*>memchr(p, b"#", end - p)
        if comment != NULL:
            end = comment
        if p == end:
            events.blank += 1
            return 0
        self.reader.begin()
        self.read_line(self.reader, p, end)
        if not self.simple:
            self.read_as_event()
        else:
            if self.grows():
                self.make_columns()
            self.reader.look_up(self.grows())
        return self.push(events)

    cdef int read_line(self, Reader reader, const char* p, const char* end) except -1 nogil:
        cdef const char* first = p
        cdef const char* name
        cdef uint64_t column
        cdef Decimal d
        cdef double x
        p = number_at(p, end, &d, &x)
        if p == NULL or (p < end and p[0] > b" "):
            with gil:
                raise self.refusal("label", f"is {shown_text(first, end)}: a label is a number")
        self.take_decimal(&d, x)
        while True:
            p = past_spaces(p)
            if p >= end:
                return 0
            name = p
            p = short_whole(name, &column)
            if p == NULL:
                p = long_whole(name, &column)
                if p == name and self.query(&p, end):
                    continue
            if p == name or p[0] != b":":
                with gil:
                    raise InvalidEventError(
                        f"{shown_text(name, end)} is not a feature: write column:value, with an"
                        " integer column >= 0")
            first = p + 1
            p = value_at(first, end, &x)
            if p == NULL or (p < end and p[0] > b" ") or not isfinite(x):
                with gil:
                    raise InvalidEventError(
                        f"field {column} is {shown_text(first, end)}: a value is a"
                        f"{'' if p == NULL else ' finite'} number", str(column))
            put(reader, column, x)

    cdef bint query(self, const char** at, const char* end) noexcept nogil:
        """Whether it is a query's id; then set it."""
        cdef const char* p = at[0]
        if end - p <= 4 or memcmp(p, b"qid:", 4) != 0:
            return False
        p += 4
        self.tags.id = p
        while p < end and p[0] > b" ":
            p += 1
        self.tags.id_length = p - self.tags.id
        at[0] = p
        return True

    cdef int make_columns(self) except -1 nogil:
        """Add the columns of this line, and all before them."""
        cdef Py_ssize_t i = self.reader.n, most = 0
        while i > 0 and (most == 0 or self.reader.repeats):  # increasing if none repeats
            i -= 1
            if most <= <Py_ssize_t>self.reader.piece[i].hash < OWN:
                most = self.reader.piece[i].hash + 1
        if most > self.reader.size:
            self.reserve(most)
        return 0

    cdef int reserve(self, Py_ssize_t columns) except -1 with gil:
        limit = getattr(self.reader, "max_names", None)
        self.reader.reserve_columns(columns if limit is None else min(columns, limit))
        return 0

    cdef int read_as_event(self) except -1 with gil:
        """Read the line as an event with numbers as names, for declared fields."""
        cdef Reader reader = self.reader
        cdef Py_ssize_t i
        event = {}
        for i in range(reader.n):
            name = <long>reader.piece[i].hash
            event[name] = event.get(name, 0.0) + reader.piece[i].value
        reader.leave()
        try:
            reader.read(event, self.grows())
        finally:
            reader.busy = True  # as before; the row is kept
        return 0


cdef inline int put(Reader reader, uint64_t column, double value) except -1 nogil:
    cdef Py_ssize_t n = reader.n
    cdef Piece* piece
    if n == reader.room:
        reader.grow_pieces()
    piece = reader.piece + n
    piece.text = Text(NULL, 0, 0)
    piece.name = NULL
    piece.kind = COLUMN
    piece.value = value
    piece.hash = column
    if n and column <= piece[-1].hash:
        reader.repeats = True  # possibly
    reader.n = n + 1
    return 0


cdef const char* long_whole(const char* p, uint64_t* x) noexcept nogil:
    """Parse the integer at p; return its end, which is p if there is none."""
    x[0] = 0
    while b"0" <= p[0] <= b"9" and x[0] >> 58 == 0:
        x[0] = 10 * x[0] + (p[0] - 48)
        p += 1
    return p
