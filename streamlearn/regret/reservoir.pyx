"""A uniform sample of the rows of a stream.

It is Algorithm R of [Vitter85]: of t rows the last one comes in with the probability
capacity / t, to a random place. Random skips say which row is next, so one that does not come in
costs a comparison.

A row that comes in is written to the end of a log, and its place in the sample points there; of the
row that had the place nothing is read, which would be waiting for memory. When the log is full, the
rows that have lost their places are dropped, and the others move together. A snapshot is a
reference to the log and a copy of the places, for a solver in another thread: as long as it is
held, rows move to a new log instead.
"""

cimport cython
from libc.math cimport log, log1p
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove

from cpython.object cimport PyObject

from streamlearn.core.row cimport Row

import numpy as np

# How much longer the log is than the rows that have places: of each row that comes in, one moves.
# With more they would move less often, but new memory costs as much at first.
cdef double ROOMY = 2.0


@cython.final
cdef class Reservoir:
    """A uniform sample, without replacement, of up to `capacity` rows of all that were offered.

    Until it is full it holds all of them, in their order.
    """

    def __init__(self, capacity, seed=0, width=1):
        """`width`: how many numbers a label has."""
        self.capacity = capacity
        self.width = width
        self.random = seed
        self.propose(1.0)
        self.next = capacity
        # The log is two arrays. A row begins with its length and place in one of them, and with
        # its weight and label in the other; then come its slots and values.
        self.header = 1 + width
        self.slot_array = np.empty(0, np.int32)
        self.value_array = np.empty(0)
        # memory is taken page by page, as places are filled
        self.starts = <long long*>calloc(capacity, sizeof(long long))
        if self.starts == NULL:
            raise MemoryError(f"no memory for a sample of {capacity} events")

    def __dealloc__(self):
        free(self.starts)

    cdef double uniform(self) noexcept nogil:
        """A number of (0, 1), by splitmix64."""
        cdef unsigned long long z
        self.random += <unsigned long long>0x9E3779B97F4A7C15
        z = self.random
        z = (z ^ (z >> 30)) * <unsigned long long>0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * <unsigned long long>0x94D049BB133111EB
        z ^= z >> 31
        return (<double>(z >> 11) + 0.5) * (1.0 / 9007199254740992.0)

    cdef void skip(self) noexcept nogil:
        """Draw which row comes in next.

        Rows are proposed with the probability `threshold`, which is a little higher than that of
        any row to come and serves for many draws; so a draw takes one logarithm.
        """
        cdef double highest
        while True:
            highest = self.capacity / (self.next + 2.0)
            if not highest <= self.threshold <= 1.05 * highest:
                self.propose(highest)
            self.next += 1 + <long long>(log(self.uniform()) * self.stretch)
            if self.uniform() * self.threshold < self.capacity / (self.next + 1.0):
                return

    cdef void propose(self, double threshold) noexcept nogil:
        self.threshold = threshold
        self.stretch = 1.0 / log1p(-threshold)

    cdef void offer(
        self, Row* row, const double* y, double weight, long long passed
    ) noexcept nogil:
        """Take the row if it is its turn, as it was not that of the rows that passed before."""
        self.seen += passed
        if self.wait() == 1:
            self.admit(row, y, weight)
        self.seen += 1

    cdef long long wait(self) noexcept nogil:
        """How many rows from now on the next one is that comes in: 1 for the very next."""
        return 1 if self.seen < self.capacity else self.next - self.seen + 1

    cdef void admit(self, Row* row, const double* y, double weight) noexcept nogil:
        """Take the row, and say when it is the next one's turn."""
        if self.seen >= self.capacity:
            self.write(<Py_ssize_t>(self.uniform() * self.capacity), row, y, weight)
            self.skip()
            return
        self.write(self.places, row, y, weight)
        if self.seen == self.capacity - 1:
            self.next = self.seen
            self.skip()

    cdef void write(self, Py_ssize_t k, Row* row, const double* y, double weight) noexcept nogil:
        """The row has the place k from now on."""
        cdef Py_ssize_t i, size = self.header + row.n
        if self.failed:
            return
        if self.used + size > self.room:
            with gil:
                try:
                    self.make_room(size)
                except MemoryError:
                    self.failed = True
                    return
        cdef int* slots = self.slots + self.used
        cdef double* values = self.values + self.used
        slots[0] = <int>row.n
        slots[1] = <int>k
        values[0] = weight
        for i in range(self.width):
            values[1 + i] = y[i]
        memcpy(slots + self.header, row.slot, row.n * sizeof(int))
        memcpy(values + self.header, row.value, row.n * sizeof(double))
        self.starts[k] = self.used
        self.used += size
        self.places += k == self.places

    cdef int make_room(self, Py_ssize_t n) except -1:
        """Drop the rows that have lost their places, so that n more entries fit."""
        if self.lent():
            self.move_to(np.empty(self.room, np.int32), np.empty(self.room))
        else:
            self.move_to(self.slot_array, self.value_array)
        cdef Py_ssize_t room = max(<Py_ssize_t>(ROOMY * (self.used + n)), 1024)
        if self.places >= 256:
            # for all that will come, now that rows tell their length: pages are taken as they fill
            room = max(room, <Py_ssize_t>(ROOMY * self.used / self.places * self.capacity))
        if not 0.8 * room <= self.room <= 1.5 * room:
            self.move_to(np.empty(room, np.int32), np.empty(room))
        return 0

    cdef bint lent(self):
        """Whether a snapshot looks at the log."""
        return (<PyObject*>self.slot_array).ob_refcnt > 1

    cdef int move_to(self, slots, values) except -1:
        """Make these arrays the log, of the rows that have places; they may be those of now."""
        cdef int* to_slots = <int*>at(slots)
        cdef double* to_values = <double*>at(values)
        cdef Py_ssize_t size, start = 0, used = 0
        cdef int* row
        while start < self.used:
            row = self.slots + start
            size = self.header + row[0]
            if self.starts[row[1]] == start:
                self.starts[row[1]] = used
                memmove(to_slots + used, row, size * sizeof(int))
                memmove(to_values + used, self.values + start, size * sizeof(double))
                used += size
            start += size
        self.slot_array, self.value_array = slots, values
        self.slots, self.values = to_slots, to_values
        self.used, self.room = used, len(slots)
        return 0

    @property
    def full(self):
        """Whether rows were left out."""
        return self.seen > self.capacity

    @property
    def size(self):
        """How many rows are here."""
        return self.places

    def snapshot(self):
        """Where the rows are now: `gathered` reads them, in any thread."""
        starts = np.empty(self.places, np.int64)
        memcpy(at(starts), self.starts, self.places * sizeof(long long))
        return {
            "slots": self.slot_array,
            "values": self.value_array,
            "starts": starts,
            "width": self.width,
        }

    def mirror(self):
        """The two classes changed places."""
        cdef Py_ssize_t k, i
        # not in a log that a snapshot looks at
        self.move_to(np.empty(self.room, np.int32), np.empty(self.room))
        for k in range(self.places):
            for i in range(1, self.header):
                self.values[self.starts[k] + i] *= -1.0

    def state(self):
        """All of it as plain data and arrays."""
        return {
            "capacity": self.capacity,
            "width": self.width,
            "seen": self.seen,
            "next": self.next,
            "threshold": self.threshold,
            "random": self.random,
            **gathered(self.snapshot()),
        }

    def restore(self, state):
        """Go on from `state`, to the bit."""
        cdef Py_ssize_t k, used = 0, n = len(state["lengths"])
        if state["capacity"] != self.capacity or state["width"] != self.width or n > self.capacity:
            raise ValueError(
                f"the saved sample is of {state['capacity']} events with {state['width']} labels "
                f"each, this one of {self.capacity} with {self.width}: keep the same memory"
            )
        lengths = np.ascontiguousarray(state["lengths"], np.int32)
        weights = np.ascontiguousarray(state["weights"], float)
        labels = np.ascontiguousarray(state["labels"], float)
        slots = np.ascontiguousarray(state["slots"], np.int32)
        values = np.ascontiguousarray(state["values"], float)
        if (
            (lengths < 0).any()
            or not len(slots) == len(values) == lengths.sum()
            or len(weights) != n
            or labels.size != n * self.width
        ):
            raise ValueError("the saved sample is damaged: its arrays do not fit one another")
        self.seen, self.next = state["seen"], state["next"]
        self.random = state["random"]
        self.propose(state["threshold"])
        self.failed = n < min(self.seen, self.capacity)
        self.used = self.places = 0
        self.make_room(len(slots) + n * self.header)
        cdef const int* length = <const int*>at(lengths)
        cdef const double* weight = <const double*>at(weights)
        cdef const double* label = <const double*>at(labels)
        cdef const int* slot = <const int*>at(slots)
        cdef const double* value = <const double*>at(values)
        cdef Row row
        row.square = 0.0  # nobody asks
        for k in range(n):
            row.n, row.slot, row.value = length[k], slot + used, value + used
            self.write(k, &row, label + k * self.width, weight[k])
            used += length[k]


