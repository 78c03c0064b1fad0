"""Declared fields become pieces: the kinds of `features.fields`, compiled.

Every format gives the value of a field as its records have it: a number, a bool or text. Formats
without types give text, so each transform reads text as it reads the value that the text writes.
"""

import array

from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport INFINITY, floor, isfinite, log1p, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from streamlearn.core.times import timestamp
from streamlearn.errors import ModelFileError

from streamlearn.core.memory cimport reallocate
from streamlearn.core.numbers cimport value_at
from streamlearn.features.calendar cimport (
    ISO, YMD, DateOrder, date_of_number, month_of, scan_date, scan_time,
)
from streamlearn.features.pieces cimport TEXT, Piece, Pieces, Text
from streamlearn.features.name_numbers cimport NameNumbers
from streamlearn.features.text cimport copy_text
from streamlearn.features.tokens cimport Token, Tokens

from streamlearn.features import fields as kinds
from streamlearn.features import zones
from streamlearn.features.calendar import ORDERS
from streamlearn.features.fields import spec as declarations
from streamlearn.features.fields import time as times
from streamlearn.features.pieces import field_error, short_repr

cdef enum:
    MAX_ITEMS = 1 << 16  # features of one field of text, or a list
    MAX_FIELD_TEXT = 1 << 20  # bytes of one text
    NUMBER_BYTES = 512  # the longest text of a number
    PADDING = 16  # bytes around a number that can be read

cdef enum:
    FIRST_DAY = 25574  # 1899-12-25, as days before 1970; local times begin before 1900
