"""CSV: rows are records, columns are fields; the first row names the columns unless they are given.

A column that is not declared has numbers or text. This is inferred from the first rows: text if a
value is not a number. Empty values and markers of missing ones (`NA`, `null`, ...) are skipped. A
few texts do not make labels text unless these are open, as they are mistakes: classes `0` and `1`
would lose their meaning. What a regression learns is numbers.

The header of a later file may have the columns in another order.
"""

from collections import Counter

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.math cimport isfinite
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memset

from streamlearn.errors import InvalidEventError, TableMismatchError

from streamlearn.engine.events cimport BOOL, Events
from streamlearn.features.pieces cimport Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.transforms cimport A_TEXT, AUTO, IGNORED, TOP
from streamlearn.features.transforms cimport Value as FieldValue
from streamlearn.stream.formats.keys cimport (
    DECLARED, FEATURE, ID, LABEL, SKIPPED, TIME, WEIGHT, Role,
)
from streamlearn.stream.sources.lines cimport PADDING
from streamlearn.core.numbers cimport Decimal, number_at, value_at
from streamlearn.stream.sources.rows cimport (
    AFTER_QUOTE, BREAK, NO_UTF8, OPEN, Delimiter, Value, begins, read_value,
)
from streamlearn.features.put cimport put_number, put_text
from streamlearn.stream.formats.decoder cimport is_date
from streamlearn.stream.formats.text_decoder cimport TextDecoder

from streamlearn.core.nearest import nearest
from streamlearn.features.fields import Auto, Buckets, Ignore, Interaction, Number, spec
from streamlearn.features.pieces import short_repr
from streamlearn.stream.sources.rows import checked

SAMPLE = 1000  # rows, with the header, from which types are inferred
FEW = 0.01  # texts among the labels that are mistakes beside numbers
DELIMITERS = ";\t|,"
DECIMALS = (".", ",")
NUMBER_KINDS = (Number.kind, Buckets.kind)
MISSING = frozenset(["", "na", "n/a", "nan", "null", "none", "?"])
BLANKS = " \t\r\n\v\f"
FAULTS = {
    OPEN: "a quoted value has no closing quote: close it, and double the quotes inside",
    AFTER_QUOTE: "text follows a closing quote: double the quotes inside values",
    BREAK: "a line break outside quotes: a record must be one row",
    NO_UTF8: "not valid UTF-8: convert the data to UTF-8",
}
cdef double EXACT = 9007199254740992.0  # 2**53: a float64 holds integers up to here

cdef struct Column:
    const char* name  # followed by "="
    Py_ssize_t length  # without the "="
    Role role
    int field  # what the reader does with a feature
    bint numbers
    bint has_commas  # numbers may have a decimal comma


