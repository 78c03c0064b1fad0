cimport cython

cdef enum:
    WARM_UP = 10  # records before the clock is trusted


@cython.final
cdef class Clock:
    cdef public double now, earliest_ahead, latest_behind
    cdef double max_step, hold_for
    cdef public Py_ssize_t ahead_count, behind_count, seen
    cdef bint advance(self, double time, Py_ssize_t would_expire) noexcept
    cdef bint set_back(self, double time) noexcept
    cdef double proposed(self, double time) noexcept

    cdef inline bint advance_if_normal(self, double time) noexcept:
        """Process the time of a record if it is close to the clock; otherwise return False.

        `advance` handles all other times.
        """
        if self.ahead_count or self.behind_count or self.seen <= WARM_UP:
            return False
        if not self.now - self.hold_for <= time <= self.now + self.max_step:
            return False
        self.seen += 1
        if time > self.now:
            self.now = time
        return True
