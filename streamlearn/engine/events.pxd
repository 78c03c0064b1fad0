from libc.stdint cimport int64_t, uint8_t

from streamlearn.engine.rows cimport Rows
from streamlearn.row cimport Row

cdef enum Kind:  # what a label is in Python
    UNLABELLED
    BOOL
    INT
    FLOAT
    CLASS  # the number is its place in `classes`

cdef struct Tags:  # what an event says of itself beside its features
    double label
    Kind kind
    double weight
    double time  # NaN: none
    const char* id  # NULL: none
    Py_ssize_t id_length


cdef class Events(Rows):
    cdef readonly Py_ssize_t records
    cdef public Py_ssize_t byte_count
    cdef readonly Py_ssize_t tombstones
    cdef public Py_ssize_t blank
    cdef readonly list bad
    cdef public list classes
    cdef Py_ssize_t row_room, feature_room, id_room
    cdef tuple arrays  # what owns the memory below
    cdef int64_t* start
    cdef int* slot_at
    cdef double* value_at
    cdef double* label
    cdef uint8_t* kind
    cdef double* weight
    cdef double* time
    cdef int64_t* known
    cdef int64_t* record
    cdef char* id_text
    cdef int64_t* id_end
    cdef uint8_t* has_id
    cdef double* square

    cdef int offer(self, Row* row, Py_ssize_t n, Py_ssize_t id_length) except -1 nogil
    cdef int append(self, Row* row, Tags* tags, Py_ssize_t known) except -1 nogil
    cdef int widen(self, Py_ssize_t rows, Py_ssize_t features, Py_ssize_t text) except -1 with gil
    cdef object label_object(self, Py_ssize_t i)
