"""A uniform sample of the events of a stream, in a limited memory.

Every position in the stream has a key, a hash of the position and a seed. The sample consists of
the events whose key is at most a threshold: the k smallest keys (bottom-k sampling, [Cohen07]). So
membership depends on nothing but the position, samples of parts of a stream merge, and the events
with keys below half of the threshold are a uniform half of the sample.

Events are packed into segments of half a megabyte. Until the memory is full the threshold admits
every event. Then it is lowered by a fifth, and full segments drop their events above it one at a
time, as new ones need the room; a sample is always used up to the threshold. A full segment is
replaced and never changed, so a checkpoint or a solver in another thread shares its bytes.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from streamlearn.core.random cimport GOLDEN_GAMMA, mix64
from streamlearn.core.row cimport Row

import numpy as np

cdef enum:
    SEGMENT = 1 << 19  # bytes
    CELL_BYTES = 14  # of the cell and the slope of a learner's score, with its position
    SLACK = 8  # bytes that may be written after a row
    LARGE = 200_000  # events of a sample that says enough by itself
    # how the values of a row are stored
    ONES = 0
    BYTES = 1
    SINGLES = 2
    DOUBLES = 3  # those that are not 1, after a bit for each value
    # flags
    SHORT_SLOTS = 4
    WEIGHT_ONE = 8
    SMALL_LABEL = 16

cdef double KEPT = 0.8  # share of the threshold that is left when it is lowered
cdef uint64_t ALL = 0xFFFFFFFFFFFFFFFFULL


cdef struct Header:  # of a packed row; the label, the weight, slots and values follow
    int64_t position
    uint32_t n
    uint32_t size  # bytes of the row, with the header
    uint8_t flags


cdef enum:
    HEADER = 17  # bytes of a Header without padding


cdef inline void read_header(const char* text, Header* header) noexcept nogil:
    memcpy(&header.position, text, 8)
    memcpy(&header.n, text + 8, 4)
    memcpy(&header.size, text + 12, 4)
    header.flags = <uint8_t>text[16]


cdef int kind_of(const double* value, Py_ssize_t n) noexcept nogil:
    """Return the smallest exact form of these values."""
    cdef Py_ssize_t i = 0
    cdef bint small = True, single = True
    while i < n and value[i] == 1.0:
        i += 1
    if i == n:
        return ONES
    for i in range(n):
        if not (0.0 < value[i] < 256.0 and value[i] == <double><uint8_t>value[i]):
            small = False
            break
    if small:
        return BYTES
    for i in range(n):
        if not -1e38 < value[i] < 1e38 or value[i] != <double><float>value[i]:
            single = False
            break
    return SINGLES if single else DOUBLES


cdef char* pack_values(char* to, const double* value, Py_ssize_t n, int kind) noexcept nogil:
    """Write values, and return where they end; up to SLACK bytes after it are overwritten."""
    cdef Py_ssize_t i
    cdef char* bits = to
    cdef float single
    cdef bint other
    if kind == BYTES:
        for i in range(n):
            to[i] = <char><uint8_t>value[i]
        return to + n
    if kind == SINGLES:
        for i in range(n):
            single = <float>value[i]
            memcpy(to + 4 * i, &single, 4)
        return to + 4 * n
    if kind == DOUBLES:
        to += (n + 7) >> 3
        for i in range(n):
            if i & 7 == 0:
                bits[i >> 3] = 0
            other = value[i] != 1.0
            bits[i >> 3] |= other << (i & 7)
            memcpy(to, value + i, 8)
            to += 8 * other
    return to


cdef void unpack_values(const char* text, double* value, Py_ssize_t n, int kind) noexcept nogil:
    cdef Py_ssize_t i
    cdef const char* bits = text
    cdef float single
    if kind == ONES:
        for i in range(n):
            value[i] = 1.0
    elif kind == BYTES:
        for i in range(n):
            value[i] = <double><uint8_t>text[i]
    elif kind == SINGLES:
        for i in range(n):
            memcpy(&single, text + 4 * i, 4)
            value[i] = single
    else:
        text += (n + 7) >> 3
        for i in range(n):
            value[i] = 1.0
            if bits[i >> 3] >> (i & 7) & 1:
                memcpy(value + i, text, 8)
                text += 8


@cython.final
cdef class Reservoir:
    """A uniform sample, without replacement, of as many events as fit into the memory.

    Parameters
    ----------
    memory_bytes
        The memory for the events and the learners' losses of them; None: keep all events.
    seed
        Of the keys.
    width
        The number of values of a label.
    """

    def __init__(self, memory_bytes=64_000_000, seed=0, width=1):
        self.memory_bytes, self.seed, self.width = memory_bytes, seed, width
        self.threshold = ALL
        self.learners = 1
        self.sealed = []
        self.tail = np.empty(0, np.uint8)
        self.segment_size = SEGMENT
        if memory_bytes is not None:
            self.segment_size = max(min(memory_bytes // 32, SEGMENT), 256)

    cdef void record(
        self, int64_t position, Row* row, const double* y, double weight
    ) noexcept nogil:
        """Append an event of the sample."""
        cdef Py_ssize_t i, n = row.n
        cdef Py_ssize_t needed = HEADER + 8 * (self.width + 1) + 13 * n + SLACK
        cdef int bits = 0
        cdef int flags = kind_of(row.value, n)
        cdef uint32_t size = <uint32_t>n
        cdef uint16_t slot
        cdef char* start
        cdef char* to
        if self.failed:
            return
        if self.used + needed > self.room:
            with gil:
                try:
                    self.seal(needed)
                except MemoryError:
                    self.failed = True
                    return
            if not self.has(position):  # the threshold was lowered
                return
        start = self.text + self.used
        to = start + HEADER
        memcpy(start, &position, 8)
        memcpy(start + 8, &size, 4)
        if self.width == 1 and (y[0] == 1.0 or y[0] == -1.0 or y[0] == 0.0):
            flags |= SMALL_LABEL
            to[0] = <char><int>y[0]
            to += 1
        else:
            memcpy(to, y, 8 * self.width)
            to += 8 * self.width
        if weight == 1.0:
            flags |= WEIGHT_ONE
        else:
            memcpy(to, &weight, 8)
            to += 8
        for i in range(n):
            bits |= row.slot[i]
        if bits < 65536:
            flags |= SHORT_SLOTS
            for i in range(n):
                slot = <uint16_t>row.slot[i]
                memcpy(to + 2 * i, &slot, 2)
            to += 2 * n
        else:
            memcpy(to, row.slot, 4 * n)
            to += 4 * n
        to = pack_values(to, row.value, n, flags & 3)
        size = <uint32_t>(to - start)
        memcpy(start + 12, &size, 4)
        start[16] = <char>flags
        self.used += size
        self.tail_rows += 1

    cdef int seal(self, Py_ssize_t needed) except -1:
        """Close the last segment, and begin one with room for a row."""
        if self.tail_rows:
            self.sealed.append((self.tail[:self.used], self.tail_rows))
            self.sealed_bytes += self.used
            self.rows += self.tail_rows
            self.tail_rows = self.used = 0
            self.note_size()
        self.tail = np.empty(max(needed, self.segment_size), np.uint8)
        self.text = <char*>at(self.tail)
        self.room = len(self.tail)
        self.shrink()
        return 0

    cdef int note_size(self) except -1:
        """Note whether the memory is for a large sample, by the rows so far."""
        cdef double per_row = self.sealed_bytes / <double>self.rows + CELL_BYTES * self.learners
        self.large = self.memory_bytes is None or self.memory_bytes >= LARGE * per_row
        return 0

    cdef int shrink(self) except -1:
        """Lower the threshold and drop events, until the memory suffices."""
        if self.memory_bytes is None:
            return 0
        while self.sealed_bytes > 0 and self.bytes > self.memory_bytes:
            if self.cursor >= len(self.sealed):
                self.cursor = 0
            if self.cursor == 0:
                self.threshold = <uint64_t>(KEPT * <double>self.threshold)
            self.compact_next()
        return 0

    cdef int compact_next(self) except -1:
        """Drop the events above the threshold from the segment at the cursor."""
        cdef Py_ssize_t offset = 0, used = 0, rows = 0, size
        cdef Header header
        data, before = self.sealed[self.cursor]
        cdef const char* text = <const char*>at(data)
        cdef Py_ssize_t end = len(data)
        kept = np.empty(end, np.uint8)
        cdef char* to = <char*>at(kept)
        with nogil:
            while offset < end:
                read_header(text + offset, &header)
                size = header.size
                if self.has(header.position):
                    memcpy(to + used, text + offset, size)
                    used += size
                    rows += 1
                offset += size
        self.sealed_bytes += used - end
        self.rows += rows - <Py_ssize_t>before
        kept = kept[:used].copy()
        if self.cursor > 0:
            last, its_rows = self.sealed[self.cursor - 1]
            if len(last) + used <= self.segment_size:
                merged = (np.concatenate([last, kept]), its_rows + rows)
                self.sealed[self.cursor - 1 : self.cursor + 1] = [merged]
                return 0
        self.sealed[self.cursor] = (kept, rows)
        self.cursor += 1
        return 0

    @property
    def bytes(self):
        """The memory in use, with the cells of the learners' scores."""
        return (
            self.sealed_bytes + len(self.tail)
            + CELL_BYTES * self.learners * (self.rows + self.tail_rows)
        )

    @property
    def full(self):
        """Whether events were left out."""
        return self.threshold != ALL

    def snapshot(self):
        """Return the current sample, which `gather_rows` reads in any thread."""
        segments = [data for data, _ in self.sealed]
        segments.append(self.tail[:self.used].copy())
        return {
            "segments": segments, "threshold": self.threshold, "seed": self.seed,
            "width": self.width,
        }

    def begin(self, threshold):
        """Forget all events, and admit those with keys up to this threshold."""
        self.threshold = threshold
        self.sealed = []
        self.cursor = self.sealed_bytes = self.rows = self.tail_rows = self.used = 0

    def join(self, snapshots):
        """Add samples of other events of the stream, whose keys have the same seed."""
        cdef const char* text
        cdef Py_ssize_t offset, end
        cdef Header header
        for snapshot in snapshots:
            if (snapshot["seed"], snapshot["width"]) != (self.seed, self.width):
                raise ValueError("samples of another seed, or of other labels, do not join")
            self.threshold = min(self.threshold, snapshot["threshold"])
        for snapshot in snapshots:
            for data in snapshot["segments"]:
                text, offset, end = <const char*>at(data), 0, len(data)
                while offset < end:
                    read_header(text + offset, &header)
                    if self.has(header.position):
                        if self.used + <Py_ssize_t>header.size > self.room:
                            self.seal(header.size)
                        memcpy(self.text + self.used, text + offset, header.size)
                        self.used += header.size
                        self.tail_rows += 1
                    offset += header.size

    def swap_classes(self):
        """Swap the two classes: labels change their sign."""
        snapshot = self.snapshot()
        copies = [data.copy() for data in snapshot["segments"]]
        cdef char* text
        cdef Py_ssize_t offset, end, i
        cdef Header header
        cdef double label
        for data in copies:
            text, offset, end = <char*>at(data), 0, len(data)
            while offset < end:
                read_header(text + offset, &header)
                if header.flags & SMALL_LABEL:
                    text[offset + HEADER] = -text[offset + HEADER]
                else:
                    for i in range(self.width):
                        memcpy(&label, text + offset + HEADER + 8 * i, 8)
                        label = -label
                        memcpy(text + offset + HEADER + 8 * i, &label, 8)
                offset += header.size
        self.sealed = [(copy, rows) for copy, (_, rows) in zip(copies, self.sealed)]
        self.tail[:self.used] = copies[-1]

    def state(self):
        """Return everything as plain data and arrays; only the last segment is copied."""
        return {
            "seed": self.seed,
            "width": self.width,
            "threshold": self.threshold,
            "cursor": self.cursor,
            "rows": [rows for _, rows in self.sealed] + [self.tail_rows],
            "segments": self.snapshot()["segments"],
        }

    def restore(self, state):
        """Resume from `state`; a smaller memory drops events, a larger one admits no more."""
        if state["width"] != self.width:
            raise ValueError(
                f"the saved sample has labels of {state['width']} values, this one of {self.width}"
            )
        *sealed, tail = zip(state["segments"], state["rows"], strict=True)
        for data, rows in (*sealed, tail):
            if count_rows(data) != rows:
                raise ValueError("the saved sample of events is damaged: its rows do not match")
        self.seed, self.threshold = state["seed"], state["threshold"]
        self.sealed, self.cursor = sealed, state["cursor"]
        self.sealed_bytes = sum(len(data) for data, _ in sealed)
        self.rows = sum(rows for _, rows in sealed)
        self.tail_rows = self.used = 0
        self.seal(len(tail[0]) + SLACK)
        self.tail[:len(tail[0])] = tail[0]
        self.used, self.tail_rows = len(tail[0]), tail[1]


