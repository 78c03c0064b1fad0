"""The base of binary formats: fields with names and typed values, without Python objects.

A subclass walks over the bytes of a record. For each field it finds the key, and hands over its
values: they become what the same values become in JSON.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport isfinite
from libc.stdint cimport uint64_t

from streamlearn.errors import InvalidEventError

from streamlearn.engine.events cimport Events
from streamlearn.features.pieces cimport Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.scalars cimport Scalar, clear, write_digits
from streamlearn.features.transforms cimport A_BOOL, A_TEXT, LIST, Value
from streamlearn.features.transforms cimport TIME as A_TIME
from streamlearn.stream.formats.framing cimport Framing
from streamlearn.stream.formats.keys cimport DECLARED, FEATURE, SKIPPED, TIME, Key, Keys
from streamlearn.stream.formats.typed cimport TypedDecoder
from streamlearn.features.put cimport put_number, put_text

from streamlearn.features.pieces import field_error

cdef uint64_t RUNS = 0  # so far


cdef uint64_t next_run() noexcept:
    """Return a number that no other run of keys has, of this decoder or another."""
    global RUNS
    RUNS += 1
    return RUNS


cdef class BinaryDecoder(TypedDecoder):
    """The base of binary formats.

    `schemas` has the schema of a record by its header: see `Framing`.
    """

    def __init__(self, schemas, reader, fields=None, learners=(), grow_always=False):
        TypedDecoder.__init__(self, reader, fields, learners, grow_always)
        self.framing = Framing(schemas)
        self.reads_headers |= schemas.header_name is not None
        self.keys = Keys(self.fields, self.reader)
        self.run = next_run()
        self.has_groups = len(self.reader.groups) > 0

    cdef int record(self, bytes value, Events events) except -1:
        cdef Reader reader = self.reader
        self.first = self.p = PyBytes_AS_STRING(value)
        self.end = self.p + PyBytes_GET_SIZE(value)
        if self.keys.nearly_full() or self.records == 0xFFFFFFFF:
            self.keys.clear()
            self.records = 0
            self.run = next_run()
        self.records += 1
        self.read_header()
        reader.enter()
        try:
            reader.begin()
            self.entered = self.is_bare or not self.has_root
            self.walk(self.keys.root() if self.has_root and self.is_bare else -1)
            if not self.entered:
                raise InvalidEventError(
                    f"the record has no field {'.'.join(self.fields.root_path)!r} with an event")
            reader.complete()
            self.set_label()
            reader.look_up(self.grows())
        finally:
            reader.leave()
        return self.push(events)

    # Schemas

    cdef int read_header(self) except -1:
        """Use the plan of the record's schema, and go on behind its header."""
        cdef Py_ssize_t length = self.framing.read(
            self.first, self.end, self.headers, self.has_indexes)
        if self.framing.use.plan is not self.plan_used:
            self.use_plan(self.framing.use.plan)
            self.plan_used = self.framing.use.plan
        self.p = self.first + length
        return 0

    cdef int use_plan(self, object plan) except -1:
        raise NotImplementedError

    # Records

    cdef int walk(self, int parent) except -1:
        """Read a record into pieces, as fields inside this one, without looking names up."""
        raise NotImplementedError

    def schema_fields(self, topic):
        """Return the types of a topic's fields by name, as its schema has them."""
        return self.framing.schemas.fields(topic)

    def take_schema_counts(self):
        """Return the number of records by the id of their schema, since the last call."""
        return self.framing.take_counts()

    def field_names(self):
        """Return the known fields of records, with dots for nested ones."""
        cdef Keys keys = self.keys
        cdef int i
        return [
            keys.key[i].name[:keys.key[i].name_length].decode("utf-8", "replace")
            for i in range(keys.n)
        ]

    # Fields

    cdef int find(self, int parent, const char* name, Py_ssize_t length) except -1:
        """Return the number of a field's key."""
        cdef int number = self.keys.find(parent, name, length)
        if number < 0:
            raise self.problem("holds a field with a name of more than 4,096 bytes", parent)
        return number

    cdef int record_span(self, int number, Py_ssize_t piece) except -1:
        cdef Key* key = self.keys.key + number
        return self.reader.record_span(Text(key.name, 0, key.name_length), piece)

    cdef bint enters(self, int number) except -1:
        """Whether the fields inside this one have names of their own."""
        cdef Key* key = self.keys.key + number
        if number < 0 or key.role == FEATURE or key.role == SKIPPED:
            self.entered |= number >= 0 and key.is_root
            return True
        if key.role == DECLARED and self.reader.nests(key.field):
            return True
        self.refuse_kind(number, "a mapping")
        return False

    cdef bint takes_list(self, int number) except -1:
        """Whether the field may be a list."""
        cdef Key* key = self.keys.key + number
        if key.role == FEATURE or (
                key.role == DECLARED and self.reader.transform[key.field].kind == LIST):
            return True
        self.refuse_kind(number, "a list")
        return False

    cdef int refuse_kind(self, int number, object kind) except -1:
        """Raise InvalidEventError for values that the field cannot have, unless they may miss."""
        cdef Reader reader = self.reader
        cdef Key* key = self.keys.key + number
        cdef Text name = Text(key.name, 0, key.name_length)
        if key.role == SKIPPED:
            return 0
        if key.role == DECLARED:
            reader.invalid(reader.transform + key.field, name, (
                f"is {kind}, which a {reader.kind_of(key.field)} cannot hold: declare it as"
                " another kind"))
            return 0
        if key.role == FEATURE:
            raise self.problem(f"is {kind}: declare what it is, or that it is ignored", number)
        raise self.problem(
            f"is {kind}: labels, weights, ids and times are numbers or text", number)

    cdef int refuse_bytes(self, int number) except -1:
        """Raise InvalidEventError for bytes, unless the field is undeclared: it is no feature."""
        if self.keys.key[number].role != FEATURE:
            self.refuse_kind(number, "bytes")
        return 0

    # Values

    cdef int take(self, int number, Scalar* scalar) except -1:
        """Add a value, which is not null."""
        cdef Reader reader = self.reader
        cdef Key* key = self.keys.key + number
        cdef Value* value = &scalar.value
        if key.role == FEATURE:
            if value.kind == A_TEXT:
                put_text(reader, key.name, key.name_length, value.text, value.length)
                reader.repeats = True
                return 0
            if not isfinite(value.number):
                raise self.problem(f"is {value.number}: values must be finite", number)
            put_number(reader, key.name, key.name_length, value.number)
            if key.parent >= 0:
                reader.repeats = True  # a top-level field may have the same name
            return 0
        if key.role == SKIPPED:
            return 0
        if key.role != DECLARED:
            self.take_role(key.role, scalar)
        if key.role == DECLARED or (key.role == TIME and self.time_is_feature):
            if scalar.is_whole:
                write_digits(scalar, self.digits)
            if scalar.seconds and reader.transform[key.field].kind == A_TIME:
                value.number *= scalar.seconds / reader.transform[key.field].unit
            return reader.put(key.field, Text(key.name, 0, key.name_length), value)
        return 0

    cdef int take_object(self, bytes name, object value, int parent) except -1:
        """Add a field from a Python object."""
        cdef int number = self.find(parent, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        cdef Py_ssize_t piece = self.reader.n
        cdef Scalar scalar
        if value is None or self.is_skipped(number):
            return 0
        self.begin_field(number)
        if isinstance(value, dict):
            if self.enters(number):
                for key, inner in value.items():
                    self.take_object(key.encode(), inner, number)
        elif isinstance(value, list):
            if self.takes_list(number):
                for item in value:
                    self.set_scalar(item, &scalar)
                    self.take_item(number, &scalar)
                self.end_items(number, piece)
        else:
            self.set_scalar(value, &scalar)
            self.take(number, &scalar)
        return self.end_field(number, piece)

    cdef int set_scalar(self, object value, Scalar* to) except -1:
        clear(to)
        to.is_whole = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, str):
            self.kept_text = value.encode()
            to.value.kind = A_TEXT
            to.value.text = PyBytes_AS_STRING(self.kept_text)
            to.value.length = PyBytes_GET_SIZE(self.kept_text)
            return 0
        if isinstance(value, bool):
            to.value.kind = A_BOOL
        to.value.number = value
        if to.is_whole:
            to.whole = value
        return 0

    # Lists

    cdef int take_item(self, int number, Scalar* scalar) except -1:
        """Add an item of a list."""
        cdef Reader reader = self.reader
        cdef Key* key = self.keys.key + number
        cdef Value* value = &scalar.value
        if key.role == DECLARED and reader.transform[key.field].kind == LIST:
            if scalar.is_whole:
                write_digits(scalar, self.digits)
            return reader.put_category(
                reader.transform + key.field, Text(key.name, 0, key.name_length), value)
        if key.role == FEATURE and value.kind == A_TEXT:
            return self.take(number, scalar)
        if key.role == FEATURE:
            raise self.problem(
                "is a list with numbers: declare it as a list, or as ignored", number)
        return self.refuse_kind(number, "a list")

    cdef int end_items(self, int number, Py_ssize_t piece) except -1:
        """Remove the items of a list that are there twice."""
        cdef Reader reader = self.reader
        cdef Key* key = self.keys.key + number
        if key.role == DECLARED and reader.transform[key.field].kind == LIST:
            return reader.end_list(key.field, Text(key.name, 0, key.name_length), piece)
        return reader.merge_repeated(piece, False)

    # Helpers

    cdef object problem(self, object what, int number):
        """Return an InvalidEventError that names the field and the byte."""
        cdef Key* key
        where = f"{what}, at byte {self.p - self.first}"
        if number < 0:
            return InvalidEventError(f"the record {where}")
        key = self.keys.key + number
        return field_error(key.name[:key.name_length].decode("utf-8", "replace"), where)
