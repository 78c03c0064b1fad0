"""JSON: a record is an object, which is read directly into the pieces of features.

The fast path never rejects a record. In doubt (a duplicate field, a number out of range, invalid
JSON) it leaves the record to the slow path: msgspec decodes it into Python objects, which are read
like any event. So the slow path defines the meaning of a record, and the fast path must only be
right about what it accepts.
"""

import msgspec

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy

from streamlearn.errors import InvalidEventError

from streamlearn.engine.events cimport BOOL, FLOAT, INT, UNLABELED, Events
from streamlearn.features.pieces cimport Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.text cimport hash_text, put_utf8
from streamlearn.stream.formats.decoder cimport Decoder, is_date
from streamlearn.features.transforms cimport A_BOOL, A_NUMBER, A_TEXT, LIST, Value
from streamlearn.stream.formats.keys cimport (
    DECLARED, FEATURE, ID, LABEL, SKIPPED, TIME, WEIGHT, Key, Keys,
)
from streamlearn.core.numbers cimport (
    Decimal, double_of, is_exact, scan_decimal, scan_plain, utf8_length,
)
from streamlearn.features.put cimport put_number, put_text

cdef enum:
    DEEPEST = 32
    SEEN_CELLS = 1 << 12  # hash cells for the texts of one list
    SHORT = 8  # lists up to this length are searched linearly


cdef inline const char* past_blanks(const char* p) noexcept:
    # records end in a zero byte, which is not a blank; there is nearly always no blank
    while <unsigned char>p[0] <= 32 and (
        p[0] == b" " or p[0] == b"\n" or p[0] == b"\t" or p[0] == b"\r"
    ):
        p += 1
    return p


