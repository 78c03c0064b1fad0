"""Batches of rows in columns: what any library of data frames hands over by the Arrow interface.

`batches` takes what has `__arrow_c_stream__` or `__arrow_c_array__` (Polars, pyarrow, DuckDB, ...),
without a copy. A `ColumnBatch` reads values where they lie; what they mean as fields is for
`ColumnReader`.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal

from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport NAN, isnan, ldexp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from streamlearn.errors import SourceError, TableMismatchError

from streamlearn.columns.interface cimport ArrowArray, ArrowArrayStream, ArrowSchema
from streamlearn.core.memory cimport reallocate
from streamlearn.core.numbers cimport far_decimal
from streamlearn.features.scalars cimport Scalar, clear
from streamlearn.features.transforms cimport A_BOOL, A_TEXT

import numpy as np

cdef enum:
    DEEPEST = 32
    MOST_NODES = 1 << 16
cdef int64_t MISSING_TIME = -(<int64_t>1 << 62) * 2  # NaT in NumPy and pandas

cdef dict TYPES = {
    b"n": NULLS, b"b": BOOLS, b"c": INT8, b"C": UINT8, b"s": INT16, b"S": UINT16, b"i": INT32,
    b"I": UINT32, b"l": INT64, b"L": UINT64, b"e": HALVES, b"f": FLOATS, b"g": DOUBLES,
    b"u": TEXTS, b"U": LARGE_TEXTS, b"vu": TEXT_VIEWS, b"+l": LISTS, b"+L": LARGE_LISTS,
    b"+m": MAPS, b"+s": STRUCTS, b"tdD": INT32, b"tdm": INT64,
}
cdef dict SECONDS = {b"s": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
cdef dict NAMES = {
    b"z": "bytes", b"Z": "bytes", b"w": "bytes", b"v": "views", b"t": "times of day or durations",
    b"+": "a union or an encoding",
}


cdef class ColumnSchema:
    """The columns of batches, in the order of a tree: node 0 has the columns inside it."""

    def __cinit__(self):
        self.names, self.kinds = [], []

    def __dealloc__(self):
        free(self.node)

    def __init__(self):
        self.add(1)
        self.describe(0, b"+s")

    cdef int add(self, int count) except -1:
        """Add nodes; return the first."""
        cdef int first = self.nodes
        if first + count > MOST_NODES:
            raise TableMismatchError(f"the table has more than {MOST_NODES} columns: select some")
        self.node = <Node*>reallocate(self.node, (first + count) * sizeof(Node))
        memset(self.node + first, 0, count * sizeof(Node))
        self.nodes += count
        self.names += [""] * count
        self.kinds += [""] * count
        return first

    cdef int read(self, int number, const ArrowSchema* schema, int depth) except -1:
        """Describe a node, and those inside it."""
        cdef int first, k
        cdef int count = 1 if schema.dictionary != NULL else <int>schema.n_children
        if depth > DEEPEST:
            raise TableMismatchError(f"a column is nested more than {DEEPEST} levels deep")
        self.describe(number, schema.format)
        if schema.name != NULL:
            self.names[number] = (<bytes>schema.name).decode(errors="replace")
        first = self.add(count)
        self.node[number].first, self.node[number].count = first, count
        for k in range(count):
            if self.node[number].type == STRUCTS:
                self.node[first + k].parent = number
            if schema.dictionary != NULL:
                self.read(first, schema.dictionary, depth + 1)
            else:
                self.read(first + k, schema.children[k], depth + 1)
        if schema.dictionary != NULL:
            if not is_integer(self.node[number].type):
                raise TableMismatchError(f"column {self.names[number]!r} has codes without order")
            self.node[number].codes = self.node[number].type
            self.node[number].type = CODES
        return 0

    cdef int describe(self, int number, bytes format) except -1:
        """Set the type of a node by its format string."""
        cdef Node* node = self.node + number
        cdef bytes numbers
        self.kinds[number] = "values"
        if format in TYPES:
            node.type = <Type><int>TYPES[format]
            if format[:2] == b"td":
                node.seconds = 86400.0 if format == b"tdD" else 1e-3
        elif format[:2] == b"ts":
            node.type, node.seconds = INT64, SECONDS[format[2:3]]
        elif format[:2] == b"d:":
            numbers = format[2:]
            given = [int(part) for part in numbers.split(b",")]
            node.type, node.scale = DECIMALS, given[1]
            node.size = (given[2] if len(given) > 2 else 128) // 8
        elif format[:3] == b"+w:":
            node.type, node.size = FIXED_LISTS, int(format[3:])
        else:
            node.type = OTHERS
            self.kinds[number] = NAMES.get(format[:1], "values of an unknown type")
        if node.seconds:
            self.kinds[number] = "times"
        return 0

    cdef bint is_row(self, int number) noexcept:
        """Whether a node has one value per row: a column, or one inside structs."""
        while self.node[number].parent > 0:
            number = self.node[number].parent
        return self.node[0].first <= number < self.node[0].first + self.node[0].count

    @property
    def columns(self):
        """The names of the columns."""
        return self.names[1:1 + self.node[0].count]


cdef class ColumnBatch:
    """Rows in columns.

    >>> import numpy as np
    >>> batch = batch_of(2, [("age", b"l", [None, np.array([31, 44])], None)])
    >>> batch.rows, batch.schema.columns, batch.row(1)
    (2, ['age'], {'age': 44})
    """

    def __dealloc__(self):
        free(self.node)
        if self.owns and self.own.release != NULL:
            self.own.release(&self.own)

    def __len__(self):
        return self.rows

    cdef int point(self, int number, const ArrowArray* array, int64_t base) except -1:
        """Set where the values of a node are, and of those inside it; base: of its parents."""
        cdef Node* node = self.node + number
        cdef const ArrowArray* inner
        cdef int k, buffers = <int>array.n_buffers
        cdef int children = <int>array.n_children if array.dictionary == NULL else 1
        if node.type == OTHERS:
            # a validity is the first of the buffers, but for unions and encodings, which have none
            if array.n_children == 0 and buffers > 1:
                node.validity = <const uint8_t*>array.buffers[0]
            node.base = array.offset + base
            return 0
        if children != node.count or buffers < wanted_buffers(node.type):
            raise SourceError("columns are damaged: their schema is another one")
        node.base = array.offset + base
        node.length = array.length
        if buffers > 0:
            node.validity = <const uint8_t*>array.buffers[0]
        if is_text(node.type) and node.type != TEXT_VIEWS or (
                is_list(node.type) and node.type != FIXED_LISTS) or node.type == MAPS:
            node.offsets = <const char*>array.buffers[1]
            node.data = <const char*>array.buffers[2] if is_text(node.type) else NULL
        elif buffers > 1:
            node.data = <const char*>array.buffers[1]
            node.parts = array.buffers + 2
        for k in range(children):
            inner = array.dictionary if array.dictionary != NULL else array.children[k]
            self.point(node.first + k, inner, node.base if node.type == STRUCTS else 0)
        return 0

    # Values

    cdef int find_text(self, const Node* node, int64_t row, const char** text,
                       Py_ssize_t* length) noexcept nogil:
        """Find a text that is there."""
        cdef int64_t k = row + node.base, first
        cdef const int32_t* view
        if node.type == TEXTS:
            first = (<const int32_t*>node.offsets)[k]
            length[0] = (<const int32_t*>node.offsets)[k + 1] - first
        elif node.type == LARGE_TEXTS:
            first = (<const int64_t*>node.offsets)[k]
            length[0] = (<const int64_t*>node.offsets)[k + 1] - first
        else:
            view = <const int32_t*>(node.data + 16 * k)
            length[0] = view[0]
            if view[0] <= 12:
                text[0] = <const char*>(view + 1)
            else:
                text[0] = <const char*>node.parts[view[2]] + view[3]
            return 0
        text[0] = node.data + first
        return 0

    cdef bint scalar(self, const Node* node, int64_t row, Scalar* to) except -1 nogil:
        """Read a value that is not composed of others; False if it is missing.

        A NaN is missing, and so is the smallest of the times, which pandas has for missing ones.
        """
        cdef int64_t k = row + node.base
        clear(to)
        if not self.has(node, row):
            return False
        if node.type == CODES:
            return self.scalar(self.node + node.first, code_at(node, row), to)
        if is_text(node.type):
            to.value.kind = A_TEXT
            self.find_text(node, row, &to.value.text, &to.value.length)
        elif node.type == DOUBLES or node.type == FLOATS:
            to.value.number = float_at(node.type, node.data, k)
            return not isnan(to.value.number)
        elif is_integer(node.type):
            to.whole = integer_at(node.type, node.data, k)
            to.is_whole = True
            to.is_unsigned = node.type == UINT64
            to.seconds = node.seconds
            if to.is_unsigned:
                to.value.number = <double><uint64_t>to.whole
            else:
                to.value.number = <double>to.whole
            return node.seconds == 0.0 or node.type != INT64 or to.whole != MISSING_TIME
        elif node.type == BOOLS:
            to.value.kind = A_BOOL
            to.value.number = <double>((<const uint8_t*>node.data)[k >> 3] >> (k & 7) & 1)
        elif node.type == HALVES:
            to.value.number = half((<const uint16_t*>node.data)[k])
            return not isnan(to.value.number)
        elif node.type == DECIMALS:
            read_decimal(node.data + node.size * k, node.size, node.scale, to)
        else:
            return False
        return True

    cdef object value(self, int number, int64_t row):
        """Return a value as a Python object, None if it is missing."""
        cdef const Node* node = self.node + number
        cdef int64_t first = 0, last = 0, i
        cdef Scalar scalar
        if not self.has(node, row):
            return None
        if node.type == STRUCTS:
            return {self.schema.names[k]: self.value(k, row)
                    for k in range(node.first, node.first + node.count)}
        if is_list(node.type):
            items_of(node, row, &first, &last)
            return [self.value(node.first, i) for i in range(first, last)]
        if node.type == MAPS:
            items_of(node, row, &first, &last)
            k = self.node[node.first].first
            return {str(self.value(k, i)): self.value(k + 1, i) for i in range(first, last)}
        if node.type == CODES:
            return self.value(node.first, code_at(node, row))
        if not self.scalar(node, row, &scalar):
            return None if node.type != OTHERS else self.schema.kinds[number]
        if scalar.value.kind == A_TEXT:
            return PyUnicode_DecodeUTF8(scalar.value.text, scalar.value.length, "replace")
        if scalar.value.kind == A_BOOL:
            return scalar.value.number != 0.0
        if scalar.seconds:
            return moment(scalar.whole, scalar.seconds)
        if scalar.is_whole:
            return <uint64_t>scalar.whole if scalar.is_unsigned else scalar.whole
        return scalar.value.number

    def part(self, Py_ssize_t start, Py_ssize_t stop):
        """Return the rows start .. stop - 1, without a copy."""
        cdef ColumnBatch part = ColumnBatch.__new__(ColumnBatch)
        cdef int k
        if not 0 <= start <= stop <= self.rows:
            raise IndexError(f"rows {start} to {stop} of {self.rows}")
        part.schema, part.owner, part.rows = self.schema, self, stop - start
        part.node = <Node*>reallocate(NULL, self.schema.nodes * sizeof(Node))
        memcpy(part.node, self.node, self.schema.nodes * sizeof(Node))
        for k in range(1, self.schema.nodes):
            if self.schema.is_row(k):
                part.node[k].base += start
        return part

    def row(self, Py_ssize_t i):
        """Return a row as an event, with None for missing values."""
        cdef int k
        if not 0 <= i < self.rows:
            raise IndexError(f"row {i} of {self.rows}")
        return {self.schema.names[k]: self.value(k, i)
                for k in range(1, 1 + self.schema.node[0].count)}

    def column(self, name):
        """Return the values of a column as a list, with None for missing ones."""
        cdef Py_ssize_t i
        cdef int k
        names = self.schema.columns
        if name not in names:
            raise TableMismatchError(f"no column {name!r} among {', '.join(names)[:200]!r}")
        k = 1 + names.index(name)
        return [self.value(k, i) for i in range(self.rows)]


cdef int wanted_buffers(Type type) noexcept:
    """How many buffers there are at least."""
    if type == NULLS:
        return 0
    if type == STRUCTS or type == FIXED_LISTS:
        return 1
    return 3 if type == TEXTS or type == LARGE_TEXTS else 2


cdef object moment(int64_t whole, double seconds):
    """Return a time as a date, or a datetime; its seconds since 1970 beyond their range."""
    try:
        if seconds == 86400.0:
            return date(1970, 1, 1) + timedelta(days=whole)
        per_second = round(1.0 / seconds)
        second, rest = divmod(whole, per_second)
        return datetime(1970, 1, 1) + timedelta(
            seconds=second, microseconds=rest * 1_000_000 // per_second)
    except OverflowError:
        return whole * seconds


cdef double half(uint16_t bits) noexcept nogil:
    """A floating-point number of 16 bits."""
    cdef int exponent = bits >> 10 & 31, fraction = bits & 1023
    cdef double x
    if exponent == 31:
        x = NAN if fraction else ldexp(1.0, 2000)
    elif exponent:
        x = ldexp(1024.0 + fraction, exponent - 25)
    else:
        x = ldexp(<double>fraction, -24)
    return -x if bits >> 15 else x


cdef int read_decimal(const char* p, int size, int scale, Scalar* to) except -1 nogil:
    """Read a decimal, an integer in two's complement with the least significant byte first."""
    cdef int64_t low = 0
    cdef int i
    cdef bint fits = True
    memcpy(&low, p, min(size, 8))
    if size == 4:
        low = <int32_t>low
    for i in range(8, size):
        fits = fits and <uint8_t>p[i] == (255 if low < 0 else 0)
    if fits and scale == 0:
        to.whole, to.is_whole = low, True
        to.value.number = <double>low
        return 0
    if fits and low != MISSING_TIME and far_decimal(
            <uint64_t>(low if low > 0 else -low), -scale, &to.value.number):
        if low < 0:
            to.value.number = -to.value.number
        return 0
    with gil:
        whole = int.from_bytes(p[:size], "little", signed=True)
        to.value.number = float(Decimal(whole).scaleb(-scale))
    return 0


