"""svmlight's text: `label [qid:n] column:value ... [# comment]`, as LIBSVM writes it too."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport isfinite
from libc.string cimport memchr

from streamlearn.engine.events cimport Events
from streamlearn.features.pieces cimport COLUMN, Piece
from streamlearn.features.reader cimport Reader
from streamlearn.stream.decoder cimport Decoder
from streamlearn.stream.numbers cimport Decimal, number_at
from streamlearn.stream.text cimport past_spaces, shown_text

from streamlearn.errors import BadEvent

cdef enum:
    OWN = 1 << 22  # columns below have the slots of their number, as in a matrix


cdef class SVMLightDecoder(Decoder):
    """Lines such as `+1 3:0.5 17:1 # comment`; column j is the feature named j, an int.

    So a model that learnt the file is the one that learnt its matrix (`learn_rows`, columns as they
    are numbered in the file). `qid:n` is the event's id. A label is a number; with `positive` or
    `labels` declared it is what those say.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events
    >>> events = Events()
    >>> SVMLightDecoder(Names()).decode([b"+1 1:0.5 3:2 # two", b"-1 2:x"], events)
    >>> events.row_of(0), events.label_of(0)
    ([(1, 0.5), (3, 2.0)], 1)
    >>> events.bad
    [(1, '2', "field 2 is 'x': a value is a number")]
    """

    def __init__(self, reader, fields=None, learners=(), grow_always=False):
        Decoder.__init__(self, reader, fields, learners, grow_always)
        self.simple = not self.reader.interactions and not self.speaks_of_features()

    cdef int record(self, bytes value, Events events) except -1:
        cdef Reader reader = self.reader
        cdef const char* p = past_spaces(PyBytes_AS_STRING(value))
        cdef const char* end = PyBytes_AS_STRING(value) + PyBytes_GET_SIZE(value)
        cdef const char* comment = <const char*>memchr(p, b"#", end - p)
        if comment != NULL:
            end = comment
        if p == end:
            events.blank += 1
            return 0
        reader.enter()
        try:
            reader.begin()
            self.read_line(p, end)
            if self.simple:
                if self.grows():
                    self.make_columns()
                reader.look_up(self.grows())
        finally:
            reader.leave()
        if not self.simple:
            self.read_features(self.as_event())
        return self.push(events)

    cdef int read_line(self, const char* p, const char* end) except -1:
        cdef const char* first = p
        cdef const char* name
        cdef long long column
        cdef Decimal d
        cdef double x
        p = number_at(p, end, &d, &x)
        if p == NULL or (p < end and p[0] != b" " and p[0] != b"\t"
                         and p[0] != b"\r" and p[0] != b"\n"):
            raise self.refusal("label", f"is {shown_text(first, end)}: a label is a number")
        self.take_decimal(&d, x)
        while True:
            p = past_spaces(p)
            if p >= end:
                return 0
            name = p
            if end - p > 4 and p[0] == b"q" and p[1] == b"i" and p[2] == b"d" and p[3] == b":":
                p += 4
                self.tags.id = p
                while p < end and p[0] > b" ":
                    p += 1
                self.tags.id_length = p - self.tags.id
                continue
            column = 0
            while b"0" <= p[0] <= b"9" and column >> 58 == 0:
                column = 10 * column + (p[0] - 48)
                p += 1
            if p == name or p >= end or p[0] != b":":
                raise BadEvent(
                    f"{shown_text(name, end)} is no feature: give column:value, the column a whole"
                    " number >= 0")
            first = p + 1
            p = number_at(first, end, &d, &x)
            if p == NULL or (p < end and p[0] > b" ") or not isfinite(x):
                raise BadEvent(
                    f"field {column} is {shown_text(first, end)}: a value is a"
                    f"{'' if p == NULL else ' finite'} number", str(column))
            self.put(column, x)

    cdef int put(self, long long column, double value) except -1:
        cdef Reader reader = self.reader
        cdef Piece* piece
        if reader.n == reader.room:
            reader.widen()
        piece = reader.piece + reader.n
        piece.text.at = NULL
        piece.text.start = piece.text.length = 0
        piece.name = NULL
        piece.kind = COLUMN
        piece.value = value
        piece.hash = column
        if reader.n and piece.hash <= reader.piece[reader.n - 1].hash:
            reader.repeats = True  # perhaps
        reader.n += 1
        return 0

    cdef int make_columns(self) except -1:
        """The columns of this line, and those before them, are known from now on."""
        cdef Reader reader = self.reader
        cdef Py_ssize_t i, most = 0
        for i in range(reader.n):
            if most <= <Py_ssize_t>reader.piece[i].hash < OWN:
                most = reader.piece[i].hash + 1
        if most > reader.size:
            limit = getattr(reader, "max_names", None)
            reader.reserve_columns(most if limit is None else min(most, limit))
        return 0

    cdef dict as_event(self):
        """The line as an event of fields named by text, so that they can be spoken of."""
        cdef Reader reader = self.reader
        cdef Py_ssize_t i
        event = {}
        for i in range(reader.n):
            name = <long>reader.piece[i].hash
            event[name] = event.get(name, 0.0) + reader.piece[i].value
        return event
