"""Vowpal Wabbit's text: `[label [importance]] ['tag]|namespace[:scale] feature[:value] ... |...`"""

from libc.math cimport isfinite
from libc.string cimport memchr

from streamlearn.engine.events cimport Events
from streamlearn.features.pieces cimport TEXT, Piece, Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.transforms cimport A_NUMBER, A_TEXT, AUTO, TOP, Value
from streamlearn.features.text cimport copy_text
from streamlearn.core.numbers cimport Decimal, number_at, utf8_length, value_at
from streamlearn.stream.formats.text cimport past_spaces, shown_text
from streamlearn.stream.formats.text_decoder cimport TextDecoder

from streamlearn.errors import InvalidEventError


cdef extern from *:
    """
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif
    /* 1: ends a word; 2: ends a name, and a value follows */
    static const unsigned char streamlearn_vw[256] = {
        [0] = 1, ['\\t'] = 1, ['\\n'] = 1, ['\\r'] = 1, [' '] = 1, ['|'] = 1, [':'] = 2,
    };
    static inline int streamlearn_ends_word(const char *p) {
        return streamlearn_vw[(unsigned char)*p] == 1;
    }
    /* The end of the name at p: at the latest the zero byte after the text; sixteen bytes more can
       be read. */
    static inline const char *streamlearn_word_end(const char *p, int *odd) {
        unsigned char seen = 0;
    #if defined(__SSE2__)
        /* Sixteen bytes at once: names end where can't be foreseen. */
        __m128i x = _mm_loadu_si128((const __m128i *)p), low, marks;
        int ends, n;
        low = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(' ')), x);
        marks = _mm_or_si128(
            _mm_cmpeq_epi8(x, _mm_set1_epi8('|')), _mm_cmpeq_epi8(x, _mm_set1_epi8(':')));
        ends = _mm_movemask_epi8(_mm_or_si128(low, marks));
        if (ends) {
            n = __builtin_ctz(ends);
            if (streamlearn_vw[(unsigned char)p[n]]) {
                *odd = _mm_movemask_epi8(x) & ((1 << n) - 1);
                return p + n;
            }
        }
    #endif
        while (!streamlearn_vw[(unsigned char)*p]) seen |= (unsigned char)*p++;
        *odd = seen >> 7;
        return p;
    }
    """
    bint ends_word "streamlearn_ends_word"(const char* p) noexcept nogil
    const char* word_end "streamlearn_word_end"(const char* p, bint* odd) noexcept nogil


