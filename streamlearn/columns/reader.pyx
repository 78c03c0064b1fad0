"""The columns of batches as the fields of events: the same features as dicts of the same values.

A null and a NaN are missing. A struct has its columns inside, with dotted names; a map has fields
named by its keys. Times are for fields of kind `time`, lists of text for lists.

The slot of a column of numbers, or of a text in a dictionary, is kept: each distinct text is looked
up once, whatever the number of rows.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport isfinite, isnan
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from streamlearn.columns.batch cimport (
    BOOLS, CODES, DOUBLES, FLOATS, LISTS, MAPS, NULLS, OTHERS, STRUCTS, UINT64, ColumnBatch, Node,
    ColumnSchema, code_at, float_at, integer_at, is_integer, is_list, is_text, items_of,
)
from streamlearn.core.memory cimport reallocate
from streamlearn.core.numbers cimport invalid_utf8_at
from streamlearn.features.pieces cimport SLOT, TEXT, Piece, Text
from streamlearn.features.put cimport put_number, put_text
from streamlearn.features.reader cimport Reader
from streamlearn.features.scalars cimport Scalar, write_digits
from streamlearn.features.transforms cimport (
    A_TEXT, AUTO, BUCKETS, CATEGORY, IGNORED, LIST, TIME, TOP,
)
from streamlearn.features.transforms cimport NUMBER as A_FIELD_OF_NUMBERS

from streamlearn.errors import TableMismatchError
from streamlearn.features.pieces import field_error


cdef class ColumnReader:
    """Reads the rows of batches with a reader of features.

    aside: the names of columns that are not features, with dots for those inside structs.
    """

    def __init__(self, reader, aside=frozenset()):
        self.reader = reader
        self.aside = aside
        self.nodes = {}
        self.names, self.held = [], []
        self.revision = reader.revision

    def __dealloc__(self):
        self.clear()

    cdef int clear(self) noexcept:
        cdef int k
        for k in range(self.columns):
            free(self.column[k].slot)
        free(self.column)
        self.column = NULL
        self.columns = 0
        return 0

    # The columns

    cdef int use(self, ColumnBatch batch) except -1:
        """Read the rows of this batch from now on."""
        cdef Column* column
        cdef const Node* node
        cdef const void* texts
        cdef int64_t slots
        cdef int k
        if batch is self.batch:
            return 0
        if batch.schema is not self.schema:
            self.clear()
            self.nodes, self.names, self.held = {}, [], []
            self.schema = None
            self.may_repeat = False
            self.keeps = len(self.reader.groups) == 0
            for k in range(batch.schema.node[0].count):
                self.batch = batch
                self.walk(1 + k, "", TOP, 0)
            self.schema = batch.schema
        for k in range(self.columns):
            column = self.column + k
            if column.how != CODE or not self.keeps:
                continue
            node = batch.node + batch.node[column.node].first
            texts, slots = node.data, node.base + node.length
            # the texts before are still held, so that no other ones can be in their place
            if texts == NULL or column.texts != texts or column.slots != slots:
                column.slot = <int*>reallocate(column.slot, max(slots, 1) * sizeof(int))
                memset(column.slot, 255, slots * sizeof(int))
                column.texts, column.slots = texts, slots
        self.batch = batch
        return 0

    cdef int release(self) except -1:
        """Release the batch."""
        cdef int k
        self.batch = None
        for k in range(self.columns):
            self.column[k].texts = NULL
        return 0

    cdef int walk(self, int number, str path, int outer, int depth) except -1:
        """Add a column, or those inside it; outer: what fields beside it are."""
        cdef ColumnSchema schema = self.batch.schema
        cdef Reader reader = self.reader
        cdef Node* node = schema.node + number
        cdef int field, inner, k, deeper = depth + 1
        cdef str name = path + schema.names[number]
        cdef bytes text = name.encode()
        cdef bint has_roles = any([other.startswith(name + ".") for other in self.aside])
        cdef bint opens
        self.names.append(name)
        self.nodes[name] = number
        if name in self.aside and not (has_roles and node.type == STRUCTS):
            return 0
        field = reader.field_of(text, len(text), outer)
        inner = field
        if field != AUTO and field != IGNORED:
            inner = reader.inside(field)
        if node.type == STRUCTS and (
                field == AUTO or field == IGNORED or reader.nests(field)):
            if field == IGNORED and not (has_roles or reader.has_inner(text, len(text))):
                return 0
            self.may_repeat = True
            opens = len(reader.groups) > 0
            if opens:
                self.add(BEGIN, number, text, field, depth)
            for k in range(node.first, node.first + node.count):
                self.walk(k, name + ".", inner, deeper)
            if opens:
                self.add(END, number, text, field, depth)
            return 0
        if has_roles and node.type == MAPS:
            raise TableMismatchError(
                f"column {name!r} is a map, whose keys cannot be label, weight, id or time: use a"
                " struct")
        if node.type == NULLS or field == IGNORED and not (
                node.type == MAPS and reader.has_inner(text, len(text))):
            return 0
        if node.type == MAPS:
            self.may_repeat = True
            self.add(ENTRIES, number, text, field, depth)
            self.column[self.columns - 1].inner = inner
        elif is_list(node.type):
            self.add(ITEMS, number, text, field, depth)
        elif node.type == CODES and is_text(schema.node[node.first].type) and (
                field == AUTO or reader.transform[field].kind == CATEGORY):
            self.add(CODE, number, text, field, depth)
        elif field == AUTO and node.seconds == 0.0 and (
                is_integer(node.type) or node.type in (BOOLS, FLOATS, DOUBLES)):
            self.add(NUMBER, number, text, field, depth)
        else:
            self.add(VALUE, number, text, field, depth)
        self.may_repeat |= "=" in name or "." in name
        return 0

    cdef int add(self, How how, int node, bytes name, int field, int depth) except -1:
        cdef Column* column
        cdef bytes text = name + b"="
        self.column = <Column*>reallocate(
            self.column, (self.columns + 1) * sizeof(Column))
        column = self.column + self.columns
        memset(column, 0, sizeof(Column))
        self.columns += 1
        self.held.append(text)
        column.how, column.node, column.depth, column.field = how, node, depth, field
        column.name, column.length = PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text) - 1
        if how == NUMBER and self.keeps:
            column.slot = <int*>reallocate(NULL, sizeof(int))
            column.slot[0] = -1
            column.slots = 1
        return 0

    cdef int forget(self) noexcept nogil:
        """Forget all slots, because the reader has taken names back."""
        cdef int k
        for k in range(self.columns):
            if self.column[k].slot != NULL:
                memset(self.column[k].slot, 255, self.column[k].slots * sizeof(int))
        self.revision = self.reader.revision
        return 0

    # A row

    cdef int put(self, Reader reader, int64_t row) except -1 nogil:
        """Add the features of a row, between `begin` and `complete` of the reader."""
        cdef const Column* column
        cdef const Node* node
        cdef Py_ssize_t first
        cdef int64_t k
        cdef double x
        cdef int i
        if self.revision != reader.revision:
            self.forget()
        reader.repeats = self.may_repeat
        for i in range(self.columns):
            column = self.column + i
            node = self.batch.node + column.node
            first = reader.n
            if column.how == BEGIN:
                self.begun[column.depth] = first
                continue
            if column.how == END:
                reader.record_span(
                    Text(column.name, 0, column.length), self.begun[column.depth])
                continue
            if not self.batch.has(node, row):
                continue
            if column.how == NUMBER:
                k = row + node.base
                if node.type == DOUBLES or node.type == FLOATS:
                    x = float_at(node.type, node.data, k)
                    if isnan(x):
                        continue
                    if not isfinite(x):
                        self.refuse_number(Text(column.name, 0, column.length), x)
                elif node.type == BOOLS:
                    x = (<const uint8_t*>node.data)[k >> 3] >> (k & 7) & 1
                else:
                    k = integer_at(node.type, node.data, k)
                    x = <double><uint64_t>k if node.type == UINT64 else <double>k
                put_number(reader, column.name, column.length, x)
                if column.slot != NULL:
                    keep_slot(&reader.piece[first], column.slot)
            elif column.how == CODE:
                k = code_at(node, row) + (self.batch.node + node.first).base
                if column.slot != NULL and 0 <= k < column.slots and column.slot[k] >= 0:
                    put_number(reader, column.name, column.length, 1.0)
                    keep_slot(&reader.piece[first], column.slot + k)
                else:
                    self.put_value(reader, column, node, row)
                    if column.slot != NULL and reader.n == first + 1 and 0 <= k < column.slots:
                        keep_slot(&reader.piece[first], column.slot + k)
            elif column.how == ITEMS:
                self.put_items(reader, column, node, row)
            elif column.how == ENTRIES:
                self.put_entries(reader, column, node, row)
            else:
                self.put_value(reader, column, node, row)
            if not self.keeps:
                reader.record_span(Text(column.name, 0, column.length), first)
        return 0

    cdef int put_value(
            self, Reader reader, const Column* column, const Node* node, int64_t row
    ) except -1 nogil:
        """Add a value that is not composed of others."""
        cdef Text name = Text(column.name, 0, column.length)
        cdef Scalar scalar
        if node.type == OTHERS or node.type == STRUCTS:
            if node.type == STRUCTS:
                return self.refuse(column.field, name, b"a mapping")
            with gil:
                what = (<str>self.schema.kinds[column.node]).encode()
                self.refuse(column.field, name, what)
        elif self.batch.scalar(node, row, &scalar):
            self.put_scalar(reader, column.field, name, &scalar)
        elif node.type == CODES and self.batch.node[node.first].type >= LISTS:
            self.refuse(column.field, name, b"composed of other values")
        return 0

    cdef int put_scalar(
            self, Reader reader, int field, Text name, Scalar* scalar) except -1 nogil:
        """Add a value that is there."""
        cdef int kind
        if scalar.value.kind == A_TEXT:
            self.check_text(name, scalar)
        if field == AUTO:
            if scalar.seconds:
                self.refuse(field, name, b"a time")
            elif scalar.value.kind == A_TEXT and name.at != NULL:  # of a column, and "=" follows
                put_text(reader, name.at, name.length, scalar.value.text, scalar.value.length)
            elif scalar.value.kind == A_TEXT:
                reader.join(
                    name, b"=", Text(scalar.value.text, 0, scalar.value.length), &name)
                reader.push(name, NULL, TEXT, 1.0)
            else:
                if not isfinite(scalar.value.number):
                    self.refuse_number(name, scalar.value.number)
                reader.push(name, NULL, TEXT, scalar.value.number)
            return 0
        kind = reader.transform[field].kind
        if scalar.seconds:
            if kind != TIME:
                return self.refuse(field, name, b"a time")
            scalar.value.number *= scalar.seconds / reader.transform[field].unit
        elif scalar.is_whole and kind != A_FIELD_OF_NUMBERS and kind != BUCKETS:
            write_digits(scalar, self.digits)
        return reader.put(field, name, &scalar.value)

    cdef int put_items(
            self, Reader reader, const Column* column, const Node* node, int64_t row
    ) except -1 nogil:
        """Add the items of a list."""
        cdef Text name = Text(column.name, 0, column.length)
        cdef const Node* items = self.batch.node + node.first
        cdef int64_t i, start, stop
        cdef Py_ssize_t first = reader.n
        cdef Scalar scalar
        cdef bint declared = column.field != AUTO
        items_of(node, row, &start, &stop)
        if declared and reader.transform[column.field].kind != LIST:
            return self.refuse(column.field, name, b"a list")
        for i in range(start, stop):
            if not self.batch.has(items, i):
                continue
            if items.type >= LISTS:
                return self.refuse(column.field, name, b"a list of composed values")
            if not self.batch.scalar(items, i, &scalar):
                continue
            if scalar.value.kind == A_TEXT:
                self.check_text(name, &scalar)
            if scalar.seconds or (not declared and scalar.value.kind != A_TEXT):
                self.refuse(column.field, name, b"a list with numbers or times")
            elif declared:
                if scalar.is_whole:
                    write_digits(&scalar, self.digits)
                reader.put_category(reader.transform + column.field, name, &scalar.value)
            else:
                self.put_scalar(reader, AUTO, name, &scalar)
        if declared:
            return reader.end_list(column.field, name, first)
        return reader.merge_repeated(first, False)

    cdef int put_entries(
            self, Reader reader, const Column* column, const Node* node, int64_t row
    ) except -1 nogil:
        """Add the entries of a map, whose keys are fields."""
        cdef Text name = Text(column.name, 0, column.length), key
        cdef int keys = self.batch.node[node.first].first
        cdef int64_t i, start, stop
        cdef int field
        cdef Py_ssize_t first
        cdef Scalar scalar
        if column.field >= 0 and not reader.nests(column.field):
            return self.refuse(column.field, name, b"a mapping")
        items_of(node, row, &start, &stop)
        for i in range(start, stop):
            if not self.batch.scalar(self.batch.node + keys, i, &scalar):
                continue
            if scalar.value.kind != A_TEXT:
                return self.refuse(column.field, name, b"a map whose keys are no text")
            self.check_text(name, &scalar)
            reader.join(name, b".", Text(scalar.value.text, 0, scalar.value.length), &key)
            field = reader.field_of(reader.bytes_at(&key), key.length, column.inner)
            if field == IGNORED or not self.batch.has(self.batch.node + keys + 1, i):
                continue
            first = reader.n
            if self.batch.node[keys + 1].type >= LISTS:
                return self.refuse(field, key, b"composed of other values")
            if self.batch.scalar(self.batch.node + keys + 1, i, &scalar):
                self.put_scalar(reader, field, key, &scalar)
            if not self.keeps:
                reader.record_span(key, first)
        return 0

    # Invalid values

    cdef int check_text(self, Text name, const Scalar* scalar) except -1 nogil:
        """Raise InvalidEventError for text that is not UTF-8."""
        if invalid_utf8_at(scalar.value.text, scalar.value.length) >= 0:
            with gil:
                raise field_error(self.reader.decode(name), "is text that is not UTF-8")
        return 0

    cdef int refuse(self, int field, Text name, const char* what) except -1 with gil:
        """Raise InvalidEventError for a value that the field cannot have, unless it may miss."""
        cdef Reader reader = self.reader
        if field >= 0:
            reader.invalid(reader.transform + field, name, (
                f"is {what.decode()}, which a {reader.kind_of(field)} cannot hold: declare it as"
                " another kind, or as ignore"))
            return 0
        raise field_error(
            reader.decode(name),
            f"is {what.decode()}: declare what it is, or that it is ignored (features.fields,"
            " --field)")

    cdef int refuse_number(self, Text name, double x) except -1 with gil:
        """Raise InvalidEventError for an infinite number."""
        raise field_error(
            self.reader.decode(name),
            f"is {x}: values must be finite; a missing one is null or NaN")


cdef inline int keep_slot(Piece* piece, int* slot) noexcept nogil:
    """Look this piece up by the slot that is kept, or keep the one that is found."""
    piece.kind = SLOT
    piece.hash = <uint64_t><size_t>slot
    return 0
