cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from streamlearn.late.id_table cimport IdTable
from streamlearn.core.row cimport Row, prefetch

cdef struct Entry:  # its slots and values follow, or the payload of a label
    uint64_t tag  # the hash of its id
    double received_at  # the stream's clock at its arrival
    double time  # of its record; NaN: none
    double number  # the weight of features, or a label
    int32_t n  # features, or bytes of payload
    int32_t ticket  # under which its scores are stored; -1: none
    uint32_t size  # in units
    uint8_t kind  # of its label, or FEATURES

cdef enum:
    # a place has 31 bits: the number of a segment, and the unit at which the entry begins
    UNIT = 8  # bytes
    BITS = 16
    UNITS = 1 << BITS
    WORDS = UNITS // 64
    SEGMENTS = 1 << (31 - BITS)


@cython.final
cdef class HeldSegment:
    cdef object data  # owns the memory below
    cdef char* text
    cdef Py_ssize_t size, capacity, used  # bytes; used: by live entries
    cdef Py_ssize_t live, first, after, before
    cdef bint sealed
    cdef uint64_t[WORDS] alive  # a bit for each unit where a live entry begins
    cdef int use_memory(self, data) except -1
    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef int seal(self) except -1
    cdef Py_ssize_t next(self, Py_ssize_t unit) noexcept

    cdef inline Entry* at(self, Py_ssize_t unit) noexcept:
        """Return the entry that begins at this unit."""
        return <Entry*>(self.text + unit * UNIT)

    cdef inline void mark(self, Py_ssize_t unit, bint alive) noexcept:
        """Mark whether a live entry begins at this unit."""
        cdef uint64_t bit = <uint64_t>1 << (unit & 63), word = self.alive[unit >> 6]
        self.alive[unit >> 6] = word | bit if alive else word & ~bit


@cython.final
cdef class HeldEvents:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t size, used, removed
    cdef list segments, vacant
    cdef Py_ssize_t head, tail
    cdef IdTable id_table

    cdef int64_t append(self, Entry* entry, const void* payload, Row* row) except -1
    cdef int64_t copy(self, Entry* entry) except -1
    cdef int remove(self, int64_t place) except -1
    cdef int64_t oldest(self)
    cdef int64_t next(self, int64_t place)
    cdef void read(self, int64_t place, Row* row) noexcept
    cdef bytes payload(self, int64_t place)

    cdef HeldSegment room_for(self, Py_ssize_t n_bytes)
    cdef int64_t add(self, HeldSegment last, Entry* entry, Py_ssize_t n_bytes) noexcept
    cdef Py_ssize_t new_segment(self, data) except -1
    cdef int unlink(self, Py_ssize_t k) except -1
    cdef int compact(self) except -1
    cdef bint merge(self, Py_ssize_t k) except -1
    cdef int copy_live_entries(self, Py_ssize_t k, HeldSegment old, Py_ssize_t was) except -1
    cdef int clamp_times(self, double most) except -1
    cdef int set_last_times(self, Py_ssize_t n, double received_at) except -1

    cdef inline HeldSegment segment(self, int64_t place):
        """Return the segment of an entry."""
        return <HeldSegment>PyList_GET_ITEM(self.segments, place >> BITS)

    cdef inline Entry* at(self, int64_t place) noexcept:
        """Return an entry; it may move when entries are added or removed."""
        return self.segment(place).at(place & (UNITS - 1))

    cdef inline void prefetch_entry(self, int64_t place) noexcept:
        """Prefetch an entry, as many bytes as most entries have."""
        cdef const char* text = <const char*>self.at(place)
        prefetch(text)
        prefetch(text + 64)
        prefetch(text + 128)
