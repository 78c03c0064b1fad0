"""The known fields of records, with their roles and their order.

Producers write the same fields in the same order, so the next key is nearly always the one that
followed last time: a comparison of bytes finds everything about the field.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy

from streamlearn.features.text cimport hash_text
from streamlearn.features.transforms cimport AUTO, IGNORED, TOP

cdef uint64_t SEED = <uint64_t><long long>hash("streamlearn keys")
cdef enum:
    MOST = 1 << 16  # keys
    MOST_BYTES = 1 << 24  # of their texts

cdef dict ROLES = {"label": LABEL, "weight": WEIGHT, "id": ID, "time": TIME}


cdef class Keys:
    """The fields of a stream's records."""

    def __init__(self, fields, reader):
        self.fields = fields
        self.reader = reader
        self.path = tuple([name.encode() for name in fields.root_path])
        self.clear()

    def __dealloc__(self):
        self.free()

    cdef int free(self) noexcept:
        cdef int i
        for i in range(self.n):
            PyMem_Free(<void*>self.key[i].text)
            PyMem_Free(<void*>self.key[i].name)
        PyMem_Free(self.key)
        PyMem_Free(self.cell)
        self.key = NULL
        self.cell = NULL
        self.n = self.room = 0
        return 0

    cdef int clear(self) except -1:
        """Remove all keys."""
        self.free()
        self.first = -1
        self.bytes_used = 0
        self.cells = 256
        self.cell = <int*>PyMem_Calloc(self.cells, sizeof(int))
        if self.cell == NULL:
            raise MemoryError
        return 0

    cdef int root(self) except -2:
        """Return the number of the key that holds the event, -1 if the record is the event."""
        cdef int number = -1
        cdef bytes name
        for name in self.path:
            number = self.find(number, name, len(name))
        return number

    cdef int depth_of(self, int parent, bytes name) except -2:
        """Return how much of the path to the event a key is; 0: it is in it, -1: outside."""
        cdef int above = 0 if parent < 0 else self.key[parent].depth
        if len(self.path) == 0 or (parent >= 0 and (above == 0 or self.key[parent].is_root)):
            return 0
        return above + 1 if above >= 0 and self.path[above] == name else -1

    cdef bint nearly_full(self) noexcept:
        """Whether space is low, so that all keys are removed before the next record."""
        return self.n > 60_000 or self.bytes_used > MOST_BYTES // 2

    cdef int find(self, int parent, const char* text, Py_ssize_t length) except -2:
        """Return the number of a key inside another, added if new; -1 if there is no space."""
        cdef uint64_t hash = hash_text(text, length, SEED + <uint64_t>(parent + 1))
        cdef Py_ssize_t k = hash & (self.cells - 1)
        cdef Key* one
        while self.cell[k]:
            one = self.key + self.cell[k] - 1
            if (one.hash == hash and one.parent == parent and one.length == length
                    and memcmp(one.text, text, length) == 0):
                return self.cell[k] - 1
            k = (k + 1) & (self.cells - 1)
        if self.n >= MOST or self.bytes_used >= MOST_BYTES or length > 4096:
            return -1
        return self.add(parent, text, length, hash)

    cdef int add(
            self, int parent, const char* text, Py_ssize_t length, uint64_t hash) except -2:
        cdef Py_ssize_t k
        cdef Key* new
        cdef bytes name = text[:length]
        cdef int above, depth
        if 2 * (self.n + 1) > self.cells or self.n == self.room:
            self.grow()
        depth = self.depth_of(parent, name)
        above = -1 if parent >= 0 and self.key[parent].is_root else parent
        if above >= 0:
            new = self.key + above
            if new.name_length > 4096:
                return -1
            name = new.name[:new.name_length] + b"." + name
        self.describe(self.key + self.n, above, name, depth)
        new = self.key + self.n
        new.text = <char*>PyMem_Malloc(length + 1)
        new.name = <char*>PyMem_Malloc(len(name) + 1)
        self.n += 1
        self.bytes_used += length + len(name)
        new.length = length
        new.name_length = len(name)
        if new.text == NULL or new.name == NULL:
            raise MemoryError
        memcpy(<void*>new.text, text, length)
        name += b"="
        memcpy(<void*>new.name, <const char*>name, len(name))
        new.hash = hash
        new.parent = parent
        new.next = new.first = -1
        new.seen = 0
        k = hash & (self.cells - 1)
        while self.cell[k]:
            k = (k + 1) & (self.cells - 1)
        self.cell[k] = self.n
        return self.n - 1

    cdef int describe(self, Key* new, int parent, bytes name, int depth) except -1:
        """Set what a key is, by its name and what it is in."""
        dotted = name.decode()
        new.depth = depth
        new.is_root = depth > 0 and depth == len(self.path)
        new.field = IGNORED
        new.has_roles = depth > 0
        role = ROLES.get(self.fields.outer_roles.get(dotted))
        if depth == 0:
            new.has_roles = self.fields.has_nested(dotted)
            role = ROLES.get(self.fields.roles.get(dotted))
        if depth == 0 and dotted not in self.fields.ignored:
            outer = TOP if parent < 0 else self.reader.inside(self.key[parent].field)
            new.field = self.reader.field_of(name, len(name), outer)
            new.has_roles |= self.reader.has_inner(name, len(name))
        new.wanted = new.field == AUTO
        new.role = FEATURE if new.wanted else SKIPPED if new.field == IGNORED else DECLARED
        if role is not None:
            new.role = role
        return 0

    cdef int grow(self) except -1:
        cdef Py_ssize_t cells = 4 * self.cells, k
        cdef int i
        cdef void* to
        if self.n == self.room:
            to = PyMem_Realloc(self.key, (2 * self.room + 32) * sizeof(Key))
            if to == NULL:
                raise MemoryError
            self.key = <Key*>to
            self.room = 2 * self.room + 32
        if 2 * (self.n + 1) <= self.cells:
            return 0
        to = PyMem_Calloc(cells, sizeof(int))
        if to == NULL:
            raise MemoryError
        PyMem_Free(self.cell)
        self.cell = <int*>to
        self.cells = cells
        for i in range(self.n):
            k = self.key[i].hash & (cells - 1)
            while self.cell[k]:
                k = (k + 1) & (cells - 1)
            self.cell[k] = i + 1
        return 0