cdef class CSVDecoder(TextDecoder):
    """Rows of delimited values, quoted as by spreadsheets.

    `columns` names the columns of data without a header. With `decimal=","` numbers are written as
    1.234,5: a comma before the decimals, points, if any, between groups of three digits. Headers of
    later files are skipped. Types are inferred of columns that the reader does not declare, and of
    the label unless all labels are given. Values keep their type: labels such as `true` and `1` are
    a bool and a number, others are text.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events, Fields
    >>> decoder, events = CSVDecoder(Names(), Fields(label="clicked")), Events()
    >>> decoder.decode([b"ad,price,clicked", b"shoes,2.5,1", b'"a, b",,0'], events)
    >>> decoder.types
    {'ad': 'text', 'price': 'numbers', 'clicked': 'numbers'}
    >>> decoder.reader.names(), events.labels
    (['ad=shoes', 'price', 'ad=a, b'], array([1., 0.]))
    """

    cdef readonly tuple columns
    cdef readonly dict types
    cdef str delimiter
    cdef bytes sign
    cdef Delimiter by
    cdef bint has_commas
    cdef bytes header
    # The columns:
    cdef dict untyped  # those whose type is yet to be inferred
    cdef bint outdated  # they have changed
    cdef list names  # that the columns' names point into
    cdef Column* column
    cdef Py_ssize_t n
    cdef uint64_t[256] lengths  # by the names' first byte: bits of their lengths modulo 64
    cdef bint may_repeat  # a feature may have the name of another
    cdef bint has_groups  # interactions are declared
    # The current record:
    cdef Py_ssize_t length
    cdef char* scratch  # where doubled quotes are replaced
    cdef Py_ssize_t room
    cdef Py_ssize_t used
    cdef const Column* label_column  # NULL: no label
    cdef Value label

    def __init__(self, reader, fields=None, learners=(), grow_always=False, *, delimiter=",",
                 columns=(), decimal="."):
        TextDecoder.__init__(self, reader, fields, learners, grow_always)
        self.delimiter = checked(delimiter)
        self.sign = self.delimiter.encode()
        self.by = Delimiter(PyBytes_AS_STRING(self.sign), PyBytes_GET_SIZE(self.sign))
        if decimal not in DECIMALS or decimal == delimiter:
            raise ValueError(f"decimal={decimal!r}: expected a point, or a comma that is not the"
                             " delimiter")
        self.has_commas = decimal == ","
        self.has_groups = len(self.reader.groups) > 0
        self.columns = ()
        self.types = {}
        self.untyped = {}
        labels = self.fields.labels
        if self.fields.label is not None and (labels is not None or self.number_learners):
            numbers = labels is None or all([type(label) in (int, float) for label in labels])
            self.types[self.fields.label] = "numbers" if numbers else "text"
        if columns:
            self.set_columns(columns, None)

    def __dealloc__(self):
        PyMem_Free(self.column)
        PyMem_Free(self.scratch)

    # The table

    def set_columns(self, names, header):
        """Set the columns."""
        names = tuple(names)
        if len(set(names)) < len(names):
            twice, _ = Counter(names).most_common(1)[0]
            raise TableMismatchError(
                f"two columns have the name {twice!r}: rename one in the file's first line, or"
                " remove that line and name the columns (format.columns, --columns)")
        found = {name[:end] for name in names for end in dots(name)}
        missing = [name for name in self.required_columns() if name not in found]
        if missing:
            message = f"no column {missing[0]!r} in the header {', '.join(names)[:200]!r}"
            other = [sign for sign in DELIMITERS if len(names) == 1 and sign in names[0]]
            if other:
                message += f": if it is split by {other[0]!r}, set format.delimiter (--delimiter)"
            elif (hint := nearest(missing[0], names)).startswith("did you mean"):
                message += f"; {hint}"
            raise TableMismatchError(message)
        self.columns = names
        self.header = header
        self.find_untyped()

    def set_types(self, types):
        """Set which columns are numbers or text, as in a model that has learned them."""
        self.types.update(types)
        self.find_untyped()

    def required_columns(self):
        """Return the columns that must exist."""
        fields = self.fields
        declared = [name for name, field in self.reader.fields.items() if (
            name != spec.OTHERS and not isinstance(field, Interaction)
            # a table without labels needs only features
            and (fields.label is not None or not isinstance(field, Ignore)))]
        return (*fields.roles, *[name for name in declared if name not in fields.ignored])

    cdef int find_untyped(self) except -1:
        """Set the columns whose type is yet to be inferred."""
        self.untyped = {name: None for name in self.columns if name not in self.types and (
            name == self.fields.label or self.is_auto(name))}
        self.outdated = True
        return 0

    cdef bint is_auto(self, str name) except -1:
        """Whether a column is a feature that is not declared."""
        return name not in self.fields.aside and self.field_of_column(name) == AUTO

    @property
    def sample(self):
        """The number of first records that should be decoded together, to infer types."""
        if self.columns:
            return SAMPLE if self.untyped else 0
        label = self.fields.label
        inferred = self.reader.fields.get(spec.OTHERS, Auto()) == Auto() or (
            label is not None and label not in self.types)
        return SAMPLE if inferred else 0

    def decode(self, values, Events events, order=None, headers=None):
        """Append the events of these records, in this order; null is a tombstone."""
        if not self.columns or self.untyped:
            self.infer(values if order is None else [values[k] for k in order])
        if self.outdated:
            self.prepare()
        TextDecoder.decode(self, values, events, order, headers)

    def infer(self, records):
        """Infer the header, and the types of columns without one, from the first records."""
        order = self.columns
        rows = 0
        texts, numbers = Counter(), Counter()  # values by column
        for record in records[:SAMPLE]:
            try:
                row = split_row(record, self.delimiter) if record else None
            except InvalidEventError as error:
                if not self.columns:  # another row is not the header
                    raise TableMismatchError(f"the header cannot be read: {error}") from None
                continue
            if row is None or not any(row):
                continue
            if not self.columns:
                self.set_columns([name.strip(BLANKS) for name in row], line_of(record))
                order = self.columns
            elif self.is_header_row(row):
                order = [name.strip(BLANKS) for name in row]
                self.header = self.header or line_of(record)
            elif len(row) == len(order):
                rows += 1
                for name, value in zip(order, row, strict=True):
                    if name not in self.untyped:
                        continue
                    if number(with_point(value) if self.has_commas else value) is not None:
                        numbers[name] += 1
                    elif value.strip(BLANKS).lower() not in MISSING:
                        texts[name] += 1
        if rows:
            positive = self.fields.positive  # a number equals no text
            maps_numbers = positive is not None and all(
                [isinstance(value, (int, float)) for value in positive])
            for name in self.untyped:
                strict = name != self.fields.label or not (maps_numbers or self.labels.warmup)
                most = 0 if strict else FEW * numbers[name]
                are_numbers = numbers[name] > 0 and texts[name] <= most
                self.types[name] = "numbers" if are_numbers else "text"
            self.find_untyped()

    cdef bint is_header_row(self, list row) except -1:
        """Whether these are the names of the columns, in any order.

        Columns that were given by name must have the same order.
        """
        first = row[0].strip(BLANKS)
        if first != self.columns[0] and (self.header is None or first not in self.columns):
            return False
        names = [name.strip(BLANKS) for name in row]
        if self.header is None:
            return names == list(self.columns)
        return sorted(names) == sorted(self.columns)

    def prepare(self):
        """Prepare the columns for reading."""
        cdef Py_ssize_t i, n = len(self.columns)
        cdef bytes name
        cdef Column* column = <Column*>PyMem_Realloc(self.column, (n + 1) * sizeof(Column))
        if column == NULL:
            raise MemoryError(f"{n} columns")
        self.column = column
        self.n = n
        self.names = [text.encode() + b"=" for text in self.columns]
        self.may_repeat = False
        memset(self.lengths, 0, sizeof(self.lengths))
        fields = self.fields
        kinds = {"label": LABEL, "weight": WEIGHT, "id": ID, "time": TIME}
        roles = {field: kinds[role] for field, role in fields.roles.items()}
        for i, text in enumerate(self.columns):
            name = self.names[i]
            column = self.column + i
            column.name = PyBytes_AS_STRING(name)
            column.length = PyBytes_GET_SIZE(name) - 1
            column.field = IGNORED
            if text not in fields.ignored:
                column.field = self.field_of_column(text)
            column.role = roles.get(
                text, FEATURE if column.field == AUTO else
                SKIPPED if column.field == IGNORED else DECLARED)
            column.numbers = self.types.get(text) == "numbers" and column.role != ID
            column.has_commas = self.has_commas and (
                column.numbers or column.role in (WEIGHT, TIME)
                or (column.role == DECLARED and self.reader.kind_of(column.field) in NUMBER_KINDS))
            self.may_repeat |= column.role == FEATURE and "=" in text
            self.lengths[<unsigned char>name[0] if column.length else 0] |= (
                <uint64_t>1 << (column.length & 63))
        self.outdated = False

    cdef int field_of_column(self, str name) except? -9:
        """Return what the reader does with a column, whose name may have dots as inner fields."""
        cdef int field = TOP
        cdef bytes path
        parts = name.encode().split(b".")
        for i in range(len(parts)):
            path = b".".join(parts[:i + 1])
            field = self.reader.field_of(path, len(path), field)
            if i < len(parts) - 1:
                field = self.reader.inside(field) if self.reader.nests(field) else AUTO
        return field

    cdef bint is_header(self, const char* p, const char* end) except -1 nogil:
        """Whether the row names the columns; from then on they have its order."""
        cdef Value first
        cdef Py_ssize_t i, key
        cdef bint found
        if self.n == 0 or read_value(p, end, &self.by, &first) == NULL:
            return False
        trim(&first)
        key = <unsigned char>first.text[0] if first.length else 0
        found = first.doubled
        if not found and self.lengths[key] >> (first.length & 63) & 1:
            for i in range(self.n):
                found |= first.length == self.column[i].length and memcmp(
                    first.text, self.column[i].name, first.length) == 0
        if not found:
            return False
        with gil:
            return self.reorder(p[:end - p])

    cdef bint reorder(self, bytes line) except -1:
        """Set the order of a header; False if the line is not a header."""
        try:
            row = split_row(line, self.delimiter)
        except InvalidEventError:
            return False
        if not self.is_header_row(row):
            return False
        self.columns = tuple([name.strip(BLANKS) for name in row])
        self.header = line
        self.prepare()
        return True

    def field_names(self):
        """Return the columns."""
        return list(self.columns)

    def table(self):
        """Return columns, header and types, ready for JSON."""
        header = None if self.header is None else self.header.decode("latin-1")
        return {"columns": list(self.columns), "types": self.types, "header": header}

    def state(self):
        """Return the labels and the columns, ready for JSON."""
        return {**TextDecoder.state(self), "table": self.table()}

    def restore(self, state):
        """Restore a state that `state` returned."""
        TextDecoder.restore(self, state)
        table = state["table"]
        self.columns = tuple(table["columns"])
        self.types = dict(table["types"])
        self.header = None if table["header"] is None else table["header"].encode("latin-1")
        self.find_untyped()

    # A record

    cdef int line(self, const char* p, const char* end, Events events) except -1 nogil:
        cdef const char* first = p
        cdef Py_ssize_t i
        while end > p and (end[-1] == b"\n" or end[-1] == b"\r"):
            end -= 1
        if is_empty(p, end) or self.is_header(p, end):
            events.blank += 1
            return 0
        if self.n == 0:
            with gil:
                raise InvalidEventError("no header: the first line names the columns")
        self.reader.begin()
        self.reader.repeats = self.may_repeat
        self.label_column = NULL
        self.length = end - p
        self.used = 0
        for i in range(self.n):
            p = self.read(self.column + i, p, end, self.reader)
            if (p == end) != (i == self.n - 1):
                with gil:
                    count = len(split_row(first[:end - first], self.delimiter))
                    raise InvalidEventError(f"{count} values for {self.n} columns")
            p += self.by.size
        if self.label_column != NULL:
            self.read_label(self.label_column, &self.label)
        self.reader.complete()
        self.reader.look_up(self.grows())
        return self.push(events)

    cdef const char* read(
            self, const Column* column, const char* p, const char* end, Reader reader
    ) except NULL nogil:
        """Read this column's value at p; return its end."""
        cdef Py_ssize_t n = reader.n
        cdef bint quoted = p[0] == b'"'
        cdef const char* q
        cdef double x
        cdef Value value
        if column.numbers and column.role == FEATURE and not column.has_commas and (
                begins_number(p[quoted])):
            q = value_at(p + quoted, end, &x)  # nearly always the whole value
            if q != NULL and quoted:
                q = q + 1 if q[0] == b'"' else NULL
            if q != NULL and (q == end or begins(q, end, &self.by)) and isfinite(x):
                put_number(reader, column.name, column.length, x)
                if self.has_groups:
                    reader.record_span(Text(column.name, 0, column.length), n)
                return q
        q = read_value(p, end, &self.by, &value)
        if q == NULL:
            with gil:
                raise InvalidEventError(FAULTS[value.fault])
        if column.role == SKIPPED or is_missing(value):
            return q
        if value.doubled:
            self.unquote(&value)
        elif column.has_commas:
            self.replace_comma(&value)
        if column.role != DECLARED and column.role != FEATURE:
            self.read_role(column, &value)
        if column.role == DECLARED or (column.role == TIME and self.time_is_feature):
            self.read_declared(column, &value)
        if column.role != FEATURE:
            return q
        if not column.numbers:
            put_text(reader, column.name, column.length, value.text, value.length)
        elif find_number(value, &x):
            put_number(reader, column.name, column.length, x)
        else:
            self.refuse_number(column, &value)
        if self.has_groups:
            reader.record_span(Text(column.name, 0, column.length), n)
        return q

    cdef int read_role(self, const Column* column, const Value* value) except -1 nogil:
        """Read the label, weight, id or time."""
        cdef double x
        if column.role == LABEL:  # is read after the weight
            self.label_column = column
            self.label = value[0]
        elif column.role == ID:
            self.tags.id = value.text
            self.tags.id_length = value.length
        elif not find_number(value[0], &x):
            if column.numbers:
                self.refuse_number(column, value)
            with gil:
                text = value.text[:value.length].decode()
                if column.role == TIME:
                    self.take_time(text)
                else:
                    self.take_weight(text)
        elif column.role == TIME:
            self.tags.time = x * self.time_scale
            if not is_date(self.tags.time):
                with gil:
                    self.take_time(x)
        else:
            self.tags.weight = x
            if x < 0.0:
                with gil:
                    self.take_weight(x)
        return 0

    cdef int read_label(self, const Column* column, Value* value) except -1 nogil:
        cdef Value bare = value[0]
        cdef bint true
        cdef Decimal d
        cdef double x
        if column.numbers:
            trim(value)
            if not find_number(value[0], &x):
                self.refuse_number(column, value)
            number_at(value.text, value.text + value.length, &d, &x)
            if -EXACT <= x <= EXACT:
                return self.take_decimal(&d, x)
            with gil:
                return self.take_label(number(value.text[:value.length].decode()))
        trim(&bare)
        true = is_word(&bare, b"true", 4)
        if true or is_word(&bare, b"false", 5):
            if not self.mapped:
                return self.take_number(true, BOOL)
            with gil:
                return self.take_label(true != 0)
        if self.find_known(value.text, value.length):
            return 0
        with gil:
            return self.take_text(value.text, value.length)

    cdef int read_declared(self, const Column* column, Value* value) except -1 nogil:
        """Read a feature that the reader transforms."""
        cdef FieldValue given
        cdef Py_ssize_t first = self.reader.n
        given.kind, given.text, given.length = A_TEXT, value.text, value.length
        self.reader.put(column.field, Text(column.name, 0, column.length), &given)
        if self.has_groups:
            self.reader.record_span(Text(column.name, 0, column.length), first)
        return 0

    cdef int refuse_number(self, const Column* column, const Value* value) except -1 with gil:
        name = column.name[:column.length].decode()
        text = value.text[:value.length].decode()
        if column.role == LABEL:
            raise self.refusal("label", f"is {short_repr(text)} in a column of numbers: it must"
                               " be a number, unless all labels are listed (format.labels,"
                               " --labels)")
        raise InvalidEventError(
            f"field {name!r} is {short_repr(text)} in a column of numbers: declare what it is, such"
            " as 'category' (features.fields, --field)", name)

    cdef int unquote(self, Value* value) except -1 nogil:
        """Replace doubled quotes, without moving earlier values of the row."""
        cdef const char* p = value.text
        cdef const char* end = p + value.length
        cdef char* to
        if self.room < self.length:  # then it has no values yet
            self.make_room()
        to = self.scratch + PADDING + self.used
        value.text = to
        while p < end:
            to[0] = p[0]
            p += 2 if p[0] == b'"' else 1
            to += 1
        value.length = to - value.text
        self.used += value.length
        return 0

    cdef int replace_comma(self, Value* value) except -1 nogil:
        """Write a number with a decimal comma as one with a point; other values stay."""
        cdef Py_ssize_t length
        cdef char* to
        if self.room < self.length:  # then it has no values yet
            self.make_room()
        to = self.scratch + PADDING + self.used
        trim(value)
        length = write_with_point(value.text, value.length, to)
        if length:
            value.text, value.length = to, length
            to[length] = b" "  # ends the number
            self.used += length + 1
        return 0

    cdef int make_room(self) except -1 with gil:
        cdef void* to = PyMem_Realloc(self.scratch, 2 * self.length + 2 * PADDING)
        if to == NULL:
            raise MemoryError(f"a row of {self.length} bytes")
        self.scratch = <char*>to
        self.room = 2 * self.length
        return 0


