"""The numbers of all slots: those of a slot side by side, of one rule or of several.

Once a table has outgrown the caches, an event costs a miss for every line of memory that its slots
lie in; so rules that learn the same rows share one table.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

import numpy as np

from streamlearn.errors import ModelFileError
from streamlearn.rules.copies import space

DEF LINE = 64  # bytes of a line of the cache


cdef void* room(void* block, size_t size) except NULL:
    block = realloc(block, size if size > 0 else 1)
    if block == NULL:
        raise MemoryError(f"no memory for {size} bytes of state")
    return block


cdef object copied(const double* source, Py_ssize_t n):
    array = space(n)
    memcpy(<void*><size_t>array.ctypes.data, source, n * sizeof(double))
    return array


cdef int paste(double* target, array) except -1:
    array = np.ascontiguousarray(array, dtype=float)
    memcpy(target, <const void*><size_t>array.ctypes.data, array.size * sizeof(double))
    return 0


cdef class SlotTable:
    """Rows of `width` numbers, from the start of a line of the cache on."""

    def __init__(self, width):
        self.width = width

    def __dealloc__(self):
        free(self.block)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.capacity * self.width * sizeof(double)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for n slots; what was there stays, perhaps at another place."""
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

    def part(self, int offset, int width, Py_ssize_t n):
        """The numbers offset .. offset + width - 1 of slots 0 .. n - 1, a copy."""
        cdef double* out
        cdef Py_ssize_t j
        if width == self.width:
            return copied(self.cells, n * width).reshape(n, width)
        array = space(n * width)
        out = <double*><size_t>array.ctypes.data
        for j in range(n):
            memcpy(out + j * width, self.cells + j * self.width + offset, width * sizeof(double))
        return array.reshape(n, width)

    def paste(self, int offset, cells):
        """Put back what `part` gave; ModelFileError for what does not fit here."""
        cells = np.ascontiguousarray(cells, dtype=float)
        if cells.ndim != 2 or offset + cells.shape[1] > self.width or len(cells) > self.capacity:
            raise ModelFileError(
                f"not the state of these rules: {cells.shape} numbers, where there is room for "
                f"{(self.capacity, self.width - offset)}"
            )
        cdef Py_ssize_t j, n = cells.shape[0], width = cells.shape[1]
        cdef const double* source = <const double*><size_t>cells.ctypes.data
        for j in range(n):
            memcpy(self.cells + j * self.width + offset, source + j * width, width * sizeof(double))
