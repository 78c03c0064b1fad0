from libc.stdint cimport uint32_t

from streamlearn.features.pieces cimport Piece
from streamlearn.features.reader cimport Reader

cdef struct Cell:
    uint32_t hash
    uint32_t slot  # plus one; 0: free


cdef class Names(Reader):
    cdef Py_ssize_t column_count  # columns 0 .. column_count-1 are the slots of the same number
    cdef list known  # the names of the slots after them
    cdef dict other_slots  # name -> slot for names that are int or tuple
    cdef Cell* cell  # open addressing over the names that are str
    cdef Py_ssize_t cells
    cdef Py_ssize_t text_count  # names that are str
    cdef object mapping  # the last result of columns(), if complete
    cdef readonly object max_names
    cdef readonly object max_bytes
    cdef readonly str on_full
    cdef readonly Py_ssize_t bytes_used  # what the names take, as `max_bytes` counts it
    cdef readonly Py_ssize_t rejected_features  # occurrences of names without a slot of their own
    cdef Py_ssize_t max_slots, byte_limit  # the bounds given to the constructor
    cdef Py_ssize_t limit  # slots for names; fewer than `max_slots` if the bytes ran out first
    cdef Py_ssize_t buckets  # slots for hashed names once the table is full
    cdef bint has_buckets  # hashed names were learned

    cdef Py_ssize_t slot_of_other(self, Py_ssize_t i, bint grow) except -2 with gil
    cdef Py_ssize_t slot_of_new_text(self, Py_ssize_t i, bint grow) except -2 with gil
    cdef Py_ssize_t overflow_slot(self, Py_ssize_t i, bint grow) except -2
    cdef Py_ssize_t slot_of_long_name(self, Piece* p) except -2
    cdef Py_ssize_t find_kept(self, Py_ssize_t i, bint grow) except -2 nogil
    cdef bint has_capacity(self, Py_ssize_t cost) noexcept
    cdef int add_buckets(self) except -1
    cdef bint is_next_column(self, object name) except -1
    cdef bint is_bounded(self) noexcept

    cdef Py_ssize_t find_other(self, object name) except -2
    cdef Py_ssize_t add_text(self, object name, uint32_t hash) except -1
    cdef Py_ssize_t add_other(self, object name) except -1
    cdef Py_ssize_t add(self, object name) except -1
    cdef int rebuild(self, Py_ssize_t cells, Py_ssize_t size) except -1
    cdef int add_stored(self, object saved) except -1
