"""A store of held events: compact, in the order in which they came.

An entry is a few bytes in a row: a head, its id, slots, a bit for each of them, values, and maybe
more. A value of 1 (every name has it) takes no room: its bit says so. Entries lie in segments of up
to 4096. One that is full never changes again but for which of its entries are live, so a checkpoint
shares its bytes and copies the marks alone. When more has gone than is left, neighbours are united.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from streamlearn.features.text cimport copy_text
from streamlearn.late.places cimport Places
from streamlearn.row cimport Row, squared

import numpy as np

cdef enum:
    LONGEST = 1 << 24  # bytes of a segment to which no more is added
    SPARE = 4 * MOST  # entries that may take room though they have gone
    EVERY = 1024  # entries that go between two looks at that

cdef extern from *:
    """
    #include <stdint.h>

    #define STREAMLEARN_ONE 0x3ff0000000000000u  /* 1.0 */
    #if defined(__GNUC__)
    #define streamlearn_lowest(bits) __builtin_ctz(bits)
    #else
    static inline int streamlearn_lowest(uint32_t bits) {
        int k = 0;
        while (!(bits >> k & 1))
            k++;
        return k;
    }
    #endif
    """
    uint64_t ONE "STREAMLEARN_ONE"
    # the place of the lowest bit that is set
    int lowest "streamlearn_lowest"(uint32_t bits) noexcept nogil


cdef inline uint32_t others_of(const double* value, Py_ssize_t n) noexcept nogil:
    """Which of up to 32 values are not 1."""
    cdef uint32_t bits = 0
    cdef uint64_t bytes_of_it
    cdef Py_ssize_t k
    for k in range(n):
        memcpy(&bytes_of_it, value + k, 8)
        bits |= <uint32_t>(bytes_of_it != ONE) << k
    return bits


cdef inline Py_ssize_t marks(Py_ssize_t n) noexcept nogil:
    """How many bytes have a bit for each of n values, in words of 32."""
    return 4 * ((n + 31) >> 5)


cdef inline uint64_t tag_of(const char* entry, Places places) noexcept:
    """The hash of the id of an entry that begins here."""
    cdef Head head
    memcpy(&head, entry, sizeof(Head))
    return places.hashed(entry + sizeof(Head), head.id_length)


@cython.final
cdef class Segment:
    """Entries that came one after the other."""

    def __cinit__(self, Py_ssize_t size):
        self.offset = np.zeros(MOST + 1, dtype=np.uint32)
        self.alive = np.zeros(MOST, dtype=np.uint8)
        self.after = self.before = -1
        self.widen(size)

    cdef int widen(self, Py_ssize_t size) except -1:
        """Room for so many bytes; the arrays may be others now."""
        data = np.empty(size, dtype=np.uint8)
        if self.size:
            data[:self.size] = self.data[:self.size]
        self.data, self.capacity = data, size
        self.text = <char*><size_t>self.data.ctypes.data
        self.start = <uint32_t*><size_t>self.offset.ctypes.data
        self.is_live = <uint8_t*><size_t>self.alive.ctypes.data
        return 0

    cdef int seal(self) except -1:
        """No more will come: give back what is not needed."""
        self.sealed = True
        self.offset = self.offset[:self.entries + 1].copy()
        self.alive = self.alive[:self.entries].copy()
        if 8 * self.size < 7 * self.capacity:
            self.widen(self.size)
        else:
            self.start = <uint32_t*><size_t>self.offset.ctypes.data
            self.is_live = <uint8_t*><size_t>self.alive.ctypes.data
        return 0


@cython.final
cdef class Held:
    """Held entries; a place is a segment's number, and an entry's in it.

    Whoever appends and removes says so to the table of `places`; the store itself tells it of what
    it moves.
    """

    def __init__(self, Places places):
        self.segments, self.vacant = [], []
        self.head = self.tail = -1
        self.count = self.dead = 0
        self.places = places

    def __len__(self):
        return self.count

    def __sizeof__(self):
        found = [one for one in self.segments if one is not None]
        total = object.__sizeof__(self)
        for segment in found:
            total += (
                (<Segment>segment).data.nbytes + (<Segment>segment).offset.nbytes
                + (<Segment>segment).alive.nbytes + object.__sizeof__(segment) + 300)
        return total

    # Entries

    cdef int64_t append(
        self, Head* head, Row* row, const char* name, const char* extra, Py_ssize_t extra_length
    ) except -1:
        """One more entry; where it is."""
        cdef Segment last = None if self.tail < 0 else self.segments[self.tail]
        cdef Py_ssize_t n = 0 if row == NULL else row.n, k, most
        cdef uint32_t others
        cdef char* to
        cdef char* values
        if last is None or last.entries == MOST or last.size >= LONGEST:
            if last is not None:
                last.seal()
            self.tail = self.new_segment()
            last = self.segments[self.tail]
        most = sizeof(Head) + head.id_length + 12 * n + marks(n) + extra_length
        if most > LONGEST * 64:
            raise ValueError(f"an event of {most} bytes is too large to be held")
        if last.size + most > last.capacity:
            last.widen(2 * (last.size + most))
        head.n = <int32_t>n
        to = last.text + last.size
        memcpy(to, head, sizeof(Head))
        to += sizeof(Head)
        copy_text(to, name, head.id_length)
        to += head.id_length
        if n:
            memcpy(to, row.slot, 4 * n)
            to += 4 * n
            values = to + marks(n)
            for k in range(0, n, 32):
                others = others_of(row.value + k, min(n - k, 32))
                memcpy(to, &others, 4)
                to += 4
                while others:
                    memcpy(values, row.value + k + lowest(others), 8)
                    values += 8
                    others &= others - 1
            to = values
        if extra_length:
            memcpy(to, extra, extra_length)
        last.is_live[last.entries] = 1
        last.size = to - last.text + extra_length
        last.entries += 1
        last.live += 1
        last.start[last.entries] = <uint32_t>last.size
        self.count += 1
        return self.place(self.tail, last.entries - 1)

    cdef int remove(self, int64_t place) except -1:
        """An entry goes."""
        cdef Py_ssize_t k = number(place)
        cdef Segment one = self.segments[k]
        one.is_live[place & (MOST - 1)] = 0
        one.live -= 1
        self.count -= 1
        self.dead += 1
        if one.live == 0:
            self.dead -= one.entries
            if one.sealed:
                self.unlink(k)
            else:
                one.entries = one.size = one.first = 0
        elif self.dead > self.count + SPARE and self.dead % EVERY == 0:
            self.gather()
        return 0

    cdef int64_t oldest(self):
        """The place of the entry that came first; -1: there is none."""
        cdef Py_ssize_t k = self.head
        cdef Segment one
        while k >= 0:
            one = self.segments[k]
            while one.first < one.entries and not one.is_live[one.first]:
                one.first += 1
            if one.first < one.entries:
                return self.place(k, one.first)
            k = one.after
        return -1

    cdef int64_t next(self, int64_t place):
        """The place of the entry that came after this one; -1: it is the last."""
        cdef Py_ssize_t k = number(place), i = (place & (MOST - 1)) + 1
        cdef Segment one
        while k >= 0:
            one = self.segments[k]
            while i < one.entries and not one.is_live[i]:
                i += 1
            if i < one.entries:
                return self.place(k, i)
            k, i = one.after, 0
        return -1

    cdef const char* read(self, int64_t place, Row* row) noexcept:
        """The id of an entry; its features go to the row's memory, which has room for them."""
        cdef Head head
        cdef const char* name = self.at(place, &head)
        cdef const char* text = name + head.id_length
        cdef const char* bits = text + 4 * head.n
        cdef const char* values = bits + marks(head.n)
        cdef double* value = <double*>row.value
        cdef uint32_t others
        cdef Py_ssize_t k
        memcpy(<int*>row.slot, text, 4 * head.n)
        for k in range(head.n):
            value[k] = 1.0
        for k in range(0, head.n, 32):
            memcpy(&others, bits, 4)
            bits += 4
            while others:
                memcpy(value + k + lowest(others), values, 8)
                values += 8
                others &= others - 1
        row.square = squared(value, head.n)
        return name

    cdef void rewrite(self, int64_t place, Head* head) noexcept:
        """Another head, as long as the one before, for an entry that no checkpoint shares."""
        cdef Segment one = self.segment(place)
        memcpy(one.text + one.start[place & (MOST - 1)], head, sizeof(Head))

    cdef bytes extra(self, int64_t place):
        """What else was said of an entry."""
        cdef Head head
        cdef const char* text = self.at(place, &head) + head.id_length
        cdef Segment one = self.segment(place)
        cdef Py_ssize_t size = 0
        cdef uint32_t others
        text += 4 * head.n
        for _ in range(0, head.n, 32):
            memcpy(&others, text, 4)
            text += 4
            while others:
                size += 8
                others &= others - 1
        text += size
        return text[:one.text + one.start[(place & (MOST - 1)) + 1] - text]

    # Segments

    cdef Py_ssize_t new_segment(self) except -1:
        """The number of a fresh segment, the last in the order."""
        cdef Segment fresh
        cdef Py_ssize_t k, size = 1 << 14
        if self.tail >= 0:  # about as much as the one before
            size = max(size, (<Segment>self.segments[self.tail]).size * 9 // 8)
        fresh = Segment(size)
        if self.vacant:
            k = self.vacant.pop()
            self.segments[k] = fresh
        else:
            k = len(self.segments)
            if k == SEGMENTS:
                raise MemoryError("too many events are held")
            self.segments.append(fresh)
        fresh.before = self.tail
        if self.tail >= 0:
            (<Segment>self.segments[self.tail]).after = k
        else:
            self.head = k
        return k

    cdef int unlink(self, Py_ssize_t k) except -1:
        """A segment of which nothing is left."""
        cdef Segment one = self.segments[k]
        if one.before >= 0:
            (<Segment>self.segments[one.before]).after = one.after
        else:
            self.head = one.after
        if one.after >= 0:
            (<Segment>self.segments[one.after]).before = one.before
        else:
            self.tail = one.before
        self.segments[k] = None
        self.vacant.append(k)
        return 0

    cdef int gather(self) except -1:
        """Unite neighbours of which little is left, the oldest first, until enough has room."""
        cdef Py_ssize_t k = self.head
        while k >= 0 and self.dead > self.count:
            if not self.unite(k):
                k = (<Segment>self.segments[k]).after
        return 0

    cdef bint unite(self, Py_ssize_t k) except -1:
        """Make one of a segment and the next, if together they are not too much."""
        cdef Segment one = self.segments[k], other, fresh
        cdef Py_ssize_t follower = one.after
        if follower < 0 or not one.sealed:
            return False
        other = self.segments[follower]
        if not other.sealed or one.live + other.live > 3 * MOST // 4:
            return False
        if one.size + other.size > LONGEST and one.live + other.live > MOST // 4:
            return False
        fresh = Segment(one.size + other.size)
        fresh.before, fresh.after = one.before, other.after
        self.segments[k] = fresh
        self.take_over(one, k, k)
        self.take_over(other, follower, k)
        self.dead -= one.entries + other.entries - fresh.entries
        fresh.seal()
        if fresh.after >= 0:
            (<Segment>self.segments[fresh.after]).before = k
        else:
            self.tail = k
        self.segments[follower] = None
        self.vacant.append(follower)
        return True

    cdef int take_over(self, Segment old, Py_ssize_t was, Py_ssize_t k) except -1:
        """Copy the live entries of a segment of this number to the end of another."""
        cdef Segment to = self.segments[k]
        cdef Py_ssize_t i, size
        cdef const char* entry
        cdef uint64_t[MOST] tags
        for i in range(old.entries):  # so that no cell of the table is waited for below
            if old.is_live[i]:
                tags[i] = tag_of(old.text + old.start[i], self.places)
                self.places.approach(tags[i])
        for i in range(old.entries):
            if old.is_live[i]:
                entry = old.text + old.start[i]
                size = old.start[i + 1] - old.start[i]
                memcpy(to.text + to.size, entry, size)
                self.places.move(tags[i], self.place(was, i), self.place(k, to.entries))
                to.is_live[to.entries] = 1
                to.size += size
                to.entries += 1
                to.live += 1
                to.start[to.entries] = <uint32_t>to.size
        return 0

    cdef uint64_t tag(self, int64_t place) noexcept:
        """The hash of an entry's id."""
        cdef Segment one = self.segment(place)
        return tag_of(one.text + one.start[place & (MOST - 1)], self.places)

    cdef int restamp(self, double most) except -1:
        """No entry came later than this; those that came at no known time came now."""
        cdef Py_ssize_t k = self.head, i
        cdef Segment one
        cdef double stamp
        while k >= 0:
            one = self.segments[k]
            if one.sealed:
                one.widen(one.size)  # a checkpoint may share the old bytes
            for i in range(one.entries):
                memcpy(&stamp, one.text + one.start[i], sizeof(double))
                if not stamp <= most:
                    memcpy(one.text + one.start[i], &most, sizeof(double))
            k = one.after
        return 0

    cdef int restamp_last(self, Py_ssize_t n, double stamp) except -1:
        """The last n entries came at this time."""
        cdef Py_ssize_t k = self.tail, i
        cdef Segment one
        while k >= 0 and n > 0:
            one = self.segments[k]
            if one.sealed:
                one.widen(one.size)
            for i in range(one.entries - 1, -1, -1):
                if one.is_live[i] and n > 0:
                    memcpy(one.text + one.start[i], &stamp, sizeof(double))
                    n -= 1
            k = one.before
        return 0

    # What a checkpoint keeps

    def state(self):
        """The segments in their order; bytes that change no more are shared, not copied."""
        cdef Py_ssize_t k = self.head
        cdef Segment one
        found = []
        while k >= 0:
            one = self.segments[k]
            data, offset = one.data[:one.size], one.offset
            if not one.sealed:
                data, offset = data.copy(), offset[:one.entries + 1].copy()
            found.append({
                "data": data, "offset": offset, "alive": one.alive[:one.entries].copy()})
            k = one.after
        return found

    def restore(self, state):
        """Take over a state that `state` gave; nothing is held yet."""
        cdef Segment one
        cdef Py_ssize_t k, i
        for saved in state:
            k = self.new_segment()
            one = self.segments[k]
            one.entries = len(saved["alive"])
            one.offset[:one.entries + 1] = saved["offset"]
            one.alive[:one.entries] = saved["alive"]
            one.data = saved["data"]
            one.size = one.data.size
            one.live = int(np.count_nonzero(saved["alive"]))
            one.widen(one.size)
            if self.tail >= 0:
                (<Segment>self.segments[self.tail]).seal()
            self.tail = k
            self.count += one.live
            self.dead += one.entries - one.live
        for k in range(len(self.segments)):
            one = self.segments[k]
            for i in range(one.entries):
                if one.is_live[i]:
                    self.places.enter(self.tag(self.place(k, i)), self.place(k, i))
