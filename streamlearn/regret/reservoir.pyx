"""A uniform sample of the rows of a stream.

This is Algorithm R of [Vitter85]: the t-th row enters with probability
capacity / t and replaces a random row. Random skips choose the next row to enter, so other rows
cost a comparison.

A row that enters is appended to a log, and its place in the sample points there. The replaced row
is not read, which would wait for memory. When the log is full, replaced rows are dropped and the
others move together. A snapshot is a reference to the log and a copy of the places, for a solver in
another thread. While it exists, rows move to a new log instead.
"""

cimport cython
from libc.math cimport log, log1p
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove

from cpython.object cimport PyObject

from streamlearn.core.random cimport next64
from streamlearn.core.row cimport Row

import numpy as np

# The log's size relative to its live rows: for each row that enters, one moves. With a larger
# factor rows move less often, but the first use of memory costs as much.
cdef double LOG_FACTOR = 2.0


@cython.final
cdef class Reservoir:
    """A uniform sample, without replacement, of up to `capacity` of the rows offered.

    Until it is full it has all of them, in order.
    """

    def __init__(self, capacity, seed=0, width=1):
        """`width`: the number of values of a label."""
        self.capacity = capacity
        self.width = width
        self.random = seed
        self.propose(1.0)
        self.next = capacity
        # The log is two arrays. A row starts with its length and place in one of them, and with its
        # weight and label in the other; its slots and values follow.
        self.header = 1 + width
        self.slot_array = np.empty(0, np.int32)
        self.value_array = np.empty(0)
        # The system provides memory page by page, as places are filled.
        self.starts = <long long*>calloc(capacity, sizeof(long long))
        if self.starts == NULL:
            raise MemoryError(f"no memory for a sample of {capacity} events")

    def __dealloc__(self):
        free(self.starts)

    cdef double uniform(self) noexcept nogil:
        """Return a number in (0, 1), by splitmix64."""
        return (<double>(next64(&self.random) >> 11) + 0.5) * (1.0 / 9007199254740992.0)

    cdef void skip(self) noexcept nogil:
        """Draw the next row to enter.

        Rows are proposed with the probability `threshold`, slightly above that of any later row,
        which is reused for many draws; so a draw takes one logarithm.
        """
        cdef double highest
        while True:
            highest = self.capacity / (self.next + 2.0)
            if self.threshold > 1.05 * highest:
                self.propose(highest)
            self.next += 1 + <long long>(log(self.uniform()) * self.inverse_log)
            if self.uniform() * self.threshold < self.capacity / (self.next + 1.0):
                return

    cdef void propose(self, double threshold) noexcept nogil:
        self.threshold = threshold
        self.inverse_log = 1.0 / log1p(-threshold)

    cdef void offer(
        self, Row* row, const double* y, double weight, long long passed
    ) noexcept nogil:
        """Admit the row if it is the next to enter; `passed` rows before it were not."""
        self.seen += passed
        if self.wait() == 1:
            self.admit(row, y, weight)
        self.seen += 1

    cdef long long wait(self) noexcept nogil:
        """Return the distance to the next row that enters: 1 is the very next row."""
        return 1 if self.seen < self.capacity else self.next - self.seen + 1

    cdef void admit(self, Row* row, const double* y, double weight) noexcept nogil:
        """Write the row into the sample, and draw the next row to enter."""
        if self.seen >= self.capacity:
            self.write(<Py_ssize_t>(self.uniform() * self.capacity), row, y, weight)
            self.skip()
            return
        self.write(self.filled, row, y, weight)
        if self.seen == self.capacity - 1:
            self.next = self.seen
            self.skip()

    cdef void write(self, Py_ssize_t k, Row* row, const double* y, double weight) noexcept nogil:
        """Append the row to the log as that of place k."""
        cdef Py_ssize_t i, size = self.header + row.n
        if self.failed:
            return
        if self.log_used + size > self.log_size:
            with gil:
                try:
                    self.compact(size)
                except MemoryError:
                    self.failed = True
                    return
        cdef int* slots = self.slots + self.log_used
        cdef double* values = self.values + self.log_used
        slots[0] = <int>row.n
        slots[1] = <int>k
        values[0] = weight
        for i in range(self.width):
            values[1 + i] = y[i]
        memcpy(slots + self.header, row.slot, row.n * sizeof(int))
        memcpy(values + self.header, row.value, row.n * sizeof(double))
        self.starts[k] = self.log_used
        self.log_used += size
        self.filled += k == self.filled

    cdef int compact(self, Py_ssize_t n) except -1:
        """Drop replaced rows, so that n more entries fit."""
        if self.is_shared():
            self.rewrite_log(np.empty(self.log_size, np.int32), np.empty(self.log_size))
        else:
            self.rewrite_log(self.slot_array, self.value_array)
        cdef Py_ssize_t room = max(<Py_ssize_t>(LOG_FACTOR * (self.log_used + n)), 1024)
        if self.filled >= 256:
            # Enough rows to estimate the final size; pages are provided as they fill.
            room = max(room, <Py_ssize_t>(LOG_FACTOR * self.log_used / self.filled * self.capacity))
        if not 0.8 * room <= self.log_size <= 1.5 * room:
            self.rewrite_log(np.empty(room, np.int32), np.empty(room))
        return 0

    cdef bint is_shared(self):
        """Return whether a snapshot refers to the log."""
        return (<PyObject*>self.slot_array).ob_refcnt > 1

    cdef int rewrite_log(self, slots, values) except -1:
        """Move the live rows to these arrays, which become the log; they may be its own."""
        cdef int* to_slots = <int*>at(slots)
        cdef double* to_values = <double*>at(values)
        cdef Py_ssize_t size, start = 0, used = 0
        cdef int* row
        while start < self.log_used:
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
        self.log_used, self.log_size = used, len(slots)
        return 0

    @property
    def full(self):
        """Whether rows were left out."""
        return self.seen > self.capacity

    @property
    def size(self):
        """The number of rows in the sample."""
        return self.filled

    def snapshot(self):
        """Return references to the current rows, which `gather_rows` reads in any thread."""
        starts = np.empty(self.filled, np.int64)
        memcpy(at(starts), self.starts, self.filled * sizeof(long long))
        return {
            "slots": self.slot_array,
            "values": self.value_array,
            "starts": starts,
            "width": self.width,
        }

    def swap_classes(self):
        """Swap the two classes."""
        cdef Py_ssize_t k, i
        # A new log, because a snapshot may refer to this one.
        self.rewrite_log(np.empty(self.log_size, np.int32), np.empty(self.log_size))
        for k in range(self.filled):
            for i in range(1, self.header):
                self.values[self.starts[k] + i] *= -1.0

    def state(self):
        """Return everything as plain data and arrays."""
        return {
            "capacity": self.capacity,
            "width": self.width,
            "seen": self.seen,
            "next": self.next,
            "threshold": self.threshold,
            "random": self.random,
            **gather_rows(self.snapshot()),
        }

    def restore(self, state):
        """Resume from `state`, bit for bit."""
        cdef Py_ssize_t k, used = 0, n = len(state["lengths"])
        if state["capacity"] != self.capacity or state["width"] != self.width or n > self.capacity:
            raise ValueError(
                f"the saved sample has {state['capacity']} events with {state['width']} labels "
                f"each, this one has {self.capacity} with {self.width}; use the same sample_size"
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
            raise ValueError("the saved sample is damaged: its arrays do not match")
        self.seen, self.next = state["seen"], state["next"]
        self.random = state["random"]
        self.propose(state["threshold"])
        self.failed = n < min(self.seen, self.capacity)
        self.log_used = self.filled = 0
        self.compact(len(slots) + n * self.header)
        cdef const int* length = <const int*>at(lengths)
        cdef const double* weight = <const double*>at(weights)
        cdef const double* label = <const double*>at(labels)
        cdef const int* slot = <const int*>at(slots)
        cdef const double* value = <const double*>at(values)
        cdef Row row
        row.square = 0.0  # not used
        for k in range(n):
            row.n, row.slot, row.value = length[k], slot + used, value + used
            self.write(k, &row, label + k * self.width, weight[k])
            used += length[k]


def gather_rows(rows):
    """Return the rows of a snapshot in the order of their places."""
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