# What hands over batches

def batches(data):
    """Yield the batches of an object with `__arrow_c_stream__` or `__arrow_c_array__`.

    >>> import polars as pl
    >>> [batch.row(0) for batch in batches(pl.DataFrame({"age": [31, 44], "city": ["Bern", None]}))]
    [{'age': 31, 'city': 'Bern'}]
    """
    if hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__"):
        yield batch_of_capsules(*data.__arrow_c_array__())
        return
    if not hasattr(data, "__arrow_c_stream__"):
        raise TypeError(f"expected a frame, or columns by the Arrow interface, got"
                        f" {type(data).__name__}")
    capsule = data.__arrow_c_stream__()
    schema = None
    while True:
        batch = next_batch(capsule, schema)
        if batch is None:
            return
        schema = batch.schema
        if batch.rows:
            yield batch


cdef ColumnBatch next_batch(capsule, ColumnSchema schema):
    """Return the next batch of a stream; None at its end."""
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(
        capsule, b"arrow_array_stream")
    cdef ArrowSchema described
    cdef int status
    cdef ColumnBatch batch
    if schema is None:
        with nogil:
            status = stream.get_schema(stream, &described)
        if status:
            raise stream_error(stream, status)
        try:
            schema = schema_of(&described)
        finally:
            described.release(&described)
    batch = ColumnBatch.__new__(ColumnBatch)
    with nogil:
        status = stream.get_next(stream, &batch.own)
    if status:
        batch.own.release = NULL
        raise stream_error(stream, status)
    if batch.own.release == NULL:
        return None
    batch.owns = True
    return settled(batch, schema, &batch.own, None)


