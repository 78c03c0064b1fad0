"""What every learner needs of features: an event becomes a row of slots and values."""

from libc.stdint cimport uint32_t, uint64_t

from streamlearn.features.parser cimport EventParser
from streamlearn.core.row cimport Row

cdef struct Mark:  # a cell of the table that finds a slot twice in a row
    uint32_t row
    int position


cdef class Reader(EventParser):
    cdef Row row  # what was read, valid until the next read
    cdef readonly Py_ssize_t size  # slots known: names so far, or 2**bits
    cdef int* slot
    cdef double* value
    cdef Py_ssize_t row_room
    cdef Mark* seen
    cdef Py_ssize_t seen_room
    cdef uint32_t rows
    cdef bint busy
    cdef bint uncommitted  # names were added of an event that may yet be refused
    cdef Py_ssize_t committed_size, committed_columns  # what was known before it
    cdef readonly uint64_t revision  # changes when names are taken back

    cdef int read(self, object event, bint grow) except -1

    # A kind of features is these three.
    cdef int resolve(self, bint grow) except -1 nogil  # slot[i] of piece[i]; -1: unknown
    cdef int forget(self, Py_ssize_t size, Py_ssize_t columns) except -1  # take back the newest
    cdef Py_ssize_t own_columns(self) noexcept nogil  # the columns j that are slot j

    cdef int enter(self) except -1
    cdef int leave(self) except -1
    cdef int fit_row(self) except -1 with gil
    cdef int clear_seen(self) except -1 with gil
    cdef int look_up(self, bint grow) except -1 nogil
    cdef int finish(self) except -1 nogil
    cdef int finish_merged(self) except -1 nogil
    cdef int reject_sum(self, Py_ssize_t i, double total) except -1 with gil
