cimport cython
from libc.math cimport NAN
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from streamlearn.engine.rows cimport Rows
from streamlearn.features.text cimport copy_text
from streamlearn.core.row cimport Row

cdef enum Kind:  # what a label is in Python
    UNLABELED
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
    cdef int64_t* record
    cdef char* id_text
    cdef int64_t* id_end
    cdef uint8_t* has_id
    cdef double* square

    cdef int widen(self, Py_ssize_t rows, Py_ssize_t features, Py_ssize_t text) except -1 with gil
    cdef object label_object(self, Py_ssize_t i)

    @cython.final
    cdef inline int offer(self, Row* row, Py_ssize_t n, Py_ssize_t id_length) except -1 nogil:
        """A row of n features to be filled in and appended: where its event will lie."""
        cdef Py_ssize_t i = self.n, first = <Py_ssize_t>self.start[i]
        cdef Py_ssize_t said = 0 if i == 0 else <Py_ssize_t>self.id_end[i - 1]
        if i == self.row_room or first + n > self.feature_room or said + id_length > self.id_room:
            self.widen(
                2 * self.row_room if i == self.row_room else self.row_room,
                max(self.feature_room, 2 * (first + n)),
                max(self.id_room, 2 * (said + id_length)))
        row.n = n
        row.slot = self.slot_at + first
        row.value = self.value_at + first
        return 0

    @cython.final
    cdef inline int append(self, Row* row, Tags* tags, Py_ssize_t known) except -1 nogil:
        """One more event, of the record that is being decoded; `known`: slots in use after it."""
        cdef Py_ssize_t i = self.n, first = <Py_ssize_t>self.start[i]
        cdef Py_ssize_t said = 0 if i == 0 else <Py_ssize_t>self.id_end[i - 1]
        cdef Row there
        if row.slot != self.slot_at + first:  # else it is a row that was offered
            self.offer(&there, row.n, tags.id_length)
            memcpy(self.slot_at + first, row.slot, row.n * sizeof(int))
            memcpy(self.value_at + first, row.value, row.n * sizeof(double))
        self.start[i + 1] = first + row.n
        self.square[i] = row.square
        if row.n > self.longest:
            self.longest = row.n
        self.label[i] = tags.label if tags.kind != UNLABELED else NAN
        self.kind[i] = tags.kind
        self.weight[i] = tags.weight
        self.time[i] = tags.time
        self.known[i] = known
        self.record[i] = self.records
        self.has_id[i] = tags.id != NULL
        if tags.id_length:
            copy_text(self.id_text + said, tags.id, tags.id_length)
        self.id_end[i] = said + tags.id_length
        self.n += 1
        if known > self.columns:
            self.columns = known
        return 0
