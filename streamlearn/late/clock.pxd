cimport cython

cdef enum:
    ENOUGH = 10  # records that agree that it is later


@cython.final
cdef class Clock:
    cdef public double now, least, latest
    cdef double leap, hold_for
    cdef public Py_ssize_t run, behind, seen
    cdef bint moves(self, double time, Py_ssize_t at_stake) noexcept
    cdef bint set_back(self, double time) noexcept
    cdef double proposed(self, double time) noexcept

    cdef inline bint goes_on(self, double time) noexcept:
        """See the time of a record, if it is one as most of them are: near the last ones.

        If it is not (False) it is for `moves`.
        """
        if self.run or self.behind or self.seen <= ENOUGH:
            return False
        if not self.now - self.hold_for <= time <= self.now + self.leap:
            return False
        self.seen += 1
        if time > self.now:
            self.now = time
        return True
