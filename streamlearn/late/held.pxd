cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from streamlearn.late.places cimport Places
from streamlearn.row cimport Row, prefetch

cdef struct Head:  # of each entry; its id, slots, values and what else it has follow
    double stamp  # the stream's clock when it came
    uint32_t id_length
    uint8_t kind  # of its label, or FEATURES
    double time  # its own; NaN: none
    double number  # the weight of features, or a label
    int32_t n  # features
    int32_t ticket  # where its predictions are remembered; -1: nowhere

cdef enum:
    # a place has 31 bits: an entry of so many, a segment of so many
    MOST = 4096
    BITS = 12
    SEGMENTS = 1 << 19


cdef inline Py_ssize_t number(int64_t place) noexcept:
    """The segment of a place."""
    return place >> BITS


@cython.final
cdef class Segment:
    cdef Py_ssize_t entries, live, first, size, capacity, after, before
    cdef bint sealed
    cdef object data, offset, alive  # what owns the memory below
    cdef char* text
    cdef uint32_t* start
    cdef uint8_t* is_live
    cdef int widen(self, Py_ssize_t size) except -1
    cdef int seal(self) except -1


@cython.final
cdef class Held:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t dead  # entries that went, and still take room
    cdef list segments, vacant
    cdef Py_ssize_t head, tail
    cdef Places places

    cdef int64_t append(
        self, Head* head, Row* row, const char* name, const char* extra, Py_ssize_t extra_length
    ) except -1
    cdef int remove(self, int64_t place) except -1
    cdef int64_t oldest(self)
    cdef int64_t next(self, int64_t place)
    cdef const char* read(self, int64_t place, Row* row) noexcept
    cdef void rewrite(self, int64_t place, Head* head) noexcept
    cdef bytes extra(self, int64_t place)

    cdef Py_ssize_t new_segment(self) except -1
    cdef int unlink(self, Py_ssize_t k) except -1
    cdef int gather(self) except -1
    cdef bint unite(self, Py_ssize_t k) except -1
    cdef int take_over(self, Segment old, Py_ssize_t was, Py_ssize_t k) except -1
    cdef uint64_t tag(self, int64_t place) noexcept
    cdef int restamp(self, double most) except -1
    cdef int restamp_last(self, Py_ssize_t n, double stamp) except -1

    cdef inline int64_t place(self, Py_ssize_t k, Py_ssize_t i) noexcept:
        """Where entry i of segment k is."""
        return k << BITS | i

    cdef inline Segment segment(self, int64_t place):
        """The segment that an entry is in."""
        return <Segment>PyList_GET_ITEM(self.segments, number(place))

    cdef inline void spot(self, int64_t place) noexcept:
        """This entry is read in a while: where it begins is fetched meanwhile."""
        prefetch(self.segment(place).start + (place & (MOST - 1)))

    cdef inline void approach(self, int64_t place) noexcept:
        """This entry is read soon: as much as most of them have is fetched meanwhile.

        It may have gone since it was found.
        """
        cdef Segment one = self.segment(place)
        cdef const char* text
        if one is None or place & (MOST - 1) >= one.entries:
            return
        text = one.text + one.start[place & (MOST - 1)]
        prefetch(text)
        prefetch(text + 64)
        prefetch(text + 128)

    cdef inline const char* at(self, int64_t place, Head* head) noexcept:
        """A copy of an entry's head, and its id, of `head.id_length` bytes."""
        cdef Segment one = self.segment(place)
        cdef const char* text = one.text + one.start[place & (MOST - 1)]
        memcpy(head, text, sizeof(Head))
        return text + sizeof(Head)

    cdef inline bint has(self, int64_t place, const char* name, Py_ssize_t length) noexcept:
        """Whether an entry has this id."""
        cdef Head head
        cdef const char* other = self.at(place, &head)
        return <Py_ssize_t>head.id_length == length and memcmp(other, name, length) == 0