cdef inline bint is_blank(char c) noexcept nogil:
    return c == b" " or 9 <= c <= 13


cdef inline void trim(Value* value) noexcept nogil:
    """Remove blanks around a value."""
    while value.length and is_blank(value.text[0]):
        value.text += 1
        value.length -= 1
    while value.length and is_blank(value.text[value.length - 1]):
        value.length -= 1


cdef inline bint is_empty(const char* p, const char* end) noexcept nogil:
    while p < end and is_blank(p[0]):
        p += 1
    return p == end


cdef inline bint is_digit(char c) noexcept nogil:
    return 48 <= c <= 57


cdef inline Py_ssize_t write_with_point(
        const char* p, Py_ssize_t length, char* to) noexcept nogil:
    """Write a number such as 1.234,5 as 1234.5; return its length, 0 if it has another form."""
    cdef const char* end = p + length
    cdef const char* first
    cdef char* start = to
    cdef bint grouped = False
    if p < end and (p[0] == b"-" or p[0] == b"+"):
        to[0] = p[0]
        to += 1
        p += 1
    first = p
    while p < end and (is_digit(p[0]) or p[0] == b"."):
        if p[0] == b".":  # up to three digits before it, or exactly three after the last one
            if not 0 < p - first <= 3 or (grouped and p - first < 3):
                return 0
            grouped = True
            first = p + 1
        else:
            to[0] = p[0]
            to += 1
        p += 1
    if grouped and p - first != 3:
        return 0
    if p == end:
        return to - start if grouped else 0
    if p[0] != b"," or length < 2:
        return 0
    to[0] = b"."
    to += 1
    p += 1
    while p < end and (is_digit(p[0]) or (
            (p[0] | 32) == b"e" and p + 1 < end) or p[0] == b"-" or p[0] == b"+"):
        to[0] = p[0]
        to += 1
        p += 1
    return to - start if p == end else 0


