cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from streamlearn.late.places cimport Places
from streamlearn.core.row cimport Row, prefetch

cdef struct Entry:  # its slots and values follow, or what else was said of a label
    uint64_t tag  # the hash of its id
    double stamp  # the stream's clock when it came
    double time  # its own; NaN: none
    double number  # the weight of features, or a label
    int32_t n  # features, or bytes of what else was said
    int32_t ticket  # where its predictions are remembered; -1: nowhere
    uint32_t size  # of all of it, in units
    uint8_t kind  # of its label, or FEATURES

cdef enum:
    # a place has 31 bits: a segment of so many, and in it the unit at which an entry begins
    UNIT = 8  # bytes
    BITS = 16
    UNITS = 1 << BITS
    WORDS = UNITS // 64
    SEGMENTS = 1 << (31 - BITS)


@cython.final
cdef class Segment:
    cdef object data  # what owns the memory below
    cdef char* text
    cdef Py_ssize_t size, capacity, used  # bytes; used: by entries that are live
    cdef Py_ssize_t live, first, after, before
    cdef bint sealed
    cdef uint64_t[WORDS] alive  # a bit for each unit: a live entry begins there
    cdef int own(self, data) except -1
    cdef int widen(self, Py_ssize_t capacity) except -1
    cdef int seal(self) except -1
    cdef Py_ssize_t next(self, Py_ssize_t unit) noexcept

    cdef inline Entry* at(self, Py_ssize_t unit) noexcept:
        """The entry that begins at this unit."""
        return <Entry*>(self.text + unit * UNIT)

    cdef inline void mark(self, Py_ssize_t unit, bint alive) noexcept:
        """A live entry begins here now, or none does."""
        cdef uint64_t bit = <uint64_t>1 << (unit & 63), word = self.alive[unit >> 6]
        self.alive[unit >> 6] = word | bit if alive else word & ~bit


@cython.final
cdef class HeldEvents:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t size, used, removed
    cdef list segments, vacant
    cdef Py_ssize_t head, tail
    cdef Places places

    cdef int64_t append(self, Entry* entry, const void* rest, Row* row) except -1
    cdef int64_t copy(self, Entry* entry) except -1
    cdef int remove(self, int64_t place) except -1
    cdef int64_t oldest(self)
    cdef int64_t next(self, int64_t place)
    cdef void read(self, int64_t place, Row* row) noexcept
    cdef bytes rest(self, int64_t place)

    cdef Segment room_for(self, Py_ssize_t bytes_of_it)
    cdef int64_t add(self, Segment last, Entry* entry, Py_ssize_t bytes_of_it) noexcept
    cdef Py_ssize_t new_segment(self, data) except -1
    cdef int unlink(self, Py_ssize_t k) except -1
    cdef int gather(self) except -1
    cdef bint unite(self, Py_ssize_t k) except -1
    cdef int take_over(self, Py_ssize_t k, Segment old, Py_ssize_t was) except -1
    cdef int restamp(self, double most) except -1
    cdef int restamp_last(self, Py_ssize_t n, double stamp) except -1

    cdef inline Segment segment(self, int64_t place):
        """The segment that an entry is in."""
        return <Segment>PyList_GET_ITEM(self.segments, place >> BITS)

    cdef inline Entry* at(self, int64_t place) noexcept:
        """An entry, which stays where it is until another one is added or removed."""
        return self.segment(place).at(place & (UNITS - 1))

    cdef inline void approach(self, int64_t place) noexcept:
        """This entry is read soon: as much as most of them have is fetched meanwhile."""
        cdef const char* text = <const char*>self.at(place)
        prefetch(text)
        prefetch(text + 64)
        prefetch(text + 128)
