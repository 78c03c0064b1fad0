cimport cython


@cython.final
cdef class Clock:
    cdef public double now, least, latest
    cdef double leap, hold_for
    cdef public Py_ssize_t run, behind, seen
    cdef bint moves(self, double time, Py_ssize_t at_stake) noexcept
    cdef bint set_back(self, double time) noexcept
    cdef double proposed(self, double time) noexcept
