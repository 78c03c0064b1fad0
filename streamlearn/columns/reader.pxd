"""The columns of batches as the fields of events."""

from libc.stdint cimport int64_t, uint64_t

from streamlearn.columns.batch cimport ColumnBatch, Node, ColumnSchema
from streamlearn.features.pieces cimport Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.scalars cimport DIGITS, Scalar

cdef enum How:  # a column is read
    NUMBER  # undeclared, of a plain type
    CODE  # a text of a dictionary, which is one feature
    VALUE  # any other value that is not composed of others
    ITEMS
    ENTRIES
    BEGIN  # of the columns inside a struct that interactions name
    END

cdef struct Column:
    How how
    int node
    int depth
    int field  # what the reader does with it
    int inner  # what it does with the fields inside that are not declared
    const char* name  # followed by "="
    Py_ssize_t length  # without the "="
    int* slot  # of the number, or of each text, as far as they are known; NULL: not kept
    int64_t slots
    const void* texts  # the dictionary that the slots are for


cdef class ColumnReader:
    cdef readonly Reader reader
    cdef readonly object aside  # names of columns that are not features
    cdef ColumnBatch batch
    cdef ColumnSchema schema
    cdef Column* column
    cdef int columns
    cdef readonly dict nodes  # of the columns that are aside, by name
    cdef readonly list names  # of all columns, with dots for those inside others
    cdef list held
    cdef bint may_repeat
    cdef bint keeps  # slots
    cdef uint64_t revision  # of the reader's names
    cdef Py_ssize_t[34] begun  # where the features of a struct begin, by its depth
    cdef char[DIGITS] digits

    cdef int use(self, ColumnBatch batch) except -1
    cdef int release(self) except -1
    cdef int put(self, Reader reader, int64_t row) except -1 nogil
    cdef int walk(self, int number, str path, int outer, int depth) except -1
    cdef int add(self, How how, int node, bytes name, int field, int depth) except -1
    cdef int forget(self) noexcept nogil
    cdef int clear(self) noexcept
    cdef int put_value(
        self, Reader reader, const Column* column, const Node* node, int64_t row
    ) except -1 nogil
    cdef int put_scalar(
        self, Reader reader, int field, Text name, Scalar* scalar) except -1 nogil
    cdef int put_items(
        self, Reader reader, const Column* column, const Node* node, int64_t row
    ) except -1 nogil
    cdef int put_entries(
        self, Reader reader, const Column* column, const Node* node, int64_t row
    ) except -1 nogil
    cdef int check_text(self, Text name, const Scalar* scalar) except -1 nogil
    cdef int refuse(self, int field, Text name, const char* what) except -1 with gil
    cdef int refuse_number(self, Text name, double x) except -1 with gil
