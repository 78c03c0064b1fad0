"""A store of held events: compact, in the order in which they came.

An entry is a few bytes in a row: what is known of it, its slots, a bit for each of them, values. A
value of 1 (every name has it) takes no room: its bit says so. Entries lie in segments of half a
megabyte. One that is full never changes again but for which of its entries are live, so a
checkpoint shares its bytes and copies the marks alone. When more has gone than is left, neighbors
are united; one whose neighbor is too large for that is copied alone.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from streamlearn.late.places cimport Places
from streamlearn.core.row cimport Row, squared

import numpy as np

cdef enum:
    FULL = UNITS * UNIT  # bytes of a segment to which no more is added
    LARGEST = 1 << 30  # bytes of an entry
    SMALL = 1 << 12  # bytes of the first segment
    SPARE = 1 << 21  # bytes that may be taken by what has gone
    EVERY = 1024  # entries that go between two looks at that

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #define STREAMLEARN_ONE 0x3ff0000000000000u  /* 1.0 */

    /* Which values are 1 can't be foreseen, so there is no branch for it: each is written, and the
       next one over it if it was a 1. Up to 8 bytes behind the end are written, and read. */

    /* A word of 32 bits for as many values, set for those that are not 1, and then those. */
    static inline char *streamlearn_pack(char *to, const double *value, ptrdiff_t n) {
        char *bits = to;
        to += 4 * ((n + 31) >> 5);
        for (ptrdiff_t from = 0; from < n; from += 32, bits += 4) {
            ptrdiff_t size = n - from < 32 ? n - from : 32;
            uint32_t others = 0;
            for (ptrdiff_t k = 0; k < size; k++) {
                uint64_t bytes;
                memcpy(&bytes, value + from + k, 8);
                memcpy(to, &bytes, 8);
                uint32_t other = bytes != STREAMLEARN_ONE;
                others |= other << k;
                to += 8 * other;
            }
            memcpy(bits, &others, 4);
        }
        return to;
    }

    static inline void streamlearn_unpack(const char *text, double *value, ptrdiff_t n) {
        const char *bits = text;
        text += 4 * ((n + 31) >> 5);
        for (ptrdiff_t from = 0; from < n; from += 32, bits += 4) {
            ptrdiff_t size = n - from < 32 ? n - from : 32;
            uint32_t others;
            memcpy(&others, bits, 4);
            for (ptrdiff_t k = 0; k < size; k++, others >>= 1) {
                uint64_t bytes, other = others & 1;
                memcpy(&bytes, text, 8);
                bytes = STREAMLEARN_ONE ^ ((bytes ^ STREAMLEARN_ONE) & -other);
                memcpy(value + from + k, &bytes, 8);
                text += 8 * other;
            }
        }
    }

    #if defined(__GNUC__)
    #define streamlearn_lowest(bits) __builtin_ctzll(bits)
    #else
    static inline int streamlearn_lowest(uint64_t bits) {
        int k = 0;
        while (!(bits >> k & 1))
            k++;
        return k;
    }
    #endif
    """
    char* pack "streamlearn_pack"(char* to, const double* value, Py_ssize_t n) noexcept
    void unpack "streamlearn_unpack"(const char* text, double* value, Py_ssize_t n) noexcept
    # the place of the lowest bit that is set
    int lowest "streamlearn_lowest"(uint64_t bits) noexcept


cdef object memory(Py_ssize_t capacity):
    """Room for so many bytes of entries, and the few that `pack` needs behind them."""
    return np.empty(capacity + UNIT, dtype=np.uint8)


@cython.final
cdef class Segment:
    """Entries that came one after the other."""

    def __cinit__(self, data):
        self.after = self.before = -1
        self.own(data)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.data.nbytes

    cdef int widen(self, Py_ssize_t capacity) except -1:
        """Room for so many bytes; they lie elsewhere then."""
        data = memory(capacity)
        data[:self.size] = self.data[:self.size]
        self.own(data)
        return 0

    cdef int own(self, data) except -1:
        """The entries are in this array."""
        self.data, self.capacity = data, len(data) - UNIT
        self.text = <char*><size_t>data.ctypes.data
        return 0

    cdef int seal(self) except -1:
        """No more will come: give back what is not needed."""
        self.sealed = True
        if 8 * self.size < 7 * self.capacity:
            self.widen(self.size)
        return 0

    cdef Py_ssize_t next(self, Py_ssize_t unit) noexcept:
        """The first live entry that begins there or later; -1: there is none."""
        cdef Py_ssize_t word = unit >> 6
        cdef uint64_t bits
        if word >= WORDS:
            return -1
        bits = self.alive[word] >> (unit & 63) << (unit & 63)
        while bits == 0:
            word += 1
            if word == WORDS:
                return -1
            bits = self.alive[word]
        return word << 6 | lowest(bits)


