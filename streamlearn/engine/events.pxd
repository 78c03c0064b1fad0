cimport cython
from libc.math cimport NAN
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from streamlearn.engine.rows cimport Rows
from streamlearn.features.text cimport copy_text
from streamlearn.core.row cimport Row

cdef enum Kind:  # the Python type of a label
    UNLABELED
    BOOL
    INT
    FLOAT
    CLASS  # the number is an index into `classes`

cdef struct Tags:  # what an event has besides its features
    double label
    Kind kind
    double weight
    double time  # NaN for none
    const char* id  # NULL for none
    Py_ssize_t id_length


cdef class Events(Rows):
    cdef readonly Py_ssize_t records
    cdef public Py_ssize_t byte_count
    cdef readonly Py_ssize_t tombstones
    cdef public Py_ssize_t blank
    cdef public Py_ssize_t outside
    cdef readonly list invalid
    cdef public list classes
    cdef Py_ssize_t row_room, feature_room, id_room
    cdef tuple arrays  # the owners of the memory below
    cdef bint adopted  # the arrays are not its own, and may be read-only
    cdef double* label
    cdef uint8_t* kind
    cdef double* weight
    cdef double* time
    cdef int64_t* record
    cdef char* id_text
    cdef int64_t* id_end
    cdef uint8_t* has_id

    cdef int widen(self, Py_ssize_t rows, Py_ssize_t features, Py_ssize_t text) except -1 with gil
    cdef int point_to(self, tuple arrays) except -1
    cdef object label_object(self, Py_ssize_t i)

    @cython.final
    cdef inline int offer(self, Row* row, Py_ssize_t n, Py_ssize_t id_length) except -1 nogil:
        """Reserve a row of n features at its final place, to be filled in and appended."""
        cdef Py_ssize_t i = self.n, features = <Py_ssize_t>self.start[i] + n
        cdef Py_ssize_t id_bytes = id_length
        if i > 0:
            id_bytes += <Py_ssize_t>self.id_end[i - 1]
        if i == self.row_room or features > self.feature_room or id_bytes > self.id_room:
            self.widen(
                2 * self.row_room if i == self.row_room else self.row_room,
                max(self.feature_room, 2 * features),
                max(self.id_room, 2 * id_bytes))
        row.n = n
        row.slot = self.slot_at + (features - n)
        row.value = self.value_at + (features - n)
        return 0

    @cython.final
    cdef inline int append(self, Row* row, Tags* tags, Py_ssize_t known) except -1 nogil:
        """Append an event of the current record; `known` is the number of slots used after it."""
        cdef Py_ssize_t i = self.n, first = <Py_ssize_t>self.start[i]
        cdef Py_ssize_t id_used = 0 if i == 0 else <Py_ssize_t>self.id_end[i - 1]
        cdef Row there
        if row.slot != self.slot_at + first:  # unless `offer` reserved the row
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
            copy_text(self.id_text + id_used, tags.id, tags.id_length)
        self.id_end[i] = id_used + tags.id_length
        self.n += 1
        if known > self.columns:
            self.columns = known
        return 0
