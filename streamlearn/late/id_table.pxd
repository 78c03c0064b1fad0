cimport cython
from libc.stdint cimport int64_t, uint64_t

from streamlearn.features.text cimport hash_text
from streamlearn.core.row cimport prefetch


@cython.final
cdef class IdTable:
    cdef object cells
    cdef uint64_t* cell
    cdef uint64_t mask
    cdef readonly uint64_t seed
    cdef Py_ssize_t count

    cdef int add(self, uint64_t tag, int64_t place) except -1
    cdef void move(self, uint64_t tag, int64_t old, int64_t new) noexcept
    cdef void remove(self, uint64_t tag, int64_t place) noexcept
    cdef uint64_t cell_of(self, uint64_t tag, int64_t place) noexcept
    cdef void put(self, uint64_t cell) noexcept
    cdef int grow(self, Py_ssize_t n) except -1

    cdef inline uint64_t hashed(self, const char* name, Py_ssize_t length) noexcept:
        """Return the tag of an id: its hash, seeded differently in every stream."""
        return hash_text(name, length, self.seed)

    cdef inline void prefetch_cell(self, uint64_t tag) noexcept:
        """Prefetch the cell of a tag."""
        prefetch(self.cell + (tag >> 32 & self.mask))

    cdef inline int64_t probe(self, uint64_t tag, uint64_t* at) noexcept:
        """Return the next place with the upper half of a tag, from cell `at` on; -1 if none.

        Set `at` to its cell.
        """
        cdef uint64_t cell, i = at[0]
        while True:
            i &= self.mask
            cell = self.cell[i]
            if cell == 0:
                return -1
            if cell >> 32 == tag >> 32:
                at[0] = i
                return <int64_t>((cell & 0xFFFFFFFFU) - 1)
            i += 1

    cdef inline void replace(self, uint64_t at, int64_t place) noexcept:
        """Replace the place in a cell."""
        self.cell[at] = self.cell[at] >> 32 << 32 | <uint64_t>(place + 1)
