"""The state of all slots: the numbers of a slot are adjacent, for one rule or for several.

When a table is larger than the CPU caches, an event costs a cache miss for every line that its
slots occupy. Rules that learn from the same rows therefore share one table.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

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

    def __sizeof__(self):
        return object.__sizeof__(self) + self.capacity * self.width * sizeof(double)

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
