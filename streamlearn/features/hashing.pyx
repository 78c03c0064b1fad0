"""Features in bounded memory: the slot of a name is its hash."""

import numpy as np

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from streamlearn.features.pieces cimport COLUMN, SLOT, Piece
from streamlearn.features.reader cimport Reader
from streamlearn.features.text cimport hash_text

from streamlearn.features.pieces import canonical_name

cdef extern from "Python.h":
    # of an int that fits it only reads
    long long int_of "PyLong_AsLongLong"(PyObject* number) noexcept nogil


cdef class Hashing(Reader):
    """Features in 2**bits slots; the slot of a name is its hash, identical on every machine.

    Memory is bounded and there are no lookups. In exchange, names may share a slot, and names are
    not stored: weights are reported by slot number. Events and fields are as in Names. The int name
    j (column j of a matrix) is slot j mod 2**bits.

    >>> reader = Hashing(bits=20, fields={"user^ad": "interaction"})
    >>> reader
    Hashing(bits=20, fields={'user^ad': 'interaction'})
    >>> reader.size
    1048576
    >>> reader.read_event({"user": "ann"}) == reader.read_event({"user=ann": 1})
    True
    """

    def __init__(self, bits=20, fields=None):
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 30:
            raise ValueError(f"bits must be an int from 1 to 30, for 2**bits slots, got {bits!r}")
        self.bits = bits
        self.size = 1 << self.bits
        self._set_fields(fields)

    cdef int resolve(self, bint grow) except -1 nogil:
        # local copies, because stores would force these to be reloaded
        cdef uint64_t mask = self.size - 1, hash
        cdef Py_ssize_t i, n = self.n
        cdef int last = -1
        cdef int* slot = self.slot
        cdef int* kept
        cdef const Piece* p = self.piece
        cdef bint repeats = False
        for i in range(n):
            if p.kind == SLOT:
                kept = <int*> <size_t> p.hash
                if kept[0] < 0:
                    kept[0] = <int> (hash_text(self.bytes_at(&p.text), p.text.length, 0) & mask)
                hash = kept[0]
            elif p.kind == COLUMN:
                hash = p.hash if p.name == NULL else <uint64_t> int_of(p.name)
            else:
                hash = hash_text(self.bytes_at(&p.text), p.text.length, 0)
            slot[i] = <int> (hash & mask)
            repeats |= slot[i] <= last  # those that rise are distinct
            last = slot[i]
            p += 1
        self.repeats = repeats
        return 0

    cdef int forget(self, Py_ssize_t size, Py_ssize_t columns) except -1:
        return 0

    cdef Py_ssize_t own_columns(self) noexcept nogil:
        return self.size

    @property
    def params(self):
        """The constructor's parameters, by name."""
        return {"bits": self.bits, **Reader.params.__get__(self)}

    def reserve_columns(self, m):
        """Do nothing: every column has a slot."""

    def columns(self, m, grow=True):
        """Return the slots of columns 0 .. m-1 as an int32 array; None if column j is slot j.

        >>> Hashing(bits=2).columns(6)
        array([0, 1, 2, 3, 0, 1], dtype=int32)
        """
        if m <= self.size:
            return None
        return (np.arange(m) & (self.size - 1)).astype(np.int32)

    def slot_of(self, name):
        """Return the slot of a name, or None if it is not a valid name.

        >>> Hashing(bits=20).slot_of("user=ann")
        812716
        """
        name = canonical_name(name)
        if name is None:
            return None
        if isinstance(name, int):
            return name % self.size
        text = str(name).encode()
        return hash_text(text, len(text), 0) & <uint64_t> (self.size - 1)

    def name_of(self, slot):
        """Return the slot number itself, because names are not stored."""
        if not 0 <= slot < self.size:
            raise IndexError(f"slot must be below {self.size}, got {slot}")
        return slot

    def names(self):
        """Return all slot numbers."""
        return range(self.size)
