"""Avro: a record's schema is compiled into a plan once, and its bytes are walked through natively.

The encoding is that of the Avro specification, "Binary Encoding". Values become what they become in
JSON: enums are text, dates and timestamps are numbers of their unit, decimals are numbers. `bytes`
and `fixed` are no features.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.math cimport ldexp
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from streamlearn.errors import InvalidEventError

from streamlearn.core.numbers cimport invalid_utf8_at
from streamlearn.features.scalars cimport Scalar, clear
from streamlearn.features.transforms cimport A_BOOL, A_TEXT
from streamlearn.stream.formats.binary cimport DEEPEST, BinaryDecoder


cdef enum NodeKind:  # as in avro_plan
    NULL_NODE
    BOOL_NODE
    INT_NODE
    FLOAT_NODE
    DOUBLE_NODE
    TEXT_NODE
    BYTES_NODE
    FIXED_NODE
    ENUM_NODE
    ARRAY_NODE
    MAP_NODE
    RECORD_NODE
    UNION_NODE
    DECIMAL_BYTES
    DECIMAL_FIXED
    UUID_FIXED

cdef enum:
    MORE_ITEMS = 1000  # a record may have so many items more than bytes: nulls take none
    MOST_EMPTY = 1 << 20  # records in a block beyond its bytes

cdef struct Child:  # a field, a branch of a union, or a symbol
    const char* name  # NULL: it is left out
    int length
    int node
    int key  # the field's key below `parent`, as found last
    int parent
    uint64_t run  # in which this is so

cdef struct Node:
    NodeKind kind
    int first  # of its children
    int count
    int64_t size
    double scale


cdef class AvroPlan:
    """What the bytes of one schema are."""

    cdef Node* node
    cdef Child* child
    cdef list names, defaults

    def __cinit__(self, nodes):
        cdef Py_ssize_t i, total = sum([max(len(one.names), len(one.children)) for one in nodes])
        cdef int k = 0
        cdef bytes name
        self.names = []
        self.defaults = [one.defaults for one in nodes]
        self.node = <Node*>PyMem_Calloc(len(nodes), sizeof(Node))
        self.child = <Child*>PyMem_Calloc(total + 1, sizeof(Child))
        if self.node == NULL or self.child == NULL:
            raise MemoryError
        for i, one in enumerate(nodes):
            count = max(len(one.names), len(one.children))
            self.node[i] = Node(<NodeKind><int>one.kind, k, count, one.size, one.scale)
            for j in range(count):
                self.child[k].parent = -2
                if j < len(one.children):
                    self.child[k].node = one.children[j]
                if j < len(one.names) and one.names[j]:
                    name = one.names[j].encode()
                    self.names.append(name)
                    self.child[k].name = PyBytes_AS_STRING(name)
                    self.child[k].length = <int>PyBytes_GET_SIZE(name)
                k += 1

    def __dealloc__(self):
        PyMem_Free(self.node)
        PyMem_Free(self.child)


@cython.final
cdef class AvroDecoder(BinaryDecoder):
    """Avro records.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events, Fields
    >>> from streamlearn.stream.formats.schemas import AvroSchema
    >>> schema = {"type": "record", "name": "Click", "fields": [
    ...     {"name": "ad", "type": "string"}, {"name": "clicked", "type": "boolean"}]}
    >>> decoder = AvroDecoder(AvroSchema(schema), Names(), Fields(label="clicked"))
    >>> events = Events()
    >>> decoder.decode([b"\\x0ashoes\\x01", b"\\x0asho"], events)
    >>> decoder.reader.names(), events.labels
    (['ad=shoes'], array([1.]))
    >>> events.invalid[0].reason
    "field 'ad' is longer than the record, at byte 1"
    """

    cdef AvroPlan plan
    cdef int64_t items  # of all arrays and maps that the record may still have
    cdef char[36] uuid
    cdef bint splitting  # only lengths matter: values are checked when records are read

    cdef int use_plan(self, object plan) except -1:
        self.plan = plan
        return 0

    def split(self, bytes block, Py_ssize_t count):
        """Return the records in a block of so many, which have the only schema."""
        cdef const char* start
        if not 0 <= count <= len(block) + MOST_EMPTY:
            raise InvalidEventError(f"{len(block)} bytes cannot hold {count} records")
        self.use_plan(self.framing.schemas.plan(b""))
        self.plan_used = None
        self.first = self.p = PyBytes_AS_STRING(block)
        self.end = self.p + PyBytes_GET_SIZE(block)
        self.items = self.end - self.p + MORE_ITEMS * count
        found = []
        self.splitting = True
        try:
            for _ in range(count):
                start = self.p
                self.skip(0, -1, 0)
                found.append(start[:self.p - start])
        finally:
            self.splitting = False
        if self.p != self.end:
            raise self.problem("ends before its block", -1)
        return found

    cdef int walk(self, int parent) except -1:
        self.items = self.end - self.first + MORE_ITEMS
        self.record_fields(0, parent, 0)
        if self.p != self.end:
            raise self.problem("ends before its last byte: it has another schema", -1)
        return 0

    cdef int record_fields(self, int number, int parent, int depth) except -1:
        cdef Node* node = self.plan.node + number
        cdef Child* child = self.plan.child + node.first
        cdef int _i
        if depth == DEEPEST:
            raise self.problem(f"is nested more than {DEEPEST} levels deep", parent)
        for _i in range(node.count):
            if child.name == NULL:
                self.skip(child.node, parent, depth + 1)
            else:
                if child.parent != parent or child.run != self.run:
                    child.key = self.find(parent, child.name, child.length)
                    child.parent = parent
                    child.run = self.run
                self.field(child.node, child.key, depth)
            child += 1
        if self.plan.defaults[number]:
            self.take_defaults(self.plan.defaults[number], parent)
        return 0

    cdef int field(self, int node, int key, int depth) except -1:
        cdef Py_ssize_t piece = self.reader.n
        self.begin_field(key)
        self.value(node, key, depth)
        return self.end_field(key, piece)

    cdef int value(self, int number, int key, int depth) except -1:
        cdef Node* node = self.plan.node + number
        cdef Scalar scalar
        while node.kind == UNION_NODE:
            node = self.plan.node + self.branch(node, key)
        if node.kind == NULL_NODE:
            return 0
        if node.kind == RECORD_NODE:
            if not self.is_skipped(key) and self.enters(key):
                return self.record_fields(<int>(node - self.plan.node), key, depth + 1)
        elif node.kind == MAP_NODE:
            if not self.is_skipped(key) and self.enters(key):
                return self.map(node, key, depth + 1)
        elif node.kind == ARRAY_NODE:
            if not self.is_skipped(key) and self.takes_list(key):
                return self.array(node, key, depth + 1)
        elif node.kind == BYTES_NODE or node.kind == FIXED_NODE:
            self.refuse_bytes(key)
        else:
            self.scalar(node, key, &scalar)
            return self.take(key, &scalar)
        return self.skip(<int>(node - self.plan.node), key, depth)

    cdef int branch(self, Node* node, int key) except -1:
        """Return the node of the branch of a union that was written."""
        cdef int64_t k = self.long(key)
        if not 0 <= k < node.count:
            raise self.problem(f"has branch {k} of a union of {node.count}", key)
        return self.plan.child[node.first + k].node

    cdef int map(self, Node* node, int parent, int depth) except -1:
        """Read a map, whose keys are fields."""
        cdef int value = self.plan.child[node.first].node
        cdef int64_t left
        cdef const char* name
        cdef Py_ssize_t length
        if depth >= DEEPEST:
            raise self.problem(f"is nested more than {DEEPEST} levels deep", parent)
        while True:
            left = self.block(parent)
            if left == 0:
                return 0
            while left:
                name = self.text(parent, &length)
                self.field(value, self.find(parent, name, length), depth)
                left -= 1

    cdef int array(self, Node* node, int key, int depth) except -1:
        """Read a list of texts, or of what the field's declaration allows."""
        cdef int kind = self.plan.child[node.first].node
        cdef Py_ssize_t piece = self.reader.n
        cdef Node* item
        cdef Scalar scalar
        cdef int64_t left
        while True:
            left = self.block(key)
            if left == 0:
                return self.end_items(key, piece)
            while left:
                left -= 1
                item = self.plan.node + kind
                while item.kind == UNION_NODE:
                    item = self.plan.node + self.branch(item, key)
                if item.kind == NULL_NODE:
                    continue
                if item.kind == BYTES_NODE or item.kind == FIXED_NODE:
                    self.refuse_bytes(key)
                    self.skip(<int>(item - self.plan.node), key, depth)
                elif ARRAY_NODE <= item.kind <= RECORD_NODE:
                    self.refuse_kind(key, "a list of lists or records")
                    self.skip(<int>(item - self.plan.node), key, depth)
                else:
                    self.scalar(item, key, &scalar)
                    self.take_item(key, &scalar)

    cdef int scalar(self, Node* node, int key, Scalar* to) except -1:
        """Read a value that is not composed of others."""
        cdef float small
        cdef Child* symbol
        cdef int64_t k
        clear(to)
        if node.kind == INT_NODE:
            to.whole = self.long(key)
            to.is_whole = True
            to.value.number = <double>to.whole
            to.seconds = node.scale
        elif node.kind == TEXT_NODE:
            to.value.kind = A_TEXT
            to.value.text = self.text(key, &to.value.length)
        elif node.kind == DOUBLE_NODE:
            memcpy(&to.value.number, self.take_bytes(8, key), 8)
        elif node.kind == FLOAT_NODE:
            memcpy(&small, self.take_bytes(4, key), 4)
            to.value.number = small
        elif node.kind == BOOL_NODE:
            k = <unsigned char>self.take_bytes(1, key)[0]
            if k > 1 and not self.splitting:
                raise self.problem(f"is byte {k}, which is no bool", key)
            to.value.kind = A_BOOL
            to.value.number = <double>k
        elif node.kind == ENUM_NODE:
            k = self.long(key)
            if self.splitting:
                return 0
            if not 0 <= k < node.count:
                raise self.problem(f"has symbol {k} of an enum of {node.count}", key)
            symbol = self.plan.child + node.first + k
            to.value.kind = A_TEXT
            to.value.text = symbol.name
            to.value.length = symbol.length
        elif node.kind == UUID_FIXED:
            write_uuid(self.take_bytes(16, key), self.uuid)
            to.value.kind = A_TEXT
            to.value.text = self.uuid
            to.value.length = 36
        else:
            k = node.size if node.kind == DECIMAL_FIXED else self.length(key)
            to.value.number = node.scale * whole_of(self.take_bytes(k, key), k)
        return 0

    cdef int skip(self, int number, int key, int depth) except -1:
        """Skip a value, which must still be valid."""
        cdef Node* node = self.plan.node + number
        cdef Scalar scalar
        cdef int64_t left
        cdef Py_ssize_t length
        cdef int i
        if depth >= DEEPEST:
            raise self.problem(f"is nested more than {DEEPEST} levels deep", key)
        while node.kind == UNION_NODE:
            node = self.plan.node + self.branch(node, key)
        if node.kind == RECORD_NODE:
            for i in range(node.first, node.first + node.count):
                self.skip(self.plan.child[i].node, key, depth + 1)
        elif node.kind == ARRAY_NODE or node.kind == MAP_NODE:
            while True:
                left = self.block(key)
                if left == 0:
                    return 0
                while left:
                    if node.kind == MAP_NODE:
                        self.text(key, &length)
                    self.skip(self.plan.child[node.first].node, key, depth + 1)
                    left -= 1
        elif node.kind == FIXED_NODE:
            self.take_bytes(node.size, key)
        elif node.kind == BYTES_NODE:
            self.take_bytes(self.length(key), key)
        elif node.kind != NULL_NODE:
            self.scalar(node, key, &scalar)
        return 0

    cdef int take_defaults(self, list defaults, int parent) except -1:
        """Add the fields that only the reader's schema has."""
        for name, value in defaults:
            self.take_object(name.encode(), value, parent)
        return 0

    # Bytes

    cdef int64_t long(self, int key) except? -1:
        """Read an int or long: zigzag, seven bits a byte."""
        cdef uint64_t x = 0
        cdef int shift = 0
        cdef uint8_t byte
        cdef const char* p = self.p
        while True:
            if p >= self.end:
                raise self.problem("is longer than the record", key)
            byte = <uint8_t>p[0]
            p += 1
            if shift == 63 and byte > 1:
                raise self.problem("is an integer of more than 64 bits", key)
            x |= <uint64_t>(byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        self.p = p
        return <int64_t>(x >> 1) ^ -<int64_t>(x & 1)

    cdef int64_t length(self, int key) except? -1:
        cdef int64_t n = self.long(key)
        if n < 0:
            raise self.problem(f"has a length of {n}", key)
        return n

    cdef int64_t block(self, int key) except? -1:
        """Return how many items the next block of an array or map has; 0: it was the last."""
        cdef int64_t n = self.long(key)
        if n < 0:
            self.length(key)  # of the block in bytes
            n = self.items + 1 if n == INT64_MIN else -n
        if n > self.items:
            raise self.problem(f"has {n} items, more than the record can hold", key)
        self.items -= n
        return n

    cdef const char* take_bytes(self, int64_t n, int key) except NULL:
        cdef const char* at = self.p
        if n > self.end - at:
            raise self.problem("is longer than the record", key)
        self.p = at + n
        return at

    cdef const char* text(self, int key, Py_ssize_t* length) except NULL:
        cdef int64_t n = self.length(key)
        cdef const char* at = self.take_bytes(n, key)
        cdef Py_ssize_t bad = -1 if self.splitting else invalid_utf8_at(at, n)
        if bad >= 0:
            self.p = at + bad
            raise self.problem("is not UTF-8", key)
        length[0] = n
        return at


cdef int write_uuid(const char* p, char* to) noexcept:
    cdef int i
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            to[0] = b"-"
            to += 1
        to[0] = b"0123456789abcdef"[<uint8_t>p[i] >> 4]
        to[1] = b"0123456789abcdef"[<uint8_t>p[i] & 15]
        to += 2
    return 0


cdef double whole_of(const char* p, int64_t n) noexcept:
    """Return an integer in two's complement, the most significant byte first."""
    cdef double x = 0.0
    cdef int64_t i
    for i in range(n):
        x = 256.0 * x + <uint8_t>p[i]
    return x - ldexp(1.0, 8 * <int>n) if n and <uint8_t>p[0] >= 128 else x