@cython.final
cdef class HeldEvents:
    """Held entries; a place is a segment's number, and where in it an entry begins.

    Whoever appends and removes says so to the table of `places`; the store itself tells it of what
    it moves.
    """

    def __init__(self, Places places):
        self.segments, self.vacant = [], []
        self.head = self.tail = -1
        self.places = places

    def __len__(self):
        return self.count

    def __sizeof__(self):
        found = [one.__sizeof__() for one in self.segments if one is not None]
        return object.__sizeof__(self) + sum(found)

    # Entries

    cdef int64_t append(self, Entry* entry, const void* rest, Row* row) except -1:
        """One more entry; where it is.

        It has the features of a row, or (NULL) `entry.n` bytes of something else.
        """
        cdef Py_ssize_t n = entry.n if row == NULL else row.n
        cdef Segment last = self.room_for(sizeof(Entry) + (n if row == NULL else 16 * n) + UNIT)
        cdef char* to = last.text + last.size + sizeof(Entry)
        entry.n = <int>n
        if row == NULL:
            memcpy(to, rest, n)
            to += n
        else:
            memcpy(to, row.slot, 4 * n)
            to = pack(to + 4 * n, row.value, n)
        return self.add(last, entry, to - last.text - last.size)

    cdef int64_t copy(self, Entry* entry) except -1:
        """One more entry, the same as one of another store; where it is."""
        cdef Py_ssize_t size = entry.size * <Py_ssize_t>UNIT
        cdef Segment last = self.room_for(size)
        memcpy(last.text + last.size, entry, size)
        return self.add(last, entry, size)

    cdef Segment room_for(self, Py_ssize_t bytes_of_it):
        """The segment that the next entry goes to, which has room for it."""
        cdef Segment last = None
        if bytes_of_it > LARGEST:
            raise ValueError(f"an event of {bytes_of_it} bytes is too large to be held")
        if self.tail >= 0:
            last = self.segment(self.tail << BITS)
            if last.size < FULL:
                if last.size + bytes_of_it > last.capacity:
                    last.widen(max(last.size, min(2 * last.capacity, FULL)) + bytes_of_it)
                return last
            last.seal()
        size = max(bytes_of_it, <Py_ssize_t>SMALL) if last is None else FULL + bytes_of_it
        self.tail = self.new_segment(memory(size))
        return self.segments[self.tail]

    cdef int64_t add(self, Segment last, Entry* entry, Py_ssize_t bytes_of_it) noexcept:
        """What was written behind the last entry is one now, of so many bytes."""
        cdef Py_ssize_t unit = last.size // UNIT, units = (bytes_of_it + UNIT - 1) // UNIT
        entry.size = <uint32_t>units
        memcpy(last.text + last.size, entry, sizeof(Entry))
        last.mark(unit, True)
        last.live += 1
        last.size += units * UNIT
        last.used += units * UNIT
        self.count += 1
        self.size += units * UNIT
        self.used += units * UNIT
        return self.tail << BITS | unit

    cdef int remove(self, int64_t place) except -1:
        """An entry goes."""
        cdef Segment one = self.segment(place)
        cdef Py_ssize_t unit = place & (UNITS - 1)
        cdef Py_ssize_t size = one.at(unit).size * <Py_ssize_t>UNIT
        one.mark(unit, False)
        one.live -= 1
        one.used -= size
        self.count -= 1
        self.used -= size
        self.removed += 1
        if one.live == 0:
            self.size -= one.size
            if one.sealed:
                self.unlink(place >> BITS)
            else:
                one.size = one.first = 0
        elif self.removed % EVERY == 0 and self.size > 2 * self.used + SPARE:
            self.gather()
        return 0

    cdef int64_t oldest(self):
        """The place of the entry that came first; -1: there is none."""
        cdef Py_ssize_t k = self.head
        cdef Segment one
        while k >= 0:
            one = self.segments[k]
            one.first = one.next(one.first)
            if one.first >= 0:
                return k << BITS | one.first
            one.first = one.size // UNIT
            k = one.after
        return -1

    cdef int64_t next(self, int64_t place):
        """The place of the entry that came after this one; -1: it is the last."""
        cdef Py_ssize_t k = place >> BITS, unit = (place & (UNITS - 1)) + 1
        cdef Segment one
        while k >= 0:
            one = self.segments[k]
            unit = one.next(unit)
            if unit >= 0:
                return k << BITS | unit
            k, unit = one.after, 0
        return -1

    cdef void read(self, int64_t place, Row* row) noexcept:
        """The features of an entry go to the row's memory, which has room for them."""
        cdef Entry* entry = self.at(place)
        cdef const char* text = <const char*>(entry + 1)
        cdef double* value = <double*>row.value
        memcpy(<int*>row.slot, text, 4 * entry.n)
        unpack(text + 4 * entry.n, value, entry.n)
        row.square = squared(value, entry.n)

    cdef bytes rest(self, int64_t place):
        """What else was said of a label."""
        cdef Entry* entry = self.at(place)
        return (<const char*>(entry + 1))[:entry.n]

    # Segments

    cdef Py_ssize_t new_segment(self, data) except -1:
        """The number of a fresh segment in this memory, the last in the order."""
        cdef Segment fresh = Segment(data)
        cdef Py_ssize_t k
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
        """Copy what is left of segments, the oldest first, until enough room is given back."""
        cdef Py_ssize_t k = self.head
        while k >= 0 and self.size > 2 * self.used:
            if not self.unite(k):
                k = (<Segment>self.segments[k]).after
        return 0

    cdef bint unite(self, Py_ssize_t k) except -1:
        """Make one of a segment and the next, or of it alone; whether that was worth it."""
        cdef Segment one = self.segments[k], other, fresh
        cdef Py_ssize_t follower = one.after, used = one.used
        cdef bint both
        if follower < 0 or not one.sealed:
            return False
        other = self.segments[follower]
        both = other.sealed and used + other.used <= 3 * FULL // 4
        if both:
            used += other.used
        elif one.size <= 2 * used:
            return False
        fresh = Segment(memory(used))
        fresh.before, fresh.after, fresh.sealed = one.before, follower, True
        self.segments[k] = fresh
        self.take_over(k, one, k)
        self.size -= one.size
        if both:
            self.take_over(k, other, follower)
            self.size -= other.size
            self.unlink(follower)
        self.size += fresh.size
        return True

    cdef int take_over(self, Py_ssize_t k, Segment old, Py_ssize_t was) except -1:
        """Copy to the end of segment k the live entries of one whose number was this."""
        cdef Segment to = self.segments[k]
        cdef Py_ssize_t unit = old.next(0), size
        cdef Entry* entry
        while unit >= 0:  # so that no cell of the table is waited for below
            self.places.approach(old.at(unit).tag)
            unit = old.next(unit + 1)
        unit = old.next(0)
        while unit >= 0:
            entry = old.at(unit)
            self.places.move(entry.tag, was << BITS | unit, k << BITS | to.size // UNIT)
            to.mark(to.size // UNIT, True)
            size = entry.size * <Py_ssize_t>UNIT
            memcpy(to.text + to.size, entry, size)
            to.size += size
            unit = old.next(unit + 1)
        to.live += old.live
        to.used = to.size
        return 0

    cdef int restamp(self, double most) except -1:
        """No entry came later than this; those that came at no known time came now."""
        cdef int64_t place = self.oldest()
        cdef Segment one = None
        while place >= 0:
            if self.segment(place) is not one:
                one = self.segment(place)
                one.widen(one.capacity)  # a checkpoint may share the old bytes
            if not self.at(place).stamp <= most:
                self.at(place).stamp = most
            place = self.next(place)
        return 0

    cdef int restamp_last(self, Py_ssize_t n, double stamp) except -1:
        """The last n entries came at this time."""
        cdef Py_ssize_t k = self.tail, unit
        cdef Segment one
        while k >= 0 and n > 0:
            one = self.segments[k]
            one.widen(one.capacity)
            places, unit = [], one.next(0)
            while unit >= 0:
                places.append(unit)
                unit = one.next(unit + 1)
            for unit in places[max(len(places) - n, 0):]:
                one.at(unit).stamp = stamp
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
            data = one.data[:one.size]
            found.append({
                "data": data if one.sealed else data.copy(),
                "alive": np.array(<uint64_t[:WORDS]>one.alive)[:(one.size // UNIT + 63) // 64],
                "live": one.live})
            k = one.after
        return found

    def restore(self, state):
        """Take over a state that `state` gave; nothing is held yet."""
        cdef const uint64_t[::1] words
        cdef Segment one
        cdef Py_ssize_t i, unit, size
        for saved in state:
            if self.tail >= 0:
                (<Segment>self.segments[self.tail]).seal()
            self.tail = self.new_segment(memory(len(saved["data"])))
            one = self.segments[self.tail]
            one.size = one.capacity
            one.data[:one.size] = saved["data"]
            words = saved["alive"]
            for i in range(min(len(words), <Py_ssize_t>WORDS)):
                one.alive[i] = words[i]
            unit = one.next(0)
            while unit >= 0:
                if (unit * UNIT + <Py_ssize_t>sizeof(Entry) > one.size
                        or unit + one.at(unit).size > one.size // UNIT):
                    raise ValueError(f"an entry at {unit} of {one.size // UNIT}")
                size = one.at(unit).size * <Py_ssize_t>UNIT
                one.live += 1
                one.used += size
                self.places.enter(one.at(unit).tag, self.tail << BITS | unit)
                unit = one.next(unit + 1)
            self.count += one.live
            self.size += one.size
            self.used += one.used
