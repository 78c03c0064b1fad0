"""Columns in memory, as Arrow lays them out."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from streamlearn.columns.interface cimport ArrowArray, ArrowSchema
from streamlearn.features.scalars cimport Scalar

cdef enum Type:  # how values lie in memory
    NULLS
    BOOLS
    INT8
    UINT8
    INT16
    UINT16
    INT32
    UINT32
    INT64
    UINT64
    HALVES
    FLOATS
    DOUBLES
    DECIMALS
    TEXTS  # 32-bit offsets
    LARGE_TEXTS
    TEXT_VIEWS
    CODES  # of a dictionary
    LISTS
    LARGE_LISTS
    FIXED_LISTS
    MAPS
    STRUCTS
    OTHERS  # that no field can hold

cdef struct Node:  # a column, or one inside another
    Type type
    int parent  # the struct that it is in, 0: the rows themselves
    int first  # the first node inside it: the items, the entries, the texts of a dictionary
    int count  # of the nodes inside it
    int size  # of a fixed list, or the bytes of a decimal
    int scale  # of decimals
    Type codes  # the integers of a dictionary
    double seconds  # the length of the unit of times, 0: they are none
    int64_t base  # where row 0 is
    int64_t length  # of what it has, before `base` is added
    const uint8_t* validity  # NULL: all values are there
    const char* data
    const char* offsets
    const void** parts  # of texts that are views


cdef class ColumnSchema:
    cdef Node* node
    cdef int nodes
    cdef readonly list names  # of the nodes
    cdef readonly list kinds  # what their values are, for messages
    cdef int read(self, int number, const ArrowSchema* schema, int depth) except -1
    cdef int describe(self, int number, bytes format) except -1
    cdef int add(self, int count) except -1
    cdef bint is_row(self, int number) noexcept


cdef class ColumnBatch:
    cdef readonly ColumnSchema schema
    cdef readonly Py_ssize_t rows
    cdef object owner  # of the memory
    cdef ArrowArray own  # released with the batch, unless the owner does that
    cdef bint owns
    cdef Node* node
    cdef int point(self, int number, const ArrowArray* array, int64_t base) except -1
    cdef object value(self, int number, int64_t row)
    cdef int find_text(self, const Node* node, int64_t row, const char** text,
                       Py_ssize_t* length) noexcept nogil

    cdef inline bint has(self, const Node* node, int64_t row) noexcept nogil:
        """Whether a row has a value, in a node whose parents are structs."""
        cdef int64_t k
        while True:
            if node.validity != NULL:
                k = row + node.base
                if not node.validity[k >> 3] >> (k & 7) & 1:
                    return False
            if node.parent == 0:
                return node.type != NULLS
            node = self.node + node.parent

    cdef bint scalar(self, const Node* node, int64_t row, Scalar* to) except -1 nogil


cdef inline int64_t integer_at(Type type, const char* data, int64_t k) noexcept nogil:
    """An integer; those above 2**63 wrap around."""
    if type == INT64 or type == UINT64:
        return (<const int64_t*>data)[k]
    if type == INT32:
        return (<const int32_t*>data)[k]
    if type == UINT32:
        return (<const uint32_t*>data)[k]
    if type == INT16:
        return (<const int16_t*>data)[k]
    if type == UINT16:
        return (<const uint16_t*>data)[k]
    if type == INT8:
        return (<const int8_t*>data)[k]
    return (<const uint8_t*>data)[k]


cdef inline int64_t code_at(const Node* node, int64_t row) noexcept nogil:
    """The place in its dictionary of a value that is there."""
    return integer_at(node.codes, node.data, row + node.base)


cdef inline bint is_integer(Type type) noexcept nogil:
    return INT8 <= type <= UINT64


cdef inline bint is_text(Type type) noexcept nogil:
    return TEXTS <= type <= TEXT_VIEWS


cdef inline bint is_list(Type type) noexcept nogil:
    return LISTS <= type <= FIXED_LISTS


cdef inline double float_at(Type type, const char* data, int64_t k) noexcept nogil:
    """A floating-point number of 32 or 64 bits."""
    if type == DOUBLES:
        return (<const double*>data)[k]
    return (<const float*>data)[k]


cdef inline int items_of(
        const Node* node, int64_t row, int64_t* first, int64_t* last) noexcept nogil:
    """Find the rows of a list's items in the node inside it."""
    cdef int64_t k = row + node.base
    if node.type == LARGE_LISTS:
        first[0] = (<const int64_t*>node.offsets)[k]
        last[0] = (<const int64_t*>node.offsets)[k + 1]
    elif node.type == FIXED_LISTS:
        first[0] = k * node.size
        last[0] = first[0] + node.size
    else:
        first[0] = (<const int32_t*>node.offsets)[k]
        last[0] = (<const int32_t*>node.offsets)[k + 1]
    return 0
