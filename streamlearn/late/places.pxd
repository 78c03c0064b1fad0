cimport cython
from libc.stdint cimport int64_t, uint64_t

from streamlearn.features.text cimport hash_text
from streamlearn.core.row cimport prefetch


@cython.final
cdef class Places:
    cdef object cells
    cdef uint64_t* cell
    cdef uint64_t mask
    cdef readonly uint64_t seed
    cdef Py_ssize_t count

    cdef int enter(self, uint64_t tag, int64_t place) except -1
    cdef void move(self, uint64_t tag, int64_t old, int64_t new) noexcept
    cdef void leave(self, uint64_t tag, int64_t place) noexcept
    cdef uint64_t cell_of(self, uint64_t tag, int64_t place) noexcept
    cdef void put(self, uint64_t cell) noexcept
    cdef int widen(self, Py_ssize_t n) except -1

    cdef inline uint64_t hashed(self, const char* name, Py_ssize_t length) noexcept:
        """The hash of an id, its tag: another in every stream, so no one can make two alike."""
        return hash_text(name, length, self.seed)

    cdef inline void approach(self, uint64_t tag) noexcept:
        """This one is asked for soon: its cell is fetched meanwhile."""
        prefetch(self.cell + (tag >> 32 & self.mask))

    cdef inline int64_t probe(self, uint64_t tag, uint64_t* at) noexcept:
        """The next place with the upper half of this tag, from cell `at` on; -1: there is none.

        `at` is the cell in which it is, then.
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

    cdef inline void alter(self, uint64_t at, int64_t place) noexcept:
        """What was said to be elsewhere by this cell is there now."""
        self.cell[at] = self.cell[at] >> 32 << 32 | <uint64_t>(place + 1)