cdef int64_t FIRST_SECOND = <int64_t> zones.FIRST.timestamp()
cdef int64_t LAST_SECOND = <int64_t> zones.LAST.timestamp()
cdef list TIMES = [
    *[f"hour={hour}" for hour in range(24)],
    *[f"weekday={day}" for day in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")],
    *[f"month={month}" for month in range(1, 13)],
]
cdef enum:
    WEEKDAY = 24  # where weekdays begin
    MONTH = 31

cdef dict KINDS = {
    kinds.Number: NUMBER, kinds.Category: CATEGORY, kinds.Buckets: BUCKETS, kinds.Text: WORDS,
    kinds.Time: TIME, kinds.List: LIST, kinds.Map: MAP,
}


cdef class Transforms(Pieces):
    """Pieces of declared fields."""

    def __cinit__(self, *args, **kwargs):
        self.tokens = Tokens()
        self._set_fields(None)

    def __dealloc__(self):
        free(self.transform)
        free(self.warm)

    # The declaration

    def _set_fields(self, fields):
        """Compile the declaration."""
        cdef Transform* t
        cdef bytes name
        spec = fields
        if not isinstance(spec, declarations.FieldSpec):
            spec = declarations.FieldSpec(fields)
        self.fields = spec
        self._set_interactions(spec.interactions)
        self.has_fields = len(spec) > len(spec.interactions)
        self.held = []
        self.warm_values = []
        self.numbers = {}
        self.transforms = 0
        self.transform = <Transform*> reallocate(
            self.transform, (len(spec) + 1) * sizeof(Transform))
        for text, field in spec.items():
            if isinstance(field, kinds.Interaction):
                continue
            name = text.encode()
            self.held.append(name)
            kind = KINDS.get(type(field))
            if kind is None:
                self.numbers[name] = IGNORED if isinstance(field, kinds.Ignore) else AUTO
                continue
            t = self.transform + self.transforms
            memset(t, 0, sizeof(Transform))
            t.name = PyBytes_AS_STRING(name)
            t.length = PyBytes_GET_SIZE(name)
            t.kind = <FieldKind> <int> kind
            t.drops_invalid = field.invalid != "refuse"
            t.keeps_text = field.invalid == "category"
            t.is_wildcard = text == declarations.OTHERS
            self.numbers[name] = self.transforms
            self.warm_values.append(None)
            self.transforms += 1
            self._compile(self.transforms - 1, field)
        self.wildcard = self.numbers.pop(declarations.OTHERS.encode(), AUTO)
        self.outer = frozenset([
            b".".join(parts[:n]) for parts in [name.split(b".") for name in self.numbers]
            for n in range(1, len(parts))
        ])
        self.field_numbers = NameNumbers(self.numbers)

    def _compile(self, int k, field):
        """Fill in what the kind needs."""
        cdef Transform* t = self.transform + k
        if t.kind == NUMBER:
            t.log1p, t.has_indicator = field.log1p, field.indicator
            t.low, t.high, t.center = -INFINITY, INFINITY, field.center
            if field.clip is not None:
                t.low, t.high = field.clip
        elif t.kind == BUCKETS:
            t.warmup = field.warmup
            if isinstance(field.edges, int):
                self.warm_values[k] = array.array("d")
            else:
                self.freeze(k, field.edges)
        elif t.kind == WORDS:
            t.has_words, t.ngrams, t.chars = field.has_words, field.ngrams, field.chars or 0
            t.binary, t.normalized = field.binary, field.normalized
        elif t.kind == TIME:
            t.hour, t.weekday, t.month = [part in field.parts for part in ("hour", "weekday",
                                                                           "month")]
            t.unit = times.UNITS[field.unit]
            t.order = <DateOrder> <int> ORDERS[field.order]
            starts, seconds = zones.offsets(field.zone)
            self.held += [starts, seconds]
            t.zone_starts = <const int64_t*> <size_t> starts.ctypes.data
            t.zone_offsets = <const int64_t*> <size_t> seconds.ctypes.data
            t.zone_count = len(starts)
            t.features = self.hold([f"{self.name_of_transform(k)}.{time}" for time in TIMES])
        elif t.kind == LIST or t.kind == MAP:
            t.separator = ord(field.separator)

    cdef const Text* hold(self, list names) except NULL:
        """Return the names as UTF-8 that is kept alive."""
        cdef list kept = [name.encode() for name in names]
        cdef bytearray places = bytearray(len(kept) * sizeof(Text))
        cdef Text* place = <Text*> <char*> places
        cdef Py_ssize_t i
        for i in range(len(kept)):
            place[i] = Text(PyBytes_AS_STRING(kept[i]), 0, PyBytes_GET_SIZE(kept[i]))
        self.held += [kept, places]
        return place

    cdef int field_of(self, const char* name, Py_ssize_t length, int parent) noexcept nogil:
        """Return the number of a field's transform, AUTO or IGNORED.

        `parent`: that of the field it is in, or TOP.
        """
        return self.field_numbers.find(name, length, self.wildcard if parent == TOP else parent)

    cdef bint nests(self, int k) noexcept nogil:
        """Whether a mapping in this field has fields of its own."""
        return k < 0 or self.transform[k].is_wildcard or self.transform[k].kind == MAP

    cdef int inside(self, int k) noexcept nogil:
        """What fields in this one are that are not declared."""
        return AUTO if k >= 0 and self.transform[k].kind == MAP else k

    cdef bint has_inner(self, const char* name, Py_ssize_t length) except -1 with gil:
        """Whether a field inside this one is declared."""
        return name[:length] in self.outer

    cdef str name_of_transform(self, int k):
        return self.transform[k].name[:self.transform[k].length].decode()

    cdef str kind_of(self, int k):
        return self.fields[self.name_of_transform(k)].kind

    # An event

    cdef int begin(self) except -1 nogil:
        """Begin a new event."""
        self.events += 1
        self.warm_count = 0
        return Pieces.begin(self)

    cdef int complete(self) except -1 nogil:
        """Add what does not come from one field alone: indicators and interactions."""
        cdef int k
        cdef Transform* t
        cdef Py_ssize_t first
        for k in range(self.transforms):
            t = self.transform + k
            if t.has_indicator and t.seen != self.events:
                first = self.n
                put_feature(self, Text(t.name, 0, t.length), b"=", Text(b"missing", 0, 7))
                if self.groups:
                    self.record_span(Text(t.name, 0, t.length), first)
        if self.spans:
            self.cross()
        return 0

    cdef int put(self, int k, Text name, const Value* value) except -1 nogil:
        """Add a field with this value."""
        cdef Transform* t = self.transform + k
        cdef Py_ssize_t first = self.n
        if t.kind == NUMBER:
            self.put_number(t, name, value)
        elif t.kind == CATEGORY:
            self.put_category(t, name, value)
        elif t.kind == BUCKETS:
            self.put_bucket(k, name, value)
        elif t.kind == TIME:
            self.put_time(t, name, value)
        elif t.kind == WORDS:
            self.put_words(t, name, value)
        elif t.kind == LIST:
            self.put_item(k, name, value)
            self.end_list(k, name, first)
        else:
            self.put_map(t, name, value)
        return 0

    cdef bint is_allowed(self, Transform* t, Text name, Py_ssize_t items) except -1 nogil:
        """Whether a field does not give too many features."""
        if items <= MAX_ITEMS:
            return True
        with gil:
            self.invalid(t, name, (
                f"gives up to {items} features: at most {MAX_ITEMS} are allowed; shorten it"))
        return False

    cdef bint canonical(
        self, Transform* t, Text name, const Value* value, Text* text
    ) except -1 nogil:
        """Find the text of a value in its one form; False if it has none."""
        cdef const char* p = value.text
        cdef Py_ssize_t length = value.length
        if value.kind == A_BOOL:
            p = b"true" if value.number else b"false"
            length = 4 if value.number else 5
        elif value.kind == A_NUMBER and p == NULL:
            if not isfinite(value.number):
                self.invalid_value(t, name, value, b"text, a finite number or a bool")
                return False
            self.write_shortest(value.number, text)
            return True
        elif value.kind == A_NUMBER:
            if length == 2 and p[0] == b"-" and p[1] == b"0":
                p += 1
                length = 1
        else:
            length = length_as_integer(p, length)
            if is_word(p, p + length, b"true", 4):
                p = b"true"
            elif is_word(p, p + length, b"false", 5):
                p = b"false"
            elif length == 2 and p[0] == b"-" and p[1] == b"0":
                p = b"0"
                length = 1
        text[0] = Text(p, 0, length)
        return True

    cdef int write_shortest(self, double x, Text* text) except -1 with gil:
        """Write the shortest form of a number to the arena."""
        cdef bytes shortest = short_number(x).encode()
        cdef Py_ssize_t length = PyBytes_GET_SIZE(shortest)
        if length > self.arena_room - self.used:
            self.reserve_text(length)
        memcpy(self.arena + self.used, PyBytes_AS_STRING(shortest), length)
        text[0] = Text(NULL, self.used, length)
        self.used += length
        return 0

    # Numbers

    cdef bint number_of(self, const Value* value, double* x, bint bools) except -1 nogil:
        """Whether a value is a finite number, or text that writes one; with `bools` also true."""
        cdef char[NUMBER_BYTES + 2 * PADDING] copy
        cdef const char* p = value.text
        cdef const char* end = p + value.length
        if value.kind != A_TEXT:
            x[0] = value.number
            return isfinite(x[0]) and (bools or value.kind == A_NUMBER)
        while p < end and is_blank(p[0]):
            p += 1
        while p < end and is_blank(end[-1]):
            end -= 1
        if bools and (is_word(p, end, b"true", 4) or is_word(p, end, b"false", 5)):
            x[0] = end - p == 4
            return True
        if p == end or end - p > NUMBER_BYTES or not (
                48 <= p[0] <= 57 or p[0] == b"-" or p[0] == b"+" or p[0] == b"."):
            return False
        memset(copy, 0, PADDING)
        memcpy(copy + PADDING, p, end - p)
        memset(copy + PADDING + (end - p), 0, PADDING)
        end = copy + PADDING + (end - p)
        return value_at(copy + PADDING, end, x) == end and isfinite(x[0])

    cdef int put_number(self, Transform* t, Text name, const Value* value) except -1 nogil:
        cdef double x
        if not read_number(self, value, &x):
            self.invalid_value(t, name, value, b"a finite number")
            if t.keeps_text and value.kind == A_TEXT:
                t.seen = self.events
                self.put_category(t, name, value)
            return 0
        x = t.low if x < t.low else t.high if x > t.high else x
        if t.log1p:
            if x <= -1.0:
                self.invalid_value(
                    t, name, value, b"above -1 for log1p, or clip(0, inf) in its declaration")
                return 0
            x = log1p(x)
        t.seen = self.events
        self.repeats = True
        return self.push(name, NULL, TEXT, x - t.center)

    cdef int put_bucket(self, int k, Text name, const Value* value) except -1 nogil:
        cdef Transform* t = self.transform + k
        cdef Py_ssize_t below = 0, left = t.edge_count, half
        cdef double x
        if not read_number(self, value, &x):
            self.invalid_value(t, name, value, b"a finite number")
            return 0
        if t.features == NULL:
            return self.add_warm(k, x)
        while left > 0:  # a binary search without branches, which would be mispredicted
            half = (left + 1) // 2
            below += half * (t.edges[below + half - 1] <= x)
            left -= half
        return put_known(self, t, name, b"=", t.features[below])

    cdef int add_warm(self, int k, double x) except -1 nogil:
        """Keep a value for the warm-up, until the event is learned."""
        if self.warm_count == self.warm_room:
            with gil:
                self.warm_room = 2 * self.warm_room + 8
                self.warm = <Warm*> reallocate(self.warm, self.warm_room * sizeof(Warm))
        self.warm[self.warm_count] = Warm(k, x)
        self.warm_count += 1
        return 0

    cdef int learn_warmup(self) except -1 nogil:
        """Learn the values of the current event, which is valid; a full warm-up gives the edges."""
        cdef Py_ssize_t i
        with gil:
            for i in range(self.warm_count):
                k = self.warm[i].transform
                values = self.warm_values[k]
                if values is None:
                    continue
                values.append(self.warm[i].x)
                if len(values) >= self.transform[k].warmup:
                    self.freeze(k, quantiles(values, self.fields[self.name_of_transform(k)].edges))
        self.warm_count = 0
        return 0

    cdef int freeze(self, int k, object edges) except -1:
        """Set the edges of buckets."""
        cdef Transform* t = self.transform + k
        cdef array.array kept = array.array("d", edges)
        bounds = [float("-inf"), *kept, float("inf")]
        self.held.append(kept)
        t.edge_count = len(kept)
        t.edges = kept.data.as_doubles
        t.features = self.hold([
            f"{self.name_of_transform(k)}=[{short_number(a)},{short_number(b)})"
            for a, b in zip(bounds[:-1], bounds[1:], strict=True)
        ])
        self.warm_values[k] = None
        return 0

    # Categories

    cdef int put_category(self, Transform* t, Text name, const Value* value) except -1 nogil:
        """Add field=value."""
        cdef Text text
        if not self.canonical(t, name, value, &text):
            return 0
        return put_feature(self, name, b"=", text)

    cdef int put_item(self, int k, Text name, const Value* value) except -1 nogil:
        """Add an item of a list, or the items of text."""
        cdef Transform* t = self.transform + k
        cdef const char* p = value.text
        cdef const char* end
        cdef const char* first
        cdef Value item
        if value.kind != A_TEXT:
            return self.put_category(t, name, value)
        end = p + value.length
        item.kind = A_TEXT
        while p < end:
            first = p
            while p < end and p[0] != t.separator:
                p += 1
            item.text, item.length = first, p - first
            if item.length:
                self.put_category(t, name, &item)
            p += 1
        return 0

    cdef int end_list(self, int k, Text name, Py_ssize_t first) except -1 nogil:
        """Remove the items that are there twice."""
        if not self.is_allowed(self.transform + k, name, self.n - first):
            self.n = first
        return self.merge_repeated(first, False)

    cdef int put_map(self, Transform* t, Text name, const Value* value) except -1 nogil:
        """Add the items of text such as `sports:0.7 news`."""
        cdef const char* p
        cdef const char* end
        cdef const char* item
        cdef const char* colon
        cdef double x
        cdef Value weight
        cdef Text text
        cdef Py_ssize_t first = self.n
        if not self.canonical(t, name, value, &text):
            return 0
        if text.at == NULL:  # a number; the arena moves
            return self.put_key(name, text, 1.0)
        p = text.at
        end = p + text.length
        weight.kind = A_TEXT
        while p < end:
            item = p
            colon = NULL
            while p < end and p[0] != t.separator:
                if p[0] == b":":
                    colon = p
                p += 1
            if p > item:
                x = 1.0
                if colon != NULL:
                    weight.text, weight.length = colon + 1, p - colon - 1
                    if not self.number_of(&weight, &x, False):
                        weight.text, weight.length = item, p - item
                        self.invalid_value(t, name, &weight, b"an item such as 'sports:0.7'")
                        p += 1
                        continue
                self.put_key(name, Text(item, 0, (colon if colon != NULL else p) - item), x)
            p += 1
        if not self.is_allowed(t, name, self.n - first):
            self.n = first
        return 0

    cdef int put_key(self, Text name, Text key, double x) except -1 nogil:
        """Add field.key with this value."""
        self.join(name, b".", key, &key)
        return self.push(key, NULL, TEXT, x)

    # Times

    cdef int put_time(self, Transform* t, Text name, const Value* value) except -1 nogil:
        cdef const char* p = value.text
        cdef Py_ssize_t length = value.length
        cdef int64_t seconds = 0
        cdef uint64_t second, day
        cdef double x
        cdef bint read = False
        cdef Py_ssize_t low, high = t.zone_count, middle
        if value.kind == A_TEXT:
            while length and is_blank(p[0]):
                p += 1
                length -= 1
            while length and is_blank(p[length - 1]):
                length -= 1
            read = scan_time(p, length, &seconds) or (
                t.order != ISO and scan_date(p, length, t.order, &seconds))
        if not read and self.number_of(value, &x, False):
            if t.order == YMD:
                read = date_of_number(x, &seconds)
            else:
                x = floor(x * t.unit)
                read = FIRST_SECOND <= x < LAST_SECOND
                if read:
                    seconds = <int64_t> x
        elif not read and value.kind == A_TEXT:
            with gil:
                try:
                    seconds = <int64_t> floor(timestamp(p[:length].decode()))
                    read = True
                except (ValueError, OverflowError):
                    pass
        if not read or not FIRST_SECOND <= seconds < LAST_SECOND:
            self.invalid_value(
                t, name, value, b"a time in ISO 8601, or a number of its `unit` since 1970, from"
                b" 1900 to 2100; for 31.12.2026 declare time(order=dmy)")
            return 0
        low = t.zone_at
        if seconds < t.zone_starts[low] or (
                low + 1 < t.zone_count and seconds >= t.zone_starts[low + 1]):
            low = 0
            while high - low > 1:
                middle = (low + high) // 2
                if t.zone_starts[middle] <= seconds:
                    low = middle
                else:
                    high = middle
            t.zone_at = low
        second = <uint64_t> (seconds + t.zone_offsets[low] + <int64_t> 86400 * FIRST_DAY)
        day = second // 86400
        second -= 86400 * day
        if t.hour:
            put_known(self, t, name, b".", t.features[second // 3600])
        if t.weekday:  # the first day is a Monday
            put_known(self, t, name, b".", t.features[WEEKDAY + day % 7])
        if t.month:
            put_known(self, t, name, b".", t.features[
                MONTH + month_of(<int64_t> day - FIRST_DAY) - 1])
        return 0

    # Text

    cdef int put_words(self, Transform* t, Text name, const Value* value) except -1 nogil:
        cdef Py_ssize_t words, i, j, n, first = self.n
        cdef Text text
        cdef Token* token
        cdef double square = 0.0
        if not self.canonical(t, name, value, &text):
            return 0
        if text.length > MAX_FIELD_TEXT:
            with gil:
                self.invalid(t, name, (
                    f"has {text.length} bytes: at most {MAX_FIELD_TEXT} bytes of text are"
                    " allowed; shorten it"))
            return 0
        self.tokens.split(self.bytes_at(&text), text.length)
        words, token = self.tokens.n, self.tokens.token
        n = (t.ngrams * words if t.has_words else 0) + (
            text.length + 2 * words if t.chars else 0)
        if not self.is_allowed(t, name, n):
            return 0
        if t.has_words:
            for n in range(t.ngrams):
                for i in range(words - n):
                    j = i + n
                    put_feature(self, name, b"=", Text(
                        self.tokens.text + token[i].first, 0, token[j].last - token[i].first))
        if t.chars:
            for i in range(words):
                self.put_chars(name, t.chars, token[i])
        self.merge_repeated(first, not t.binary)
        if t.normalized and self.n > first:
            for i in range(first, self.n):
                square += self.piece[i].value * self.piece[i].value
            square = 1.0 / sqrt(square)
            for i in range(first, self.n):
                self.piece[i].value *= square
        return 0

    cdef int put_chars(self, Text name, int n, Token word) except -1 nogil:
        """Add the character n-grams of a word with a space at each end, or all of it."""
        cdef const char* first = self.tokens.text + word.first - 1
        cdef const char* end = self.tokens.text + word.last + 1
        cdef const char* p = first
        cdef int count = 0
        while p < end:
            p += 1
            while p < end and (<unsigned char> p[0] & 0xC0) == 0x80:
                p += 1
            count += 1
            if count >= n or p == end:
                put_feature(self, name, b"~", Text(first, 0, p - first))
                first += 1
                while (<unsigned char> first[0] & 0xC0) == 0x80:
                    first += 1
        return 0

    # Invalid values

    cdef int invalid(self, Transform* t, Text name, object problem) except -1:
        """Raise InvalidEventError, unless an invalid value counts as missing."""
        if t.drops_invalid:
            t.dropped += 1
            return 0
        raise field_error(self.decode(name), problem)

    cdef int invalid_value(
        self, Transform* t, Text name, const Value* value, const char* wanted
    ) except -1 with gil:
        """Report a value that the field's kind does not allow."""
        if t.drops_invalid:
            t.dropped += 1
            return 0
        if value.kind == A_TEXT:
            shown = short_repr(value.text[:value.length].decode(errors="replace"))
        elif value.kind == A_BOOL:
            shown = "true" if value.number else "false"
        elif value.text != NULL and not isfinite(value.number):
            shown = "an integer too large for a float"
        else:
            shown = short_number(value.number)
        return self.invalid(t, name, f"is {shown}: expected {wanted.decode()}")

    def dropped(self):
        """Return how many invalid values were missing, or categories, by the name of the field.

        >>> from streamlearn import Names
        >>> names = Names(fields={"age": "number(invalid=missing)"})
        >>> row = names.read_event({"age": "unknown"})
        >>> names.dropped()
        {'age': 1}
        """
        cdef int k
        return {self.name_of_transform(k): self.transform[k].dropped
                for k in range(self.transforms) if self.transform[k].dropped}

    # State

    def frozen(self):
        """Return the edges, or the values of the warm-up, of buckets that learn them, by name."""
        cdef int k
        found = {}
        for k in range(self.transforms):
            name = self.name_of_transform(k)
            field = self.fields[name]
            if not isinstance(field, kinds.Buckets) or not isinstance(field.edges, int):
                continue
            if self.warm_values[k] is None:
                edges = [self.transform[k].edges[i] for i in range(self.transform[k].edge_count)]
                found[name] = {"edges": edges}
            else:
                found[name] = {"warmup": self.warm_values[k].tolist()}
        return found

    def restore_frozen(self, saved):
        """Restore what `frozen` returned; fields that it lacks keep what they have."""
        try:
            for name, one in saved.items():
                k = self.numbers.get(name.encode())
                if k is None or k < 0 or name not in self.frozen():
                    continue
                if "edges" in one:
                    edges = [float(edge) for edge in one["edges"]]
                    if not all([isfinite(edge) for edge in edges]) or edges != sorted(set(edges)):
                        raise ValueError("edges do not increase")
                    self.freeze(k, edges)
                else:
                    self.warm_values[k] = array.array("d", one["warmup"])
                    self.transform[<int> k].features = NULL
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the saved buckets are damaged: {error!r}") from None


def quantiles(values, n):
    """Return the distinct edges of n buckets that have about as many of the values each.

    >>> quantiles([4.0, 1.0, 2.0, 3.0], 2), quantiles([1.0, 1.0], 2)
    ([3.0], [])
    """
    ordered = sorted(values)
    edges = {ordered[i * len(ordered) // n] for i in range(1, n)}
    return sorted(edges - {ordered[0]})


def short_number(double x):
    """Return a number in its shortest form.

    >>> short_number(3.0), short_number(-0.0), short_number(0.1), short_number(1e300)
    ('3', '0', '0.1', '1e+300')
    """
    return str(int(x)) if -1e15 < x < 1e15 and x == floor(x) else repr(x)


cdef inline int put_feature(
        Transforms self, Text name, char joint, Text tail) except -1 nogil:
    """Add the feature name + joint + tail, as `join` and `push` do."""
    cdef Py_ssize_t length = name.length + 1 + tail.length
    cdef Piece* p
    cdef char* to
    if length > self.arena_room - self.used:
        self.reserve_text(length)
    if self.n == self.room:
        self.grow_pieces()
    to = self.arena + self.used
    copy_text(to, self.bytes_at(&name), name.length)
    to[name.length] = joint
    copy_text(to + name.length + 1, self.bytes_at(&tail), tail.length)
    p = self.piece + self.n
    p.text = Text(NULL, self.used, length)
    p.name = NULL
    p.kind = TEXT
    p.value = 1.0
    self.used += length
    self.n += 1
    self.repeats = True
    return 0


cdef inline int put_known(
        Transforms self, Transform* t, Text name, char joint, Text feature) except -1 nogil:
    """Add a feature of a transform, named after this field if the transform has several."""
    if t.is_wildcard:
        return put_feature(self, name, joint, Text(
            feature.at + t.length + 1, 0, feature.length - t.length - 1))
    self.repeats = True
    return self.push(feature, NULL, TEXT, 1.0)


cdef inline bint read_number(Transforms self, const Value* value, double* x) except -1 nogil:
    """Whether a value is a finite number, or text that writes one, or a bool."""
    if value.kind != A_TEXT:
        x[0] = value.number
        return isfinite(x[0])
    return self.number_of(value, x, True)


cdef inline bint is_blank(char c) noexcept nogil:
    return c == b" " or 9 <= c <= 13


cdef inline bint is_word(
        const char* p, const char* end, const char* word, Py_ssize_t length) noexcept nogil:
    """Whether a text is this lowercase word, ignoring case."""
    cdef Py_ssize_t i
    if end - p != length:
        return False
    for i in range(length):
        if p[i] != word[i] and not (65 <= p[i] <= 90 and p[i] + 32 == word[i]):
            return False
    return True


cdef inline Py_ssize_t length_as_integer(const char* p, Py_ssize_t length) noexcept nogil:
    """The length of a text without the `.0` of an integer, as in `12.0`."""
    cdef Py_ssize_t n = length, i
    while n > 2 and p[n - 1] == b"0":
        n -= 1
    if n == length or p[n - 1] != b"." or n < 2:
        return length
    n -= 1
    for i in range(p[0] == b"-", n):
        if not 48 <= p[i] <= 57:
            return length
    return n if n > (p[0] == b"-") else length
