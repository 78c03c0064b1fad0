from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from streamlearn.late.places cimport Places
from streamlearn.row cimport Row

cdef struct Head:  # of each entry; its id, slots, values and what else it has follow
    double stamp  # the stream's clock when it came
    uint32_t id_length
    uint8_t kind  # of its label, or what else it is
    # a bare one has no more
    double time  # its own; NaN: none
    double number  # the weight of features, or a label
    int32_t n  # features
    int32_t ticket  # where its predictions are remembered; -1: nowhere

cdef struct BareHead:  # how a head begins
    double stamp
    uint32_t id_length
    uint8_t kind

cdef enum:
    BARE = 0x80  # of a kind: there is nothing but the id
    SIDE_BIT = 31  # of a place: in which of two stores it is


cdef class Segment:
    cdef Py_ssize_t entries, live, first, size, capacity, after, before
    cdef bint sealed
    cdef object data, offset, alive  # what owns the memory below
    cdef char* text
    cdef uint32_t* start
    cdef uint8_t* is_live
    cdef int widen(self, Py_ssize_t size) except -1
    cdef int seal(self) except -1


cdef class Held:
    cdef readonly Py_ssize_t count
    cdef list segments, vacant
    cdef Py_ssize_t head, tail
    cdef Places places
    cdef int64_t side
    cdef Py_ssize_t room
    cdef int* slot
    cdef double* value

    cdef int64_t place(self, Py_ssize_t k, Py_ssize_t i) noexcept
    cdef Segment segment(self, int64_t place)
    cdef void spot(self, int64_t place) noexcept
    cdef void approach(self, int64_t place) noexcept
    cdef bint has(self, int64_t place, const char* name, Py_ssize_t length) noexcept
    cdef int64_t append(
        self, Head* head, Row* row, const char* name, const char* extra, Py_ssize_t extra_length
    ) except -1
    cdef int remove(self, int64_t place) except -1
    cdef int64_t oldest(self)
    cdef int64_t next(self, int64_t place)
    cdef const char* at(self, int64_t place, Head* head) noexcept
    cdef int read(self, int64_t place, Row* row) except -1
    cdef bytes extra(self, int64_t place)

    cdef Py_ssize_t new_segment(self) except -1
    cdef int unlink(self, Py_ssize_t k) except -1
    cdef int unite(self, Py_ssize_t k) except -1
    cdef int take_over(self, Segment old, Py_ssize_t was, Py_ssize_t k) except -1
    cdef uint64_t tag(self, int64_t place) noexcept
    cdef int restamp(self, double most) except -1
    cdef int restamp_last(self, Py_ssize_t n, double stamp) except -1