cdef inline bint begins_number(char c) noexcept nogil:
    return 48 <= c <= 57 or c == b"-" or c == b"+" or c == b"."


cdef inline bint find_number(Value value, double* x) except -1 nogil:
    """Whether a value is a finite number, with or without blanks around it.

    A value with doubled quotes is not; the bytes before it in the scratch cannot be read.
    """
    cdef const char* end
    if value.doubled:
        return False
    trim(&value)
    end = value.text + value.length
    return begins_number(value.text[0]) and value_at(value.text, end, x) == end and isfinite(x[0])


cdef bint is_word(const Value* value, const char* word, Py_ssize_t length) noexcept nogil:
    """Whether a value is this lowercase word, ignoring case."""
    cdef Py_ssize_t i
    cdef char c
    if value.length != length:
        return False
    for i in range(length):
        c = value.text[i]
        if c != word[i] and not (65 <= c <= 90 and c + 32 == word[i]):
            return False
    return True


cdef bint is_missing(Value value) noexcept nogil:
    """Whether a value marks a missing one."""
    trim(&value)
    if value.length == 0:
        return True
    if value.length > 4:
        return False
    return (
        is_word(&value, b"na", 2) or is_word(&value, b"nan", 3) or is_word(&value, b"null", 4)
        or is_word(&value, b"none", 4) or is_word(&value, b"n/a", 3) or is_word(&value, b"?", 1))


