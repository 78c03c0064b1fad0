"""The state of all slots: the numbers of a slot are adjacent, for one rule or for several.

When a table is larger than the CPU caches, an event costs a cache miss for every line that its
slots occupy. Rules that learn from the same rows therefore share one table.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

import numpy as np

from streamlearn.errors import ModelFileError
from streamlearn.rules.copy_buffer import empty

DEF LINE = 64  # bytes of a cache line


cdef object to_array(const double* source, Py_ssize_t n):
    array = empty(n)
    memcpy(<void*><size_t>array.ctypes.data, source, n * sizeof(double))
    return array


cdef int copy_from_array(double* target, array) except -1:
    array = np.ascontiguousarray(array, dtype=float)
    memcpy(target, <const void*><size_t>array.ctypes.data, array.size * sizeof(double))
    return 0


cdef class SlotTable:
    """Rows of `width` numbers, aligned to a cache line."""

    def __init__(self, width):
        self.width = width

    def __dealloc__(self):
        free(self.block)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Reserve n slots; the contents stay, but may move."""
        cdef Py_ssize_t capacity = n if n > 2 * self.capacity else 2 * self.capacity
        cdef size_t size = capacity * self.width * sizeof(double)
        cdef void* block
        cdef double* cells
        if n <= self.capacity:
            return 0
        block = malloc(size + LINE)
        if block == NULL:
            raise MemoryError(f"no memory for {size} bytes of state")
        cells = <double*>((<uintptr_t>block + LINE - 1) // LINE * LINE)
        if self.capacity > 0:
            memcpy(cells, self.cells, self.capacity * self.width * sizeof(double))
        free(self.block)
        self.block = block
        self.cells = cells
        self.capacity = capacity
        return 0

    def copy_columns(self, int offset, int width, Py_ssize_t n):
        """Copy the numbers offset .. offset + width - 1 of slots 0 .. n - 1."""
        cdef double* out
        cdef Py_ssize_t j
        if width == self.width:
            return to_array(self.cells, n * width).reshape(n, width)
        array = empty(n * width)
        out = <double*><size_t>array.ctypes.data
        for j in range(n):
            memcpy(out + j * width, self.cells + j * self.width + offset, width * sizeof(double))
        return array.reshape(n, width)

    def restore_columns(self, int offset, cells):
        """Restore what `copy_columns` returned; ModelFileError if it does not fit."""
        cells = np.ascontiguousarray(cells, dtype=float)
        if cells.ndim != 2 or offset + cells.shape[1] > self.width or len(cells) > self.capacity:
            raise ModelFileError(
                f"the saved state has shape {cells.shape}, but these rules hold at most "
                f"{(self.capacity, self.width - offset)}: load it into the rules that wrote it"
            )
        cdef Py_ssize_t j, n = cells.shape[0], width = cells.shape[1]
        cdef const double* source = <const double*><size_t>cells.ctypes.data
        for j in range(n):
            memcpy(self.cells + j * self.width + offset, source + j * width, width * sizeof(double))

    # -- some slots: rules/moves.py ---------------------------------------------------------------

    def take(self, const int[::1] slots, int width):
        """Copy the first `width` numbers of these slots."""
        cdef Py_ssize_t i, n = slots.shape[0]
        array = empty(n * width)
        cdef double* out = <double*><size_t>array.ctypes.data
        for i in range(n):
            memcpy(
                out + i * width,
                self.cells + <Py_ssize_t>slots[i] * self.width,
                width * sizeof(double),
            )
        return array.reshape(n, width)

    def put(self, const int[::1] slots, const double[:, ::1] rows):
        """Restore what `take` returned."""
        cdef Py_ssize_t i, width = rows.shape[1]
        for i in range(slots.shape[0]):
            memcpy(
                self.cells + <Py_ssize_t>slots[i] * self.width,
                &rows[i, 0],
                width * sizeof(double),
            )

    def put_from(self, const int[::1] slots, const double[:, ::1] cells):
        """Restore these slots from those of all, which `copy_columns` returned."""
        cdef Py_ssize_t i, width = cells.shape[1]
        for i in range(slots.shape[0]):
            memcpy(
                self.cells + <Py_ssize_t>slots[i] * self.width,
                &cells[slots[i], 0],
                width * sizeof(double),
            )

    def mark_changes(self, const double[:, ::1] before, unsigned char[::1] changed):
        """Set the marks of slots whose numbers are not, bit for bit, those of `before`."""
        cdef Py_ssize_t j, n = before.shape[0], width = before.shape[1]
        with nogil:
            for j in range(n):
                if memcmp(self.cells + j * self.width, &before[j, 0], width * sizeof(double)) != 0:
                    changed[j] = 1

    def overlay(
        self,
        const int[::1] places,
        const int[::1] slots,
        const double[:, ::1] rows,
        Py_ssize_t first,
        unsigned char[::1] changed,
    ):
        """Put the rows of `slots`, from the number `first` on, where `places` has these slots.

        Both are in order. Marks the places whose numbers change, and returns where the rows of
        later slots begin.
        """
        cdef Py_ssize_t i = 0, k = first, size = rows.shape[1] * sizeof(double)
        cdef double* cells
        while k < slots.shape[0] and i < places.shape[0]:
            if slots[k] > places[i]:
                i += 1
                continue
            cells = self.cells + i * self.width
            if memcmp(cells, &rows[k, 0], size) != 0:
                memcpy(cells, &rows[k, 0], size)
                changed[i] = 1
            k += 1
        return k
