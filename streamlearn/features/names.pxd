from libc.stdint cimport uint32_t

from streamlearn.features.pieces cimport Piece
from streamlearn.features.reader cimport Reader

cdef struct Cell:
    uint32_t hash
    uint32_t slot  # plus one; 0: free


cdef class Names(Reader):
    cdef Py_ssize_t own  # columns 0 .. own-1 are those slots: no entries
    cdef list known  # the names of the slots from there on
    cdef dict others  # name -> slot for names that are int or tuple
    cdef Cell* cell  # open addressing over the names that are str
    cdef Py_ssize_t cells
    cdef Py_ssize_t texts  # how many those are
    cdef object mapping  # what columns() gave last, if complete
    cdef readonly object max_names
    cdef readonly object max_bytes
    cdef readonly str on_full
    cdef readonly Py_ssize_t bytes_used  # what the names take, as `max_bytes` counts it
    cdef readonly Py_ssize_t turned_away  # how often a name came too late for a slot of its own
    cdef Py_ssize_t most, most_bytes  # slots of their own, and bytes, by the constructor's call
    cdef Py_ssize_t limit  # slots of their own; fewer than `most`, if the bytes ran out there
    cdef Py_ssize_t buckets  # and of names beyond, by hash; 0: none was learned
    cdef bint crowded  # names beyond were learned

    cdef Py_ssize_t other_slot(self, Py_ssize_t i, bint grow) except -2 with gil
    cdef Py_ssize_t new_text(self, Py_ssize_t i, bint grow) except -2 with gil
    cdef Py_ssize_t late(self, Py_ssize_t i, bint grow) except -2
    cdef Py_ssize_t long_slot(self, Piece* p) except -2
    cdef bint fits(self, Py_ssize_t cost) noexcept
    cdef int crowd(self) except -1
    cdef bint is_next_column(self, object name) except -1
    cdef bint is_bounded(self) noexcept

    cdef Py_ssize_t seek_other(self, object name) except -2
    cdef Py_ssize_t add_text(self, object name, uint32_t hash) except -1
    cdef Py_ssize_t add_other(self, object name) except -1
    cdef Py_ssize_t add(self, object name) except -1
    cdef int rebuild(self, Py_ssize_t cells, Py_ssize_t size) except -1
    cdef int add_saved(self, object saved) except -1