def gathered(rows):
    """The rows of a snapshot in the order of their places, one after another."""
    cdef Py_ssize_t k, used = 0, n = len(rows["starts"]), width = rows["width"]
    cdef const long long* start = <const long long*>at(rows["starts"])
    cdef const int* slot = <const int*>at(rows["slots"])
    cdef const double* value = <const double*>at(rows["values"])
    lengths, weights, labels = np.empty(n, np.int32), np.empty(n), np.empty((n, width))
    cdef int* length = <int*>at(lengths)
    cdef double* weight = <double*>at(weights)
    cdef double* label = <double*>at(labels)
    with nogil:
        for k in range(n):
            length[k] = slot[start[k]]
            weight[k] = value[start[k]]
            memcpy(label + k * width, value + start[k] + 1, width * sizeof(double))
            used += length[k]
    slots, values = np.empty(used, np.int32), np.empty(used)
    cdef int* to_slot = <int*>at(slots)
    cdef double* to_value = <double*>at(values)
    used = 0
    with nogil:
        for k in range(n):
            memcpy(to_slot + used, slot + start[k] + 1 + width, length[k] * sizeof(int))
            memcpy(to_value + used, value + start[k] + 1 + width, length[k] * sizeof(double))
            used += length[k]
    return {
        "slots": slots, "values": values, "lengths": lengths, "weights": weights, "labels": labels,
    }
