"""A compact store of held events, in the order of their arrival.

An entry is a row of bytes: its header, slots, a bit for each slot, values. A value of 1, which
every categorical feature has, takes only its bit. Entries lie in segments of half a megabyte. In a
full segment only the bitmap of live entries changes, so a checkpoint shares its bytes and copies
the bitmap. When more than half of the bytes are dead, neighboring segments are merged; a segment
whose neighbor is too large is copied alone.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from streamlearn.late.id_table cimport IdTable
from streamlearn.core.row cimport Row, squared

import numpy as np

cdef enum:
    FULL = UNITS * UNIT  # bytes of a full segment
    LARGEST = 1 << 30  # bytes of an entry
    SMALL = 1 << 12  # bytes of the first segment
    MAX_GARBAGE = 1 << 21  # bytes that dead entries may take
    COMPACT_EVERY = 1024  # removals between checks for compaction

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #define STREAMLEARN_ONE 0x3ff0000000000000u  /* 1.0 */

    /* Which values are 1 is unpredictable, so there is no branch: each value is written, and
       overwritten by the next one if it was 1. Up to 8 bytes after the end are written and read. */

    /* For each 32 values: a word with the bits of those that are not 1, and then these values. */
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
    # the index of the lowest set bit
    int lowest "streamlearn_lowest"(uint64_t bits) noexcept


cdef object memory(Py_ssize_t capacity):
    """Return memory for entries, and for the few bytes after them that `pack` needs."""
    return np.empty(capacity + UNIT, dtype=np.uint8)


@cython.final
cdef class HeldSegment:
    """Consecutive entries."""

    def __cinit__(self, data):
        self.after = self.before = -1
        self.use_memory(data)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.data.nbytes

    cdef int grow(self, Py_ssize_t capacity) except -1:
        """Move the entries to memory with this capacity."""
        data = memory(capacity)
        data[:self.size] = self.data[:self.size]
        self.use_memory(data)
        return 0

    cdef int use_memory(self, data) except -1:
        """Use this array for the entries."""
        self.data, self.capacity = data, len(data) - UNIT
        self.text = <char*><size_t>data.ctypes.data
        return 0

    cdef int seal(self) except -1:
        """Close the segment for new entries, and free unused memory."""
        self.sealed = True
        if 8 * self.size < 7 * self.capacity:
            self.grow(self.size)
        return 0

    cdef Py_ssize_t next(self, Py_ssize_t unit) noexcept:
        """Return the first live entry at this unit or later; -1 if there is none."""
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
    """Held entries; a place is the number of a segment and the unit at which an entry begins.

    The caller updates the id table when it appends and removes entries. The store updates it when
    it moves entries.
    """

    def __init__(self, IdTable id_table):
        self.segments, self.vacant = [], []
        self.head = self.tail = -1
        self.id_table = id_table

    def __len__(self):
        return self.count

    def __sizeof__(self):
        found = [one.__sizeof__() for one in self.segments if one is not None]
        return object.__sizeof__(self) + sum(found)

    # -- entries --------------------------------------------------------------------------------

    cdef int64_t append(self, Entry* entry, const void* payload, Row* row) except -1:
        """Append an entry, and return its place.

        It has the features of a row, or a payload of `entry.n` bytes if the row is NULL.
        """
        cdef Py_ssize_t n = entry.n if row == NULL else row.n
        cdef HeldSegment last = self.room_for(sizeof(Entry) + (n if row == NULL else 16 * n) + UNIT)
        cdef char* to = last.text + last.size + sizeof(Entry)
        entry.n = <int>n
        if row == NULL:
            memcpy(to, payload, n)
            to += n
        else:
            memcpy(to, row.slot, 4 * n)
            to = pack(to + 4 * n, row.value, n)
        return self.add(last, entry, to - last.text - last.size)

    cdef int64_t copy(self, Entry* entry) except -1:
        """Append a copy of an entry of another store, and return its place."""
        cdef Py_ssize_t size = entry.size * <Py_ssize_t>UNIT
        cdef HeldSegment last = self.room_for(size)
        memcpy(last.text + last.size, entry, size)
        return self.add(last, entry, size)

    cdef HeldSegment room_for(self, Py_ssize_t n_bytes):
        """Return a segment with room for the next entry."""
        cdef HeldSegment last = None
        if n_bytes > LARGEST:
            raise ValueError(f"an event of {n_bytes} bytes is too large to hold")
        if self.tail >= 0:
            last = self.segment(self.tail << BITS)
            if last.size < FULL:
                if last.size + n_bytes > last.capacity:
                    last.grow(max(last.size, min(2 * last.capacity, FULL)) + n_bytes)
                return last
            last.seal()
        size = max(n_bytes, <Py_ssize_t>SMALL) if last is None else FULL + n_bytes
        self.tail = self.new_segment(memory(size))
        return self.segments[self.tail]

    cdef int64_t add(self, HeldSegment last, Entry* entry, Py_ssize_t n_bytes) noexcept:
        """Add the bytes written after the last entry as an entry, and return its place."""
        cdef Py_ssize_t unit = last.size // UNIT, units = (n_bytes + UNIT - 1) // UNIT
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
        """Remove an entry."""
        cdef HeldSegment one = self.segment(place)
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
        elif self.removed % COMPACT_EVERY == 0 and self.size > 2 * self.used + MAX_GARBAGE:
            self.compact()
        return 0

    cdef int64_t oldest(self):
        """Return the place of the oldest entry; -1 if there is none."""
        cdef Py_ssize_t k = self.head
        cdef HeldSegment one
        while k >= 0:
            one = self.segments[k]
            one.first = one.next(one.first)
            if one.first >= 0:
                return k << BITS | one.first
            one.first = one.size // UNIT
            k = one.after
        return -1

    cdef int64_t next(self, int64_t place):
        """Return the place of the next entry; -1 if this is the last one."""
        cdef Py_ssize_t k = place >> BITS, unit = (place & (UNITS - 1)) + 1
        cdef HeldSegment one
        while k >= 0:
            one = self.segments[k]
            unit = one.next(unit)
            if unit >= 0:
                return k << BITS | unit
            k, unit = one.after, 0
        return -1

    cdef void read(self, int64_t place, Row* row) noexcept:
        """Copy the features of an entry to the row's memory, which has room for them."""
        cdef Entry* entry = self.at(place)
        cdef const char* text = <const char*>(entry + 1)
        cdef double* value = <double*>row.value
        memcpy(<int*>row.slot, text, 4 * entry.n)
        unpack(text + 4 * entry.n, value, entry.n)
        row.square = squared(value, entry.n)

    cdef bytes payload(self, int64_t place):
        """Return the payload of a label's entry."""
        cdef Entry* entry = self.at(place)
        return (<const char*>(entry + 1))[:entry.n]

    # -- segments -------------------------------------------------------------------------------

    cdef Py_ssize_t new_segment(self, data) except -1:
        """Append a new segment with this memory, and return its number."""
        cdef HeldSegment fresh = HeldSegment(data)
        cdef Py_ssize_t k
        if self.vacant:
            k = self.vacant.pop()
            self.segments[k] = fresh
        else:
            k = len(self.segments)
            if k == SEGMENTS:
                raise MemoryError("too many held events")
            self.segments.append(fresh)
        fresh.before = self.tail
        if self.tail >= 0:
            (<HeldSegment>self.segments[self.tail]).after = k
        else:
            self.head = k
        return k

    cdef int unlink(self, Py_ssize_t k) except -1:
        """Remove an empty segment."""
        cdef HeldSegment one = self.segments[k]
        if one.before >= 0:
            (<HeldSegment>self.segments[one.before]).after = one.after
        else:
            self.head = one.after
        if one.after >= 0:
            (<HeldSegment>self.segments[one.after]).before = one.before
        else:
            self.tail = one.before
        self.segments[k] = None
        self.vacant.append(k)
        return 0

    cdef int compact(self) except -1:
        """Merge or copy segments, the oldest first, until enough memory is freed."""
        cdef Py_ssize_t k = self.head
        while k >= 0 and self.size > 2 * self.used:
            if not self.merge(k):
                k = (<HeldSegment>self.segments[k]).after
        return 0

    cdef bint merge(self, Py_ssize_t k) except -1:
        """Merge a segment with the next, or copy it alone; return whether that freed enough."""
        cdef HeldSegment one = self.segments[k], other, fresh
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
        fresh = HeldSegment(memory(used))
        fresh.before, fresh.after, fresh.sealed = one.before, follower, True
        self.segments[k] = fresh
        self.copy_live_entries(k, one, k)
        self.size -= one.size
        if both:
            self.copy_live_entries(k, other, follower)
            self.size -= other.size
            self.unlink(follower)
        self.size += fresh.size
        return True

    cdef int copy_live_entries(self, Py_ssize_t k, HeldSegment old, Py_ssize_t was) except -1:
        """Append the live entries of an old segment, whose number was `was`, to segment k."""
        cdef HeldSegment to = self.segments[k]
        cdef Py_ssize_t unit = old.next(0), size
        cdef Entry* entry
        while unit >= 0:  # cells of the table, which are updated below
            self.id_table.prefetch_cell(old.at(unit).tag)
            unit = old.next(unit + 1)
        unit = old.next(0)
        while unit >= 0:
            entry = old.at(unit)
            self.id_table.move(entry.tag, was << BITS | unit, k << BITS | to.size // UNIT)
            to.mark(to.size // UNIT, True)
            size = entry.size * <Py_ssize_t>UNIT
            memcpy(to.text + to.size, entry, size)
            to.size += size
            unit = old.next(unit + 1)
        to.live += old.live
        to.used = to.size
        return 0

    cdef int clamp_times(self, double most) except -1:
        """Set later and unknown times of arrival to this time."""
        cdef int64_t place = self.oldest()
        cdef HeldSegment one = None
        while place >= 0:
            if self.segment(place) is not one:
                one = self.segment(place)
                one.grow(one.capacity)  # a checkpoint may share the old bytes
            if not self.at(place).received_at <= most:
                self.at(place).received_at = most
            place = self.next(place)
        return 0

    cdef int set_last_times(self, Py_ssize_t n, double received_at) except -1:
        """Set the times of arrival of the last n entries."""
        cdef Py_ssize_t k = self.tail, unit
        cdef HeldSegment one
        while k >= 0 and n > 0:
            one = self.segments[k]
            one.grow(one.capacity)
            units, unit = [], one.next(0)
            while unit >= 0:
                units.append(unit)
                unit = one.next(unit + 1)
            for unit in units[max(len(units) - n, 0):]:
                one.at(unit).received_at = received_at
                n -= 1
            k = one.before
        return 0

    # -- state ----------------------------------------------------------------------------------

    def state(self):
        """Return the segments in order; bytes that no longer change are shared."""
        cdef Py_ssize_t k = self.head
        cdef HeldSegment one
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
        """Resume from `state`; the store must be empty."""
        cdef const uint64_t[::1] words
        cdef HeldSegment one
        cdef Py_ssize_t i, unit, size
        for saved in state:
            if self.tail >= 0:
                (<HeldSegment>self.segments[self.tail]).seal()
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
                    raise ValueError(f"the entry at unit {unit} exceeds its segment")
                size = one.at(unit).size * <Py_ssize_t>UNIT
                one.live += 1
                one.used += size
                self.id_table.add(one.at(unit).tag, self.tail << BITS | unit)
                unit = one.next(unit + 1)
            self.count += one.live
            self.size += one.size
            self.used += one.used
