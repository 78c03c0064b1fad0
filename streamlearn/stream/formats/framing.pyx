"""Which schema a record has: its id is in front of the record, or in one of its headers.

In front are a zero byte and the four bytes of a number, or a one and a GUID, then for Protobuf the
path of the message in its file. A header `__value_schema_id` has the same bytes.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp

from streamlearn.errors import InvalidEventError

from streamlearn.features.text cimport hash_text

cdef enum:
    MOST_USES = 10_000  # schemas that are kept
    RECENT = 4096  # of them found without a Python object
    MOST_INDEXES = 64
    LONGEST = 10  # bytes of an integer


cdef class SchemaUse:
    """A schema, and how many records had it."""

    def __init__(self, bytes header, schema_id, plan):
        self.header = header
        self.id = schema_id
        self.plan = plan

    cdef bint has(self, const char* header, Py_ssize_t length) noexcept:
        """Whether this is the schema of a header."""
        return PyBytes_GET_SIZE(self.header) == length and memcmp(
            PyBytes_AS_STRING(self.header), header, length) == 0


cdef class Framing:
    """Finds the schemas of records, and counts them.

    `schemas` has the schema of a record by its header, `schemas.plan(header)`. Without a registry
    the header is empty.
    """

    def __init__(self, schemas):
        self.schemas = schemas
        self.framed = schemas.framed
        self.header_name = schemas.header_name
        self.uses = {}
        self.recent = [None] * RECENT
        self.touched = []

    cdef Py_ssize_t read(
            self, const char* first, const char* end, object headers, bint has_indexes) except -1:
        """Use the schema of a record; return the bytes in front of it."""
        cdef Py_ssize_t length = 0
        cdef bytes header
        if headers is not None and self.header_name is not None:
            header = self.in_headers(headers)
            if header is not None:
                self.switch(PyBytes_AS_STRING(header), PyBytes_GET_SIZE(header))
                return 0
        if self.framed:
            length = framing_length(first, end, has_indexes)
        self.switch(first, length)
        return length

    cdef bytes in_headers(self, object headers):
        """Return the last header that names a schema, None if there is none."""
        cdef bytes found = None
        for name, value in headers:
            if name == self.header_name and value is not None:
                found = value
        return found

    cdef int switch(self, const char* header, Py_ssize_t length) except -1:
        """Use the schema of a header for one record."""
        cdef SchemaUse use = self.use
        cdef Py_ssize_t place
        if use is None or not use.has(header, length):
            place = hash_text(header, length, 0) & (RECENT - 1)
            use = self.recent[place]
            if use is None or not use.has(header, length):
                use = self.recent[place] = self.find(header[:length])
            if not use.touched:
                use.touched = True
                self.touched.append(use)
            self.use = use
        use.records += 1
        return 0

    cdef SchemaUse find(self, bytes header):
        cdef SchemaUse use = self.uses.get(header)
        if use is None:
            if self.framed:
                check_header(header)
            use = SchemaUse(header, self.schemas.id_of(header), self.schemas.plan(header))
            if len(self.uses) == MOST_USES:
                self.uses.clear()
            self.uses[header] = use
        return use

    def take_counts(self):
        """Return the number of records by the id of their schema, since the last call."""
        cdef SchemaUse use
        found = {}
        for use in self.touched:
            if use.id is not None and use.records:
                found[use.id] = found.get(use.id, 0) + use.records
            use.records = 0
            use.touched = use is self.use
        self.touched = [] if self.use is None else [self.use]
        return found


cdef Py_ssize_t framing_length(const char* first, const char* end, bint has_indexes) except -1:
    """Return the length of the framing in front of a record."""
    cdef Py_ssize_t n = end - first, length = 0
    if n >= 5 and first[0] == 0:
        length = 5
    elif n >= 17 and first[0] == 1:
        length = 17
    if length == 0:
        raise InvalidEventError(
            "the record does not begin with the id of its schema: set format.schema, or produce it"
            " with a schema registry's serializer")
    return length + indexes_length(first + length, end) if has_indexes else length


cdef Py_ssize_t indexes_length(const char* first, const char* end) except -1:
    """Return the length of a path of message indexes: their number, then each, as varints."""
    cdef const char* p = first
    cdef unsigned long long number = 0, left = 1
    cdef int shift = 0
    cdef bint counted = False
    while left:
        if p == end or shift == 7 * LONGEST:
            raise InvalidEventError("the record's path of message indexes is damaged")
        number |= <unsigned long long>(<unsigned char>p[0] & 127) << shift
        shift += 7
        if <unsigned char>p[0] < 128:
            left -= 1
            if not counted:
                counted = True
                left = number >> 1  # zigzag; 0 is the path [0]
                if left > MOST_INDEXES:
                    raise InvalidEventError(f"the record has a path of {left} message indexes")
            number = 0
            shift = 0
        p += 1
    return p - first


cdef int check_header(bytes header) except -1:
    """Raise InvalidEventError for a header that is no id."""
    cdef const char* first = PyBytes_AS_STRING(header)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(header)
    if not ((n >= 5 and first[0] == 0) or (n >= 17 and first[0] == 1)):
        raise InvalidEventError("the header with the id of the schema is damaged")
    return 0