def count_rows(data):
    """Return the number of rows in a segment; -1 if it is not a sequence of rows."""
    cdef const char* text = <const char*>at(data)
    cdef Py_ssize_t offset = 0, rows = 0, end = len(data)
    cdef Header header
    while offset < end:
        if offset + HEADER > end:
            return -1
        read_header(text + offset, &header)
        if header.size < HEADER or offset + header.size > end or 2 * header.n > header.size:
            return -1
        offset += header.size
        rows += 1
    return rows


def keys_of(positions, seed):
    """Return the keys of these positions."""
    cdef Py_ssize_t k, n = len(positions)
    cdef const int64_t* position = <const int64_t*>at(positions)
    cdef uint64_t start = seed
    keys = np.empty(n, np.uint64)
    cdef uint64_t* key = <uint64_t*>at(keys)
    for k in range(n):
        key[k] = mix64(start + <uint64_t>position[k] * GOLDEN_GAMMA)
    return keys


def gather_rows(snapshot, levels=1, offset=0):
    """Return the rows of a snapshot as arrays of a CSR matrix, ordered by level.

    Level k ends at `ends[k]`: the rows before it have keys up to the threshold / 2^(levels - 1 - k)
    and are a uniform sample too. Within a level rows have the order of the stream. `offset` is
    added to the slots, which leaves room for an intercept: if it is 1, each row begins with a 1 in
    slot 0.
    """
    cdef uint64_t seed = snapshot["seed"], threshold = snapshot["threshold"], key
    cdef Py_ssize_t width = snapshot["width"], several = levels, first = offset
    cdef Py_ssize_t i, k, level, start, end, row, entry
    cdef Header header
    cdef const char* text
    cdef const char* here
    cdef uint16_t slot16
    limits = np.array([threshold >> (several - 1 - k) for k in range(several)], np.uint64)
    row_counts, entry_counts = np.zeros(several + 1, np.int64), np.zeros(several + 1, np.int64)
    cdef const uint64_t* limit = <const uint64_t*>at(limits)
    cdef int64_t* row_count = <int64_t*>at(row_counts)
    cdef int64_t* entry_count = <int64_t*>at(entry_counts)
    for data in snapshot["segments"]:
        text, start, end = <const char*>at(data), 0, len(data)
        with nogil:
            while start < end:
                read_header(text + start, &header)
                start += header.size
                key = mix64(seed + <uint64_t>header.position * GOLDEN_GAMMA)
                if key > threshold:
                    continue
                level = 0
                while key > limit[level]:
                    level += 1
                row_count[level + 1] += 1
                entry_count[level + 1] += header.n + first
    row_ends, entry_ends = np.cumsum(row_counts), np.cumsum(entry_counts)
    cdef Py_ssize_t rows = row_ends[several], entries = entry_ends[several]
    next_rows, next_entries = row_ends.copy(), entry_ends.copy()
    cdef int64_t* next_row = <int64_t*>at(next_rows)
    cdef int64_t* next_entry = <int64_t*>at(next_entries)
    ends = np.zeros(rows + 1, np.int64)
    slots, values = np.empty(entries, np.int32), np.empty(entries)
    labels, weights = np.empty((rows, width)), np.ones(rows)
    positions = np.empty(rows, np.int64)
    cdef int64_t* row_end = <int64_t*>at(ends)
    cdef int* slot = <int*>at(slots)
    cdef double* value = <double*>at(values)
    cdef double* label = <double*>at(labels)
    cdef double* weight = <double*>at(weights)
    cdef int64_t* position = <int64_t*>at(positions)
    for data in snapshot["segments"]:
        text, start, end = <const char*>at(data), 0, len(data)
        with nogil:
            while start < end:
                read_header(text + start, &header)
                here = text + start + HEADER
                start += header.size
                key = mix64(seed + <uint64_t>header.position * GOLDEN_GAMMA)
                if key > threshold:
                    continue
                level = 0
                while key > limit[level]:
                    level += 1
                row, entry = next_row[level], next_entry[level]
                position[row] = header.position
                if header.flags & SMALL_LABEL:
                    label[row] = <double>(<signed char>here[0])
                    here += 1
                else:
                    memcpy(label + row * width, here, 8 * width)
                    here += 8 * width
                if not header.flags & WEIGHT_ONE:
                    memcpy(weight + row, here, 8)
                    here += 8
                if first:
                    slot[entry], value[entry] = 0, 1.0
                    entry += 1
                if header.flags & SHORT_SLOTS:
                    for i in range(header.n):
                        memcpy(&slot16, here + 2 * i, 2)
                        slot[entry + i] = <int>slot16 + <int>first
                    here += 2 * <Py_ssize_t>header.n
                else:
                    memcpy(slot + entry, here, 4 * <Py_ssize_t>header.n)
                    here += 4 * <Py_ssize_t>header.n
                    if first:
                        for i in range(header.n):
                            slot[entry + i] += 1
                unpack_values(here, value + entry, header.n, header.flags & 3)
                entry += header.n
                next_row[level], next_entry[level] = row + 1, entry
                row_end[row + 1] = entry
    return {
        "slots": slots, "values": values, "indptr": ends, "weights": weights, "labels": labels,
        "positions": positions, "ends": row_ends[1:],
    }