cdef object stream_error(ArrowArrayStream* stream, int status):
    cdef const char* message = stream.get_last_error(stream)
    reason = f"error {status}" if message == NULL else (<bytes>message).decode(errors="replace")
    return SourceError(f"the columns cannot be read: {reason[:1000]}")


def batch_of_capsules(schema, array):
    """Return the batch that `__arrow_c_array__` hands over."""
    cdef ArrowSchema* described = <ArrowSchema*>PyCapsule_GetPointer(schema, b"arrow_schema")
    cdef ArrowArray* given = <ArrowArray*>PyCapsule_GetPointer(array, b"arrow_array")
    return settled(ColumnBatch.__new__(ColumnBatch), schema_of(described), given, array)


cdef ColumnSchema schema_of(const ArrowSchema* described):
    cdef ColumnSchema schema = ColumnSchema.__new__(ColumnSchema)
    if (<bytes>described.format) != b"+s":
        raise TableMismatchError("expected a table with named columns, got a single column")
    schema.add(1)
    schema.read(0, described, 0)
    repeated = [name for name in schema.columns if schema.columns.count(name) > 1]
    if repeated:
        raise TableMismatchError(f"two columns have the name {repeated[0]!r}: rename one")
    return schema


cdef ColumnBatch settled(
    ColumnBatch batch, ColumnSchema schema, const ArrowArray* array, object owner
):
    """Complete a batch with the array that it has."""
    batch.schema, batch.owner, batch.rows = schema, owner, array.length
    batch.node = <Node*>reallocate(NULL, schema.nodes * sizeof(Node))
    memcpy(batch.node, schema.node, schema.nodes * sizeof(Node))
    batch.point(0, array, 0)
    return batch