cdef class VWDecoder(TextDecoder):
    """Lines such as `1 2.0 'tag|user age:30 ann |ad shoes`.

    A namespace is a field that contains its features: `user.age`, `user.ann`, `ad.shoes`; features
    of the namespace without a name have no prefix. A feature without a value has value 1, and a
    namespace's scale multiplies its values. The importance is the event's weight, the tag its id. A
    line without a label is only predicted. Interactions of namespaces are VW's `-q`.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events
    >>> decoder, events = VWDecoder(Names()), Events()
    >>> decoder.decode([b"1 2.0 'e7|user:2 age:0.5 ann |ad shoes | x"], events)
    >>> decoder.reader.names(), events.row_of(0)
    (['user.age', 'user.ann', 'ad.shoes', 'x'], [(0, 1.0), (1, 2.0), (2, 1.0), (3, 1.0)])
    >>> events.label_of(0), events.weights, events.ids
    (1, array([2.]), [b'e7'])
    """

    def __init__(self, reader, fields=None, learners=(), grow_always=False):
        TextDecoder.__init__(self, reader, fields, learners, grow_always)
        self.has_groups = len(self.reader.groups) > 0

    cdef int line(self, const char* p, const char* end, Events events) except -1 nogil:
        cdef const char* bar
        p = past_spaces(p)
        if p == end:
            events.blank += 1
            return 0
        bar = <const char*>memchr(p, b"|", end - p)
        if bar == NULL:
            with gil:
                raise InvalidEventError(
                    "no | in the line: features begin with one, as in '1 | age:30'"
                )
        self.reader.begin()
        self.head(p, bar)
        while bar < end and bar[0] == b"|":
            self.namespace(self.reader, &bar, end)
        if bar < end:
            with gil:
                raise InvalidEventError(f"{shown_text(bar, end)} contains a zero byte: remove it")
        self.reader.complete()
        self.reader.look_up(self.grows())
        return self.push(events)

    cdef int head(self, const char* p, const char* end) except -1 nogil:
        """Read label, importance and tag."""
        cdef const char* first
        cdef Decimal d, label
        cdef double x, y = 0.0
        cdef int numbers = 0
        while True:
            p = past_spaces(p)
            if p >= end:
                break
            first = p
            if p[0] != b"'":
                p = number_at(p, end, &d, &x)
                if p != NULL and p < end and ends_word(p):
                    numbers += 1
                    if numbers == 1:
                        y, label = x, d
                    elif numbers == 2:
                        if not isfinite(x) or x < 0.0:
                            with gil:
                                raise InvalidEventError(
                                    f"the importance is {shown_text(first, end)}: finite and >= 0",
                                    code="weight")
                        self.tags.weight = x
                    else:
                        with gil:
                            raise InvalidEventError(
                                f"a third number, {shown_text(first, end)}, before the features:"
                                " VW's initial predictions are not supported")
                    continue
            # a tag begins with ' or touches the bar
            p = first + (first[0] == b"'")
            self.tags.id = p
            while p < end and not ends_word(p):
                p += 1
            self.tags.id_length = p - self.tags.id
            if first[0] != b"'" and p < end:
                with gil:
                    raise InvalidEventError(
                        f"{shown_text(first, end)} is not a label: write a number", code="label")
            if past_spaces(p) < end:
                with gil:
                    raise InvalidEventError(
                        f"{shown_text(past_spaces(p), end)} between the tag and the |"
                    )
            break
        if numbers:
            self.take_decimal(&label, y)
        return 0

    cdef int namespace(self, Reader reader, const char** at, const char* end) except -1 nogil:
        cdef const char* space = at[0] + 1
        cdef const char* p
        cdef const char* name
        cdef Py_ssize_t length, first = reader.n, n, count = first, room = reader.room
        cdef double scale = 1.0, x
        cdef Decimal d
        cdef Piece* piece = reader.piece + count
        cdef bint odd
        p = word_end(space, &odd)
        length = p - space
        if p[0] == b":":
            name = p + 1
            p = number_at(name, end, &d, &scale)
            if p == NULL or not ends_word(p) or not isfinite(scale):
                with gil:
                    raise InvalidEventError(
                        f"namespace {space[:length].decode('utf-8', 'replace')!r} has the scale"
                        f" {shown_text(name, end)}: a scale is a finite number")
        if odd:
            check_utf8(space, length)
        if reader.has_fields:
            at[0] = self.declared_namespace(reader, Text(space, 0, length), p, end, scale)
            return 0
        while True:
            p = past_spaces(p)
            if p[0] == b"|" or p[0] == 0:
                break
            name = p
            p = word_end(p, &odd)
            n = p - name
            if odd:
                check_utf8(name, n)
            x = 1.0
            if p[0] == b":":
                p = value_at(p + 1, end, &x)
                if p == NULL or not ends_word(p):
                    with gil:
                        raise self.bad_value(name[:n], (name + n + 1)[:end - name - n - 1])
            if not isfinite(x * scale):
                with gil:
                    if isfinite(x):
                        raise self.too_large(name[:n], x, scale)
                    raise self.bad_value(name[:n], (name + n + 1)[:end - name - n - 1])
            x *= scale
            if count == room:
                reader.grow_pieces()
                room = reader.room
                piece = reader.piece + count
            piece.text = Text(name, 0, n)
            piece.name = NULL
            piece.kind = TEXT
            piece.value = x
            if length:
                join_names(reader, space, length, &piece.text)
            count += 1
            reader.n = count
            if self.has_groups:
                reader.record_span(piece.text, count - 1)
            piece += 1
        reader.repeats = True
        if self.has_groups and length:
            reader.record_span(Text(space, 0, length), first)
        at[0] = p
        return 0

    cdef const char* declared_namespace(
            self, Reader reader, Text space, const char* p, const char* end, double scale
    ) except NULL nogil:
        """Read a namespace where fields are declared; return its end.

        A namespace that is declared is one field, its value the text of all its features.
        """
        cdef int field = TOP
        cdef Py_ssize_t first = reader.n, i
        cdef const char* body = past_spaces(p)
        cdef Value value
        while p < end and p[0] != b"|" and p[0] != 0:
            p += 1
        check_utf8(body, p - body)
        if space.length:
            field = reader.field_of(space.at, space.length, TOP)
        if field >= 0 and not reader.transform[field].is_wildcard:
            value.kind, value.text, value.length = A_TEXT, body, p - body
            while value.length and <unsigned char>body[value.length - 1] <= 32:
                value.length -= 1
            if value.length:
                reader.put(field, space, &value)
        else:
            self.declared_features(reader, space, field, body, p)
        for i in range(first, reader.n):
            reader.piece[i].value *= scale
            if not isfinite(reader.piece[i].value):
                with gil:
                    raise InvalidEventError(f"a feature times the scale {scale:g} of its namespace"
                                            " is too large for a float")
        if self.has_groups and space.length:
            reader.record_span(space, first)
        return p

    cdef int declared_features(
            self, Reader reader, Text space, int outer, const char* p, const char* end
    ) except -1 nogil:
        """Read features, each of which may be a declared field: `name:value` or `name=text`."""
        cdef const char* word
        cdef const char* sign
        cdef Py_ssize_t first
        cdef Text name
        cdef Value value
        cdef int field
        while True:
            p = past_spaces(p)
            if p >= end:
                return 0
            word, sign = p, NULL
            while p < end and p[0] > b" " or <unsigned char>p[0] >= 0x80:
                if sign == NULL and (p[0] == b":" or p[0] == b"="):
                    sign = p
                p += 1
            first = reader.n
            name = Text(word, 0, (sign if sign != NULL else p) - word)
            if space.length:
                reader.join(space, b".", name, &name)
            field = reader.field_of(reader.bytes_at(&name), name.length, outer)
            value.kind, value.text, value.length, value.number = A_NUMBER, b"1", 1, 1.0
            if sign != NULL:
                value.kind, value.text, value.length = A_TEXT, sign + 1, p - sign - 1
            if field >= 0:
                reader.put(field, name, &value)
            elif field == AUTO:
                self.plain_feature(reader, space, word, p)
            if self.has_groups:
                reader.record_span(name, first)

    cdef int plain_feature(
            self, Reader reader, Text space, const char* word, const char* end
    ) except -1 nogil:
        """Read a feature that is not declared."""
        cdef bint odd
        cdef const char* p = word_end(word, &odd)
        cdef Text name = Text(word, 0, p - word)
        cdef double x = 1.0
        if p[0] == b":":
            p = value_at(p + 1, end, &x)
            if p == NULL or not ends_word(p) or not isfinite(x):
                with gil:
                    raise self.bad_value(
                        word[:name.length], (word + name.length + 1)[:end - word - name.length - 1])
        if space.length:
            reader.join(space, b".", name, &name)
        return reader.push(name, NULL, TEXT, x)

    def bad_value(self, name, rest):
        """Return the error for an invalid value."""
        name, rest = name.decode("utf-8", "replace"), rest.split(None, 1)[:1]
        value = rest[0].decode("utf-8", "replace")[:40] if rest else ""
        return InvalidEventError(f"field {name!r} is {value!r}: a value is a finite number", name)

    def too_large(self, name, value, scale):
        """Return the error for a value that its namespace's scale makes infinite."""
        name = name.decode("utf-8", "replace")
        return InvalidEventError(
            f"field {name!r} is {value:g}, times the scale {scale:g} of its namespace: that is too"
            " large for a float", name)


cdef inline int join_names(
        Reader reader, const char* space, Py_ssize_t length, Text* text) except -1 nogil:
    """Prefix a feature's name with its namespace's."""
    cdef Py_ssize_t whole = length + 1 + text.length
    cdef char* to
    if whole > reader.arena_room - reader.used:
        reader.reserve_text(whole)
    to = reader.arena + reader.used
    copy_text(to, space, length)
    to[length] = b"."
    copy_text(to + length + 1, text.at, text.length)
    text[0] = Text(NULL, reader.used, whole)
    reader.used += whole
    return 0


cdef inline int check_utf8(const char* p, Py_ssize_t n) except -1 nogil:
    cdef const char* end = p + n
    cdef int more
    while p < end:
        if <unsigned char>p[0] < 0x80:
            p += 1
            continue
        more = utf8_length(p, end)
        if more == 0:
            with gil:
                raise InvalidEventError("a name is not valid UTF-8: convert the file to UTF-8")
        p += more
    return 0
