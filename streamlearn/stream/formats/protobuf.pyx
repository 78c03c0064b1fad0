"""Protobuf: a message's descriptor is compiled into a plan once; its bytes are read natively.

As its parsers do, the last of several values of a field counts, parts of a message are merged, and
unknown fields are skipped. Values become what they become in JSON: enums are text by their names,
timestamps are seconds. A field of proto3 that is not written because it is zero is the label, the
weight or a declared field as zero; a number that is no such field need not be there.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from streamlearn.core.varints import varint as encoded

from streamlearn.core.memory cimport reallocate
from streamlearn.core.numbers cimport invalid_utf8_at
from streamlearn.features.scalars cimport Scalar, clear, write_digits
from streamlearn.features.transforms cimport A_BOOL, A_TEXT
from streamlearn.stream.formats.binary cimport DEEPEST, BinaryDecoder
from streamlearn.stream.formats.keys cimport DECLARED, FEATURE, ID, LABEL, WEIGHT, Key

cdef enum MemberKind:  # as in protobuf_plan
    INT32_KIND
    INT64_KIND
    UINT32_KIND
    UINT64_KIND
    SINT32_KIND
    SINT64_KIND
    FIXED32_KIND
    FIXED64_KIND
    SFIXED32_KIND
    SFIXED64_KIND
    FLOAT_KIND
    DOUBLE_KIND
    BOOL_KIND
    STRING_KIND
    BYTES_KIND
    ENUM_KIND
    MESSAGE_KIND
    GROUP_KIND  # the same between two tags

cdef enum MessageKind:
    ORDINARY
    TIMESTAMP
    DURATION
    WRAPPER
    STRUCT
    VALUE
    LIST_VALUE

cdef enum Wire:
    VARINT
    EIGHT
    BYTES
    GROUP
    END_GROUP
    FOUR

cdef int[18] WIRES = [
    VARINT, VARINT, VARINT, VARINT, VARINT, VARINT, FOUR, EIGHT, FOUR, EIGHT, FOUR, EIGHT,
    VARINT, BYTES, BYTES, VARINT, BYTES, GROUP]

cdef struct Symbol:
    int64_t number
    const char* text
    Py_ssize_t length

cdef struct Member:
    uint64_t number
    const char* name
    Py_ssize_t length
    MemberKind kind
    int message
    bint repeated, is_map, implicit
    int oneof
    int first_symbol, symbols
    int key, parent  # the key below `parent`, as found last
    uint64_t run  # in which this is so

cdef struct Message:
    MessageKind kind
    int first, count  # of its members
    bint dense  # member i has the number i + 1

cdef struct Part:  # what was found of a member
    const char* first  # the tag of its first value
    const char* at  # its last value
    const char* end  # where that ends
    int count

cdef struct Entry:  # of a map
    int key
    const char* at
    const char* end


@cython.final
cdef class ProtobufPlan:
    """What the bytes of one message are."""

    cdef Message* message
    cdef Member* member
    cdef Symbol* symbol
    cdef list names

    def __cinit__(self, messages):
        cdef int k = 0, s = 0
        cdef Py_ssize_t i
        cdef Member* to
        members = [one for message in messages for one in message.members]
        self.names = []
        self.message = <Message*>PyMem_Calloc(len(messages), sizeof(Message))
        self.member = <Member*>PyMem_Calloc(len(members) + 1, sizeof(Member))
        self.symbol = <Symbol*>PyMem_Calloc(
            sum([len(one.symbols) for one in members]) + 1, sizeof(Symbol))
        if self.message == NULL or self.member == NULL or self.symbol == NULL:
            raise MemoryError
        for i, message in enumerate(messages):
            numbers = [one.number for one in message.members]
            self.message[i] = Message(
                <MessageKind><int>message.kind, k, len(numbers),
                numbers == list(range(1, len(numbers) + 1)))
            for one in message.members:
                to = self.member + k
                to.number = one.number
                to.name = self.text(one.name, &to.length)
                to.kind = <MemberKind><int>one.kind
                to.message = one.message
                to.repeated, to.is_map, to.implicit = one.repeated, one.is_map, one.implicit
                to.oneof = one.oneof
                to.first_symbol, to.symbols = s, len(one.symbols)
                to.parent = -2
                for number in sorted(one.symbols):
                    self.symbol[s].number = number
                    self.symbol[s].text = self.text(
                        one.symbols[number], &self.symbol[s].length)
                    s += 1
                k += 1

    cdef const char* text(self, object name, Py_ssize_t* length) except NULL:
        cdef bytes kept = name.encode()
        self.names.append(kept)
        length[0] = PyBytes_GET_SIZE(kept)
        return PyBytes_AS_STRING(kept)

    def __dealloc__(self):
        PyMem_Free(self.message)
        PyMem_Free(self.member)
        PyMem_Free(self.symbol)

    cdef inline Member* find(self, Message* message, uint64_t number) noexcept:
        """Return the member of this number, NULL if it is unknown."""
        cdef int low = message.first, high = message.first + message.count, middle
        if message.dense:  # 0, which is invalid, wraps around
            number -= 1
            return self.member + low + number if number < <uint64_t>message.count else NULL
        while low < high:
            middle = (low + high) // 2
            if self.member[middle].number < number:
                low = middle + 1
            else:
                high = middle
        if low < message.first + message.count and self.member[low].number == number:
            return self.member + low
        return NULL


@cython.final
cdef class ProtobufDecoder(BinaryDecoder):
    """Protobuf records.

    >>> from google.protobuf.duration_pb2 import Duration
    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events, Fields
    >>> from streamlearn.stream.formats.schemas import ProtobufMessage
    >>> schemas = ProtobufMessage(Duration.DESCRIPTOR)
    >>> decoder, events = ProtobufDecoder(schemas, Names(), Fields(label="nanos")), Events()
    >>> decoder.decode([Duration(seconds=3, nanos=7).SerializeToString()], events)
    >>> decoder.reader.names(), events.labels
    (['seconds'], array([7.]))
    """

    cdef ProtobufPlan plan
    cdef Part* part
    cdef Py_ssize_t parts, part_room
    cdef Entry* entry
    cdef Py_ssize_t entries, entry_room
    cdef list merged  # messages in several parts

    def __init__(self, schemas, reader, fields=None, learners=(), grow_always=False):
        BinaryDecoder.__init__(self, schemas, reader, fields, learners, grow_always)
        self.merged = []
        self.has_indexes = True

    def __dealloc__(self):
        free(self.part)
        free(self.entry)

    cdef int use_plan(self, object plan) except -1:
        self.plan = plan
        return 0

    cdef int walk(self, int parent) except -1:
        self.parts = self.entries = 0
        if self.merged:
            self.merged = []
        return self.message(0, parent, self.p, self.end, 0)

    cdef int message(
            self, int number, int key, const char* p, const char* end, int depth) except -1:
        """Read the fields of a message."""
        cdef Message* message = self.plan.message + number
        cdef Member* member = self.plan.member + message.first
        cdef Py_ssize_t base = self.scan(message, p, end, key, depth)
        cdef int i
        for i in range(message.count):
            if self.part[base + i].count:
                self.field(member, self.part[base + i], self.key_of(member, key), depth)
            elif member.implicit:
                self.take_zero(member, key)
            member += 1
        self.parts = base
        return 0

    cdef Py_ssize_t scan(
            self, Message* message, const char* p, const char* end, int key, int depth) except -1:
        """Find the parts of a message's members; return where they are."""
        cdef Py_ssize_t base = self.parts, k
        cdef uint64_t tag
        cdef const char* at
        cdef Member* member
        cdef Part* part
        if depth >= DEEPEST:
            raise self.problem(f"is nested more than {DEEPEST} levels deep", key)
        if base + message.count > self.part_room:
            self.part_room = 2 * (base + message.count) + 64
            self.part = <Part*>reallocate(self.part, self.part_room * sizeof(Part))
        self.parts = base + message.count
        memset(self.part + base, 0, message.count * sizeof(Part))
        while p < end:
            at = p
            p = self.varint(p, end, &tag, key)
            member = self.plan.find(message, tag >> 3)
            if member == NULL:
                p = self.past(p, end, tag, key, depth)
                continue
            if not is_wire(member, tag & 7):
                p = self.past(p, end, tag, key, depth)
                continue
            if member.oneof >= 0:
                for k in range(message.count):
                    if self.plan.member[message.first + k].oneof == member.oneof and (
                            self.plan.member + message.first + k != member):
                        self.part[base + k].count = 0
            part = self.part + base + (member - self.plan.member - message.first)
            if part.count == 0:
                part.first = at
            part.at = p
            p = self.past(p, end, tag, key, depth)
            part.end = p
            part.count += 1
        return base

    cdef inline int key_of(self, Member* member, int parent) except -1:
        if member.parent != parent or member.run != self.run:
            member.key = self.find(parent, member.name, member.length)
            member.parent = parent
            member.run = self.run
        return member.key

    cdef int field(self, Member* member, Part part, int key, int depth) except -1:
        """Add a field that was found."""
        cdef Py_ssize_t piece = self.reader.n
        self.begin_field(key)
        if self.is_skipped(key):
            return 0
        if member.is_map:
            self.map(member, part, key, depth + 1)
        elif member.repeated:
            self.items(member, part, key, depth + 1)
            self.end_items(key, piece)
        else:
            if part.count > 1 and member.kind >= MESSAGE_KIND:
                self.merge(member, &part, key)
            self.value(member, part.at, part.end, key, depth)
        return self.end_field(key, piece)

    cdef int value(
            self, Member* member, const char* at, const char* end, int key, int depth) except -1:
        """Add one value of a member."""
        cdef Scalar scalar
        if member.kind >= MESSAGE_KIND:
            self.find_message(member, &at, &end, key)
            return self.inner(member.message, at, end, key, depth + 1)
        if member.kind == BYTES_KIND:
            return self.refuse_bytes(key)
        self.scalar(member, at, end, key, &scalar)
        if member.implicit and scalar.value.kind == A_TEXT and scalar.value.length == 0:
            return 0  # as if it were not written
        return self.take(key, &scalar)

    cdef int inner(
            self, int number, const char* p, const char* end, int key, int depth) except -1:
        """Add a message inside a field."""
        cdef Message* message = self.plan.message + number
        cdef Member* member = self.plan.member + message.first
        cdef Py_ssize_t base
        cdef Scalar scalar
        cdef int i
        if message.kind == ORDINARY:
            return self.message(number, key, p, end, depth) if self.enters(key) else 0
        if message.kind == STRUCT and not self.enters(key):
            return 0
        base = self.scan(message, p, end, key, depth)
        if message.kind == TIMESTAMP or message.kind == DURATION:
            clear(&scalar)
            self.time(member, base, key, &scalar)
            if message.kind == TIMESTAMP:
                scalar.seconds = 1.0
            self.take(key, &scalar)
        elif message.kind == WRAPPER:
            self.wrapped(member, base, key, &scalar)
            self.take(key, &scalar)
        elif message.kind == STRUCT:
            if self.part[base].count:
                self.map(member, self.part[base], key, depth + 1)
        elif message.kind == LIST_VALUE:
            i = <int>self.reader.n
            if self.part[base].count:
                self.items(member, self.part[base], key, depth + 1)
            self.end_items(key, i)
        else:
            for i in range(1, message.count):  # the first is null
                if self.part[base + i].count:
                    self.value(
                        member + i, self.part[base + i].at, self.part[base + i].end, key, depth)
        self.parts = base
        return 0

    cdef int wrapped(self, Member* member, Py_ssize_t base, int key, Scalar* to) except -1:
        """Read the value of a wrapper, which is not written if it is zero."""
        clear(to)
        set_zero(member, to)
        if self.part[base].count:
            self.scalar(member, self.part[base].at, self.part[base].end, key, to)
        return 0

    cdef int time(self, Member* member, Py_ssize_t base, int key, Scalar* to) except -1:
        """Read the seconds and nanoseconds of a timestamp or duration."""
        cdef double[2] parts
        cdef int i
        for i in range(2):
            parts[i] = 0.0
            if self.part[base + i].count:
                self.scalar(
                    member + i, self.part[base + i].at, self.part[base + i].end, key, to)
                parts[i] = to.value.number
        clear(to)
        to.value.number = parts[0] + 1e-9 * parts[1]
        return 0

    cdef int take_zero(self, Member* member, int parent) except -1:
        """Add a field that was not written because it is zero, where that matters."""
        cdef int number = self.key_of(member, parent)
        cdef Key* key = self.keys.key + number
        cdef Py_ssize_t piece = self.reader.n
        cdef Scalar scalar
        if member.kind == BYTES_KIND or member.kind == STRING_KIND or not (
                key.role == LABEL or key.role == WEIGHT or key.role == ID or key.role == DECLARED
                or (key.role == FEATURE and member.kind == ENUM_KIND)):
            return 0
        self.begin_field(number)
        clear(&scalar)
        set_zero(member, &scalar)
        if member.kind == ENUM_KIND:
            self.set_symbol(member, 0, &scalar)
        self.take(number, &scalar)
        return self.end_field(number, piece)

    cdef int merge(self, Member* member, Part* part, int key) except -1:
        """Put a message together that came in parts: their bytes, one after another."""
        cdef const char* p = part.first
        cdef const char* at
        cdef const char* inner_end
        cdef const char* end = part.end
        cdef uint64_t tag
        cdef bytes one
        found = []
        while p < end:
            p = self.varint(p, end, &tag, key)
            at = p
            p = inner_end = self.past(p, end, tag, key, 0)
            if tag >> 3 == member.number and is_wire(member, tag & 7):
                self.find_message(member, &at, &inner_end, key)
                found.append(at[:inner_end - at])
        if member.kind == GROUP_KIND:
            one = b"".join([*found, encoded(member.number << 3 | END_GROUP)])
        else:
            one = b"".join([encoded(sum(map(len, found))), *found])
        self.merged.append(one)
        part.at = PyBytes_AS_STRING(one)
        part.end = part.at + PyBytes_GET_SIZE(one)
        return 0

    cdef int map(self, Member* member, Part part, int parent, int depth) except -1:
        """Read a map, whose keys are fields; the last entry of a key counts."""
        cdef Message* message = self.plan.message + member.message
        cdef Member* of_key = self.plan.member + message.first
        cdef Member* of_value = of_key + 1
        cdef const char* p = part.first
        cdef const char* at
        cdef Py_ssize_t base = self.entries, parts, k, piece
        cdef uint64_t tag
        cdef int number
        cdef Scalar scalar
        if not self.enters(parent):
            return 0
        while p < part.end:
            p = self.varint(p, part.end, &tag, parent)
            at = p
            p = self.past(p, part.end, tag, parent, depth)
            if tag >> 3 != member.number or tag & 7 != BYTES:
                continue
            parts = self.scan(message, self.content(&at, p, parent), p, parent, depth)
            clear(&scalar)
            set_zero(of_key, &scalar)
            if self.part[parts].count:
                self.scalar(
                    of_key, self.part[parts].at, self.part[parts].end, parent, &scalar)
            if scalar.is_whole:
                write_digits(&scalar, self.digits)
            if scalar.value.kind == A_BOOL:
                scalar.value.text = b"true" if scalar.value.number else b"false"
                scalar.value.length = 4 if scalar.value.number else 5
            number = self.find(parent, scalar.value.text, scalar.value.length)
            k = self.entries
            if self.keys.key[number].seen == self.records:
                k = base
                while k < self.entries and self.entry[k].key != number:
                    k += 1
            if k == self.entries:
                self.begin_field(number)
                if k == self.entry_room:
                    self.entry_room = 2 * k + 16
                    self.entry = <Entry*>reallocate(self.entry, self.entry_room * sizeof(Entry))
                self.entries += 1
            self.entry[k] = Entry(number, NULL, NULL)
            if self.part[parts + 1].count:
                self.entry[k] = Entry(number, self.part[parts + 1].at, self.part[parts + 1].end)
            self.parts = parts
        for k in range(base, self.entries):
            number = self.entry[k].key
            piece = self.reader.n
            if self.entry[k].at != NULL:
                self.value(of_value, self.entry[k].at, self.entry[k].end, number, depth)
            elif of_value.kind < MESSAGE_KIND and of_value.kind != BYTES_KIND:
                clear(&scalar)
                set_zero(of_value, &scalar)
                if of_value.kind == ENUM_KIND:
                    self.set_symbol(of_value, 0, &scalar)
                self.take(number, &scalar)
            self.end_field(number, piece)
        self.entries = base
        return 0

    cdef int items(self, Member* member, Part part, int key, int depth) except -1:
        """Read the values of a repeated field."""
        cdef const char* p = part.first
        cdef const char* at
        cdef uint64_t tag
        while p < part.end:
            p = self.varint(p, part.end, &tag, key)
            at = p
            p = self.past(p, part.end, tag, key, depth)
            if tag >> 3 != member.number or not is_wire(member, tag & 7):
                continue
            if tag & 7 == BYTES and WIRES[<int>member.kind] != BYTES:
                at = self.content(&at, p, key)
                while at < p:  # packed
                    at = self.item(member, at, p, key, depth)
            else:
                self.item(member, at, p, key, depth)
        return 0

    cdef const char* item(
            self, Member* member, const char* at, const char* end, int key, int depth
    ) except NULL:
        """Add one item of a list; return where it ends."""
        cdef Message* message
        cdef Scalar scalar
        cdef Py_ssize_t base
        cdef int i
        if member.kind == BYTES_KIND:
            self.refuse_bytes(key)
            return end
        if member.kind < MESSAGE_KIND:
            at = self.scalar(member, at, end, key, &scalar)
            self.take_item(key, &scalar)
            return at
        message = self.plan.message + member.message
        if message.kind == VALUE or message.kind == WRAPPER:
            self.find_message(member, &at, &end, key)
            base = self.scan(message, at, end, key, depth)
            if message.kind == WRAPPER:
                self.wrapped(self.plan.member + message.first, base, key, &scalar)
                self.take_item(key, &scalar)
            else:
                for i in range(1, message.count):  # the first is null
                    if self.part[base + i].count:
                        self.item(
                            self.plan.member + message.first + i, self.part[base + i].at,
                            self.part[base + i].end, key, depth + 1)
            self.parts = base
        else:
            self.refuse_kind(key, "a list of lists or records")
        return end

    # Values

    cdef const char* scalar(
            self, Member* member, const char* p, const char* end, int key, Scalar* to
    ) except NULL:
        """Read a value that is not composed of others; return where it ends."""
        cdef uint64_t x = 0
        cdef uint32_t small = 0
        cdef float single
        cdef Py_ssize_t bad
        cdef const char* at
        clear(to)
        if member.kind == STRING_KIND:
            at = self.content(&p, end, key)
            bad = invalid_utf8_at(at, end - at)
            if bad >= 0:
                self.p = at + bad
                raise self.problem("is not UTF-8", key)
            to.value.kind = A_TEXT
            to.value.text = at
            to.value.length = end - at
            return end
        if WIRES[<int>member.kind] == VARINT:
            p = self.varint(p, end, &x, key)
        elif WIRES[<int>member.kind] == EIGHT:
            p = self.ahead(p, end, 8, key)
            memcpy(&x, p - 8, 8)
        else:
            p = self.ahead(p, end, 4, key)
            memcpy(&small, p - 4, 4)
            x = small
        if member.kind == DOUBLE_KIND:
            memcpy(&to.value.number, &x, 8)
        elif member.kind == FLOAT_KIND:
            memcpy(&single, &small, 4)
            to.value.number = single
        elif member.kind == BOOL_KIND:
            to.value.kind = A_BOOL
            to.value.number = x != 0
        elif member.kind == ENUM_KIND:
            self.set_symbol(member, <int32_t>x, to)
        else:
            set_whole(member.kind, x, to)
        return p

    cdef int set_symbol(self, Member* member, int64_t number, Scalar* to) except -1:
        """Set the name of an enum's number; the number itself if it has none."""
        cdef Symbol* symbol = self.plan.symbol + member.first_symbol
        cdef int low = 0, high = member.symbols, middle
        while low < high:
            middle = (low + high) // 2
            if symbol[middle].number < number:
                low = middle + 1
            else:
                high = middle
        to.value.kind = A_TEXT
        if low < member.symbols and symbol[low].number == number:
            to.value.text = symbol[low].text
            to.value.length = symbol[low].length
            return 0
        to.whole = number
        return write_digits(to, self.digits)

    # Bytes

    cdef inline const char* varint(
            self, const char* p, const char* end, uint64_t* to, int key) except NULL:
        if p < end and <uint8_t>p[0] < 128:
            to[0] = <uint8_t>p[0]
            return p + 1
        return self.long_varint(p, end, to, key)

    cdef const char* long_varint(
            self, const char* p, const char* end, uint64_t* to, int key) except NULL:
        cdef uint64_t x = 0
        cdef int shift = 0
        cdef uint8_t byte
        while True:
            if p >= end:
                self.p = p
                raise self.problem("is longer than the record", key)
            byte = <uint8_t>p[0]
            p += 1
            if shift == 63 and byte > 1:
                self.p = p
                raise self.problem("has an integer of more than 64 bits", key)
            x |= <uint64_t>(byte & 127) << shift
            if byte < 128:
                to[0] = x
                return p
            shift += 7

    cdef inline const char* ahead(
            self, const char* p, const char* end, uint64_t n, int key) except NULL:
        """Return where n bytes end."""
        if n > <uint64_t>(end - p):
            self.p = p
            raise self.problem("is longer than the record", key)
        return p + n

    cdef inline const char* content(self, const char** p, const char* end, int key) except NULL:
        """Return where the bytes behind their length begin."""
        cdef uint64_t n
        return self.varint(p[0], end, &n, key)

    cdef int find_message(
            self, Member* member, const char** at, const char** end, int key) except -1:
        """Leave out the length before a message, or the end of its group."""
        cdef const char* p = at[0]
        cdef const char* stop
        cdef uint64_t tag
        if member.kind == MESSAGE_KIND:
            at[0] = self.content(at, end[0], key)
            return 0
        while True:
            stop = p
            p = self.varint(p, end[0], &tag, key)
            if tag & 7 == END_GROUP:
                end[0] = stop
                return 0
            p = self.past(p, end[0], tag, key, 0)

    cdef inline const char* past(
            self, const char* p, const char* end, uint64_t tag, int key, int depth
    ) except NULL:
        """Return where a value ends."""
        cdef uint64_t x
        cdef int wire = tag & 7
        if tag >> 3 == 0 or tag >> 32:
            self.p = p
            raise self.problem(f"has a field with the number {tag >> 3}", key)
        if wire == BYTES:
            p = self.varint(p, end, &x, key)
            return self.ahead(p, end, x, key)
        if wire == EIGHT:
            return self.ahead(p, end, 8, key)
        if wire == VARINT:
            return self.varint(p, end, &x, key)
        if wire == FOUR:
            return self.ahead(p, end, 4, key)
        return self.past_group(p, end, tag, key, depth)

    cdef const char* past_group(
            self, const char* p, const char* end, uint64_t tag, int key, int depth
    ) except NULL:
        cdef uint64_t x
        cdef int wire = tag & 7
        if wire != GROUP or depth >= DEEPEST:
            self.p = p
            raise self.problem(f"has wire type {wire}, which is invalid here", key)
        while True:
            p = self.varint(p, end, &x, key)
            if x & 7 == END_GROUP:
                if x >> 3 != tag >> 3:
                    self.p = p
                    raise self.problem("has groups that overlap", key)
                return p
            p = self.past(p, end, x, key, depth + 1)