def batch_of(Py_ssize_t n, columns):
    """Return a batch of NumPy arrays.

    A column is (name, format, buffers, dictionary): the format string of the Arrow interface, the
    buffers in its order (None: no validity), and the format and buffers of its dictionary, if any.
    """
    cdef ColumnSchema schema = ColumnSchema()
    cdef ColumnBatch batch = ColumnBatch.__new__(ColumnBatch)
    cdef int k, inner
    cdef list held = []
    cdef list nodes = []
    first = schema.add(len(columns))
    schema.node[0].first, schema.node[0].count = first, len(columns)
    for k, (name, format, buffers, dictionary) in enumerate(columns, first):
        schema.describe(k, format)
        schema.names[k] = name
        nodes.append((k, buffers))
        if dictionary is not None:
            inner = schema.add(1)
            schema.describe(inner, dictionary[0])
            schema.node[k].first, schema.node[k].count = inner, 1
            schema.node[k].codes, schema.node[k].type = schema.node[k].type, CODES
            nodes.append((inner, dictionary[1]))
    batch.schema, batch.rows = schema, n
    batch.node = <Node*>reallocate(NULL, schema.nodes * sizeof(Node))
    memcpy(batch.node, schema.node, schema.nodes * sizeof(Node))
    for k, buffers in nodes:
        places = []
        for one in buffers:
            array = None if one is None else np.ascontiguousarray(one)
            held.append(array)
            places.append(0 if array is None else array.ctypes.data)
        batch.node[k].validity = <const uint8_t*><size_t>places[0]
        if is_text(batch.node[k].type):
            batch.node[k].offsets = <const char*><size_t>places[1]
            batch.node[k].data = <const char*><size_t>places[2]
            batch.node[k].length = len(buffers[1]) - 1
        else:
            batch.node[k].data = <const char*><size_t>places[1]
    batch.owner = held
    return batch