cdef class JSONDecoder(Decoder):
    """JSON objects, with the values that `json.loads` returns.

    JSON in the framing of a schema registry is recognized by its first byte, and unwrapped.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events, Fields
    >>> events = Events()
    >>> decoder = JSONDecoder(Names(), Fields(label="clicked"))
    >>> decoder.decode([b'{"ad": "shoes", "hour": 9, "clicked": true}', b'{"hour": "'], events)
    >>> decoder.reader.names(), events.labels, events.row_of(0)
    (['ad=shoes', 'hour'], array([1.]), [(0, 1.0), (1, 9.0)])
    >>> events.invalid
    [InvalidRecord(number=1, field=None, code='syntax', reason='invalid JSON: Input data was \
truncated')]
    """

    def __init__(self, reader, fields=None, learners=(), grow_always=False):
        Decoder.__init__(self, reader, fields, learners, grow_always)
        self.keys = Keys(self.fields, self.reader)
        self.has_groups = len(self.reader.groups) > 0

    def __dealloc__(self):
        PyMem_Free(self.scratch)
        PyMem_Free(self.seen_texts)

    cdef int record(self, bytes value, Events events) except -1:
        cdef const char* at = PyBytes_AS_STRING(value)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(value)
        if n and at[0] == 0:
            value = self.payload(value)
            at = PyBytes_AS_STRING(value)
            n = PyBytes_GET_SIZE(value)
        if self.reader.has_fields:
            if self.read_declared(at, n, events):
                return 0
        elif self.read_fast(at, n, events):
            return 0
        self.begin()
        if self.has_root:
            self.take_attributes()
        return self.read_slow(value, events)

    cdef bytes payload(self, bytes value):
        """Unwrap a schema registry's framing: a zero byte, four bytes of id, the payload."""
        found = value[5:]
        if found.lstrip(b" \t\r\n")[:1] == b"{":
            return found
        raise InvalidEventError(
            "a schema registry's framing (a zero byte first) without a JSON object: produce JSON,"
            " or use a custom decoder, format.kind = 'module:callable'")

    def field_names(self):
        """Return the known fields of records, with dots for nested ones."""
        cdef Keys keys = self.keys
        cdef Key* key
        cdef int i
        found = Decoder.field_names(self)
        for i in range(keys.n):
            key = keys.key + i
            found.append(key.name[:key.name_length].decode())
        return list(dict.fromkeys(found))

    cdef int read_slow(self, bytes value, Events events) except -1:
        """Decode a record through Python objects."""
        try:
            event = msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            more = ""
            if value.lstrip()[:1] == b"[":
                more = "; arrays are not supported: write one object per line"
            raise InvalidEventError(f"invalid JSON: {error}{more}") from None
        return self.take_event(event, events)

    # The fast path: True, or False in doubt

    cdef bint read_declared(self, const char* at, Py_ssize_t n, Events events) except -1:
        """Read a record with declared fields; an invalid value is left to the slow path, too."""
        try:
            return self.read_fast(at, n, events)
        except InvalidEventError:
            return False

    cdef bint read_fast(self, const char* at, Py_ssize_t n, Events events) except -1:
        cdef Reader reader = self.reader
        reader.enter()
        try:
            if not self.walk(at, n):
                return False
            reader.complete()
            if not self.finish(events):
                return False
            reader.look_up(self.grows())
        finally:
            reader.leave()
        self.push(events)
        return True

    cdef bint walk(self, const char* at, Py_ssize_t n) except -1:
        """Read a record into pieces, without looking names up."""
        if self.keys.nearly_full() or self.records == 0xFFFFFFFF:
            self.keys.clear()
            self.records = 0
        self.records += 1
        self.label_text = NULL
        self.reader.begin()
        self.end = at + n
        self.p = past_blanks(at)
        if self.p[0] != b"{":
            return False
        self.p += 1
        self.entered = self.is_bare or not self.has_root
        if not self.object(self.keys.root() if self.has_root and self.is_bare else -1, 0):
            return False
        return self.entered and past_blanks(self.p) == self.end

    cdef bint object(self, int parent, int depth) except -1:
        """Read the fields of an object after its bracket."""
        cdef Keys keys = self.keys
        cdef int last = -1
        cdef int number = keys.first if parent < 0 else keys.key[parent].first
        cdef Key* key
        cdef Py_ssize_t first
        cdef const char* p = past_blanks(self.p)
        if p[0] == b"}":
            self.p = p + 1
            return True
        while True:
            if p[0] != b"\"":
                return False
            p += 1
            key = keys.key + number
            if (
                number >= 0 and self.end - p > key.length and p[key.length] == b"\""
                and memcmp(p, key.text, key.length) == 0
            ):
                self.p = p + key.length + 1
            else:
                self.p = p
                if not self.string():
                    return False
                number = keys.find(parent, self.text, self.length)
                if number < 0:
                    return False
                key = keys.key + number
                if last >= 0:
                    keys.key[last].next = number
                elif parent >= 0:
                    keys.key[parent].first = number
                else:
                    keys.first = number
            if key.seen == self.records:
                return False  # a duplicate field
            key.seen = self.records
            p = past_blanks(self.p)
            if p[0] != b":":
                return False
            self.p = past_blanks(p + 1)
            first = self.reader.n
            if not self.value(number, depth):
                return False
            key = keys.key + number  # nested fields may have moved it
            if self.has_groups:
                self.reader.record_span(Text(key.name, 0, key.name_length), first)
            p = past_blanks(self.p)
            if p[0] == b"}":
                self.p = p + 1
                return True
            if p[0] != b",":
                return False
            p = past_blanks(p + 1)
            last = number
            number = key.next

    cdef bint value(self, int number, int depth) except -1:
        cdef Key* key = self.keys.key + number
        cdef const char* first
        if key.role == FEATURE or key.role == SKIPPED:
            if self.p[0] == b"{" and (key.wanted or key.has_roles):
                if depth == DEEPEST:
                    return False
                self.p += 1
                self.entered |= key.is_root
                return self.object(number, depth + 1)
            return self.feature(key) if key.wanted else self.skip(depth)
        if key.role == TIME and self.time_is_feature:
            first = self.p
            if not self.role(key):
                return False
            self.p = first
        elif key.role != DECLARED:
            return self.role(key)
        return self.declared(number, depth)

    # Features

    cdef bint feature(self, Key* key) except -1:
        cdef Reader reader = self.reader
        cdef const char* p = self.p
        cdef double x
        cdef Decimal d
        if p[0] == b"\"":
            self.p += 1
            return self.string() and self.one_hot(key)
        if p[0] == b"[":
            return self.strings(key)
        if p[0] == b"t":
            x = 1.0
            if not self.literal(b"true", 4):
                return False
        elif p[0] == b"f":
            x = 0.0
            if not self.literal(b"false", 5):
                return False
        elif p[0] == b"n":
            return self.literal(b"null", 4)
        else:
            p = scan_decimal(p, self.end, &d, False)
            if p == NULL or not double_of(&d, &x):
                return False
            self.p = p
        put_number(reader, key.name, key.name_length, x)
        if key.parent >= 0:
            reader.repeats = True  # a top-level field may have the same name
        return True

    cdef bint one_hot(self, Key* key) except -1:
        """Add the feature field=text of the last string."""
        cdef Reader reader = self.reader
        put_text(reader, key.name, key.name_length, self.text, self.length)
        reader.repeats = True
        return True

    cdef bint strings(self, Key* key) except -1:
        """Add a feature for each distinct string of a list."""
        cdef Reader reader = self.reader
        cdef Py_ssize_t first = reader.n
        self.p = past_blanks(self.p + 1)
        self.lists += 1
        if self.p[0] == b"]":
            self.p += 1
            return True
        while True:
            if self.p[0] == b"\"":
                self.p += 1
                if not self.string():
                    return False
                self.one_hot(key)
                if not self.new_in_list(first, key):
                    return False
            elif not (self.p[0] == b"n" and self.literal(b"null", 4)):
                return False
            self.p = past_blanks(self.p)
            if self.p[0] == b"]":
                self.p += 1
                return True
            if self.p[0] != b",":
                return False
            self.p = past_blanks(self.p + 1)

    cdef bint new_in_list(self, Py_ssize_t first, Key* key) except -1:
        """Remove the newest piece if it is a duplicate; False if the list is too long."""
        cdef Reader reader = self.reader
        cdef Py_ssize_t newest = reader.n - 1, i, k
        cdef const Text* text = &reader.piece[newest].text
        cdef const char* at = reader.arena + text.start
        cdef const Text* other
        if newest - first >= SEEN_CELLS // 2:
            return False
        if newest - first < SHORT:
            for i in range(first, newest):
                other = &reader.piece[i].text
                if other.length == text.length and memcmp(
                        reader.arena + other.start, at, text.length) == 0:
                    reader.n -= 1
                    return True
            return True
        if self.seen_texts == NULL or self.lists == 0xFFFFFFFF:
            PyMem_Free(self.seen_texts)
            self.seen_texts = <SeenText*>PyMem_Calloc(SEEN_CELLS, sizeof(SeenText))
            if self.seen_texts == NULL:
                raise MemoryError
            self.lists = 1
        for i in range(first if newest - first == SHORT else newest, newest + 1):
            other = &reader.piece[i].text
            at = reader.arena + other.start
            k = hash_text(at, other.length, self.seed()) & (SEEN_CELLS - 1)
            while self.seen_texts[k].list_number == self.lists:
                text = &reader.piece[self.seen_texts[k].piece].text
                if text.length == other.length and memcmp(
                        reader.arena + text.start, at, text.length) == 0:
                    break
                k = (k + 1) & (SEEN_CELLS - 1)
            if self.seen_texts[k].list_number != self.lists:
                self.seen_texts[k].list_number = self.lists
                self.seen_texts[k].piece = <int>i
            elif i == newest:
                reader.n -= 1
        return True

    cdef uint64_t seed(self) noexcept:
        return <uint64_t><size_t><void*>self  # unknown to the stream's author

    # Declared fields

    cdef bint declared(self, int number, int depth) except -1:
        """Read a field that the reader transforms."""
        cdef Reader reader = self.reader
        cdef Key* key = self.keys.key + number
        cdef Value value
        cdef char c = self.p[0]
        if c == b"{" and reader.nests(key.field):
            if depth == DEEPEST:
                return False
            self.p += 1
            return self.object(number, depth + 1)
        if c == b"n":
            return self.literal(b"null", 4)
        if c == b"[":
            return self.declared_list(key)
        if not self.scalar(&value):
            return False
        reader.put(key.field, Text(key.name, 0, key.name_length), &value)
        return True

    cdef bint declared_list(self, Key* key) except -1:
        """Read the items of a list."""
        cdef Reader reader = self.reader
        cdef Py_ssize_t first = reader.n
        cdef Text name = Text(key.name, 0, key.name_length)
        cdef Value value
        if reader.transform[key.field].kind != LIST:
            return False
        self.p = past_blanks(self.p + 1)
        if self.p[0] == b"]":
            self.p += 1
            return True
        while True:
            if self.p[0] == b"n":
                if not self.literal(b"null", 4):
                    return False
            elif not self.scalar(&value):
                return False
            else:
                reader.put_category(reader.transform + key.field, name, &value)
            self.p = past_blanks(self.p)
            if self.p[0] == b"]":
                self.p += 1
                reader.end_list(key.field, name, first)
                return True
            if self.p[0] != b",":
                return False
            self.p = past_blanks(self.p + 1)

    cdef bint scalar(self, Value* value) except -1:
        """Read text, a number or a bool."""
        cdef const char* p = self.p
        cdef Decimal d
        if p[0] == b"\"":
            self.p += 1
            if not self.string():
                return False
            value.kind, value.text, value.length = A_TEXT, self.text, self.length
            return True
        value.text, value.length = NULL, 0
        if p[0] == b"t" or p[0] == b"f":
            value.kind, value.number = A_BOOL, p[0] == b"t"
            return self.literal(b"true", 4) if p[0] == b"t" else self.literal(b"false", 5)
        p = scan_decimal(p, self.end, &d, False)
        if p == NULL or not double_of(&d, &value.number):
            return False
        value.kind = A_NUMBER
        if d.whole:
            value.text, value.length = self.p, p - self.p
        self.p = p
        return True

    # Label, weight, id, time

    cdef bint role(self, Key* key) except -1:
        cdef char c = self.p[0]
        if c == b"n":
            if not self.literal(b"null", 4):
                return False
            if key.role == LABEL:
                self.tags.kind = UNLABELED
                self.label_text = NULL
            elif key.role == WEIGHT:
                self.tags.weight = 1.0
            return key.role != ID and key.role != TIME
        if c == b"\"":
            self.p += 1
            return self.string() and self.read_string_role(key)
        if key.role == LABEL and (c == b"t" or c == b"f"):
            self.label_text = NULL
            self.tags.kind = BOOL
            self.tags.label = c == b"t"
            return self.literal(b"true", 4) if c == b"t" else self.literal(b"false", 5)
        return self.read_number_role(key)

    cdef bint read_number_role(self, Key* key) except -1:
        """Read a number as label, weight, id or time."""
        cdef Decimal d
        cdef double x
        cdef const char* first = self.p
        cdef const char* p = scan_decimal(first, self.end, &d, False)
        if p == NULL or not double_of(&d, &x):
            return False
        self.p = p
        if key.role == WEIGHT:
            self.tags.weight = x
            return x >= 0.0
        if key.role == TIME:
            self.tags.time = x * self.time_scale
            return is_date(self.tags.time)
        if key.role == ID:
            self.tags.id = first
            self.tags.id_length = p - first
            return d.whole and not (d.negative and d.digits == 0)
        self.label_text = NULL
        self.tags.kind = INT if d.whole else FLOAT
        self.tags.label = x
        return is_exact(&d) or not d.whole

    cdef bint read_string_role(self, Key* key) except -1:
        """Read a string as label, id or time."""
        cdef const char* at = self.text
        if key.role == WEIGHT:
            return False
        if key.role == TIME:
            self.take_time(self.text[:self.length].decode())
            return True
        if key.role == ID:
            if at == self.scratch:
                self.kept_id = PyBytes_FromStringAndSize(at, self.length)
                at = PyBytes_AS_STRING(self.kept_id)
            self.tags.id = at
            self.tags.id_length = self.length
            return True
        if at == self.scratch:
            self.kept_label = PyBytes_FromStringAndSize(at, self.length)
            at = PyBytes_AS_STRING(self.kept_label)
        self.label_text = at
        self.label_length = self.length
        return True

    cdef bint finish(self, Events events) except -1:
        """Set the label, after the weight is known."""
        if self.label_text != NULL:
            self.take_text(self.label_text, self.label_length)
        elif self.tags.kind != UNLABELED:
            if not self.mapped:
                self.take_number(self.tags.label, self.tags.kind)
            elif self.tags.kind == FLOAT:
                self.take_label(self.tags.label)
            elif self.tags.kind == BOOL:
                self.take_label(self.tags.label != 0.0)
            else:
                self.take_label(int(self.tags.label))
        return True

    # JSON

    cdef bint literal(self, const char* text, int length) noexcept:
        if self.end - self.p < length or memcmp(self.p, text, length) != 0:
            return False
        self.p += length
        return True

    cdef bint skip(self, int depth) except -1:
        """Skip a value, which must still be valid JSON."""
        cdef Decimal d
        cdef double x
        cdef char c = self.p[0]
        cdef const char* p
        if c == b"\"":
            self.p += 1
            return self.string()
        if c == b"t":
            return self.literal(b"true", 4)
        if c == b"f":
            return self.literal(b"false", 5)
        if c == b"n":
            return self.literal(b"null", 4)
        if c != b"{" and c != b"[":
            p = scan_decimal(self.p, self.end, &d, False)
            if p == NULL or not double_of(&d, &x):
                return False
            self.p = p
            return True
        if depth == DEEPEST:
            return False
        self.p = past_blanks(self.p + 1)
        if self.p[0] == c + 2:  # the code of a closing bracket is that of the opening one + 2
            self.p += 1
            return True
        while True:
            if c == b"{":
                if self.p[0] != b"\"":
                    return False
                self.p += 1
                if not self.string():
                    return False
                self.p = past_blanks(self.p)
                if self.p[0] != b":":
                    return False
                self.p = past_blanks(self.p + 1)
            if not self.skip(depth + 1):
                return False
            self.p = past_blanks(self.p)
            if self.p[0] == c + 2:
                self.p += 1
                return True
            if self.p[0] != b",":
                return False
            self.p = past_blanks(self.p + 1)

    cdef bint string(self) except -1:
        """Read a string after its quote: in place, or in the scratch if it has escapes."""
        cdef const char* first = self.p
        cdef const char* p = scan_plain(first, self.end)
        cdef int more
        while p < self.end and p[0] != b"\"":
            if p[0] == b"\\":
                return self.unescape(first, p)
            more = utf8_length(p, self.end)
            if more == 0:
                return False
            p = scan_plain(p + more, self.end)
        if p >= self.end:
            return False
        self.text = first
        self.length = p - first
        self.p = p + 1
        return True

    cdef bint unescape(self, const char* first, const char* at) except -1:
        """Read the rest of a string from its first escape; escapes never grow."""
        cdef Py_ssize_t used = at - first
        cdef const char* p = at
        cdef char* to
        cdef char c
        cdef int more
        cdef long code, low
        if self.end - first > self.scratch_room:
            to = <char*>PyMem_Realloc(self.scratch, self.end - first + 256)
            if to == NULL:
                raise MemoryError
            self.scratch = to
            self.scratch_room = self.end - first + 256
        memcpy(self.scratch, first, used)
        to = self.scratch + used
        while p < self.end:
            c = p[0]
            if c == b"\"":
                self.text = self.scratch
                self.length = to - self.scratch
                self.p = p + 1
                return True
            if c != b"\\":
                more = 1
                if <unsigned char>c >= 0x80:
                    more = utf8_length(p, self.end)
                if more == 0 or <unsigned char>c < 0x20:
                    return False
                memcpy(to, p, more)
                to += more
                p += more
                continue
            c = p[1]  # may be the zero byte at the end
            p += 2
            if c == b"u":
                code = four_digits(p, self.end)
                if code < 0 or 0xDC00 <= code < 0xE000:
                    return False
                p += 4
                if 0xD800 <= code < 0xDC00:
                    low = four_digits(p + 2, self.end)
                    if low < 0 or p[0] != b"\\" or p[1] != b"u" or not 0xDC00 <= low < 0xE000:
                        return False
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                    p += 6
                to = put_utf8(to, code)
                continue
            if c == b"n":
                c = b"\n"
            elif c == b"t":
                c = b"\t"
            elif c == b"r":
                c = b"\r"
            elif c == b"b":
                c = 8
            elif c == b"f":
                c = 12
            elif c != b"\"" and c != b"\\" and c != b"/":
                return False
            to[0] = c
            to += 1
        return False


cdef long four_digits(const char* p, const char* end) noexcept:
    """Return the value of four hexadecimal digits, or -1."""
    cdef long code = 0
    cdef int i
    cdef unsigned char c
    if end - p < 4:
        return -1
    for i in range(4):
        c = <unsigned char>p[i]
        if 48 <= c <= 57:
            code = 16 * code + c - 48
        elif 65 <= (c & 0xDF) <= 70:
            code = 16 * code + (c & 0xDF) - 55
        else:
            return -1
    return code