cdef bint is_wire(Member* member, int wire) noexcept:
    """Whether a member may be written so; repeated numbers may be packed."""
    return wire == WIRES[<int>member.kind] or (
        wire == BYTES and member.repeated and member.kind != GROUP_KIND)


cdef int set_zero(Member* member, Scalar* to) noexcept:
    """Set the value of a field that is not written."""
    if member.kind == BOOL_KIND:
        to.value.kind = A_BOOL
    elif member.kind == STRING_KIND:
        to.value.kind = A_TEXT
        to.value.text = b""
    elif member.kind != FLOAT_KIND and member.kind != DOUBLE_KIND:
        to.is_whole = True
        to.whole = 0
    return 0


cdef int set_whole(MemberKind kind, uint64_t x, Scalar* to) noexcept:
    """Set an integer of this kind."""
    cdef int64_t whole = <int64_t>x
    if kind == INT32_KIND or kind == SFIXED32_KIND:
        whole = <int32_t>x
    elif kind == UINT32_KIND or kind == FIXED32_KIND:
        whole = <uint32_t>x
    elif kind == SINT32_KIND:
        whole = <int32_t>(<uint32_t>x >> 1) ^ -<int32_t>(x & 1)
    elif kind == SINT64_KIND:
        whole = <int64_t>(x >> 1) ^ -<int64_t>(x & 1)
    to.is_whole = True
    to.whole = whole
    to.is_unsigned = whole < 0 and (kind == UINT64_KIND or kind == FIXED64_KIND)
    to.value.number = <double>x if to.is_unsigned else <double>whole
    return 0