def dots(name):
    """Return where the names of the fields end that a column is in, with its own.

    >>> dots("user.age")
    [4, 8]
    """
    return [i for i, sign in enumerate(name) if sign == "."] + [len(name)]


cdef bytes line_of(bytes record):
    """Return a record without its line end."""
    return record.rstrip(b"\r\n")


def split_row(record, delimiter):
    """Split a row into its values.

    >>> split_row(b'1,"a, b",', ",")
    ['1', 'a, b', '']
    """
    cdef bytes line = line_of(record), sign = delimiter.encode()
    cdef bytes padded = line + bytes(PADDING)
    cdef Delimiter by = Delimiter(PyBytes_AS_STRING(sign), PyBytes_GET_SIZE(sign))
    cdef const char* p = PyBytes_AS_STRING(padded)
    cdef const char* end = p + PyBytes_GET_SIZE(line)
    cdef Value value
    cdef list found = []
    while True:
        p = read_value(p, end, &by, &value)
        if p == NULL:
            raise InvalidEventError(FAULTS[value.fault])
        text = value.text[:value.length].decode()
        found.append(text.replace('""', '"') if value.doubled else text)
        if p == end:
            return found
        p += by.size


def with_point(text):
    """Return a number with a decimal comma as one with a point; another text as it is.

    >>> with_point(" -1.234,5"), with_point("1,5e-3"), with_point("1.5"), with_point("1,2,3")
    ('-1234.5', '1.5e-3', '1.5', '1,2,3')
    """
    cdef bytes given = text.strip(BLANKS).encode()
    cdef bytearray found = bytearray(len(given) + 1)
    cdef Py_ssize_t length = write_with_point(given, len(given), found)
    return found[:length].decode() if length else text


def number(text):
    """Parse a number, integers as int; None if the text is not a number.

    >>> number(" 12"), number("1.5e3"), number("inf")
    (12, 1500.0, None)
    """
    cdef bytes padded = bytes(PADDING) + text.encode() + bytes(PADDING)
    cdef Value value = Value(
        PyBytes_AS_STRING(padded) + PADDING, PyBytes_GET_SIZE(padded) - 2 * PADDING, False, OPEN)
    cdef double x
    if not find_number(value, &x):
        return None
    whole = text.strip(BLANKS).lstrip("+-").lstrip("0") or "0"
    if not whole.isdigit():
        return x
    return -int(whole) if x < 0.0 else int(whole)
