"""The stream's own clock: the latest time that its records tell, and that can be believed.

It does not go back: a record with an earlier time comes late, and counts as of now. A record that
is further ahead than a tenth of `hold_for` may be one of a clock that is wrong, or the first after
a gap. It is believed when as many records in a row, up to ten, are so far ahead as events would
time out by it; the clock then goes to the earliest of them, as of when they came. So one record
times out one event at most, unless it comes at its time, and one from next year nothing that ten
others do not confirm.

Among the first ten records there is no "now" to measure by: there an earlier one sets it back.
Later a thousand in a row do that which are all more than `hold_for` behind: the clock was wrong.
"""

cimport cython
from libc.math cimport INFINITY, NAN, fmax, isnan

cdef enum:
    MANY = 1000  # records that agree that it is earlier


@cython.final
cdef class Clock:
    """The time of a stream, NaN before a record has told one."""

    def __init__(self, double hold_for=INFINITY):
        self.leap = 0.1 * hold_for
        self.hold_for = hold_for
        self.now = NAN
        self.least = INFINITY
        self.latest = -INFINITY

    cdef double proposed(self, double time) noexcept:
        """Where the clock would go, if this record were believed."""
        if isnan(time) or (self.run == 0 or time < self.least):
            return time
        return self.least

    cdef bint moves(self, double time, Py_ssize_t at_stake) noexcept:
        """See the time of a record; whether the clock was set back or for the first time.

        at_stake: how many events would time out at `proposed(time)`, up to ten.
        """
        if isnan(time):
            return False
        self.seen += 1
        if isnan(self.now) or (self.seen <= ENOUGH and time < self.now - self.leap):
            return self.set_back(time)
        if time < self.now - self.hold_for:
            self.behind += 1
            self.latest = fmax(self.latest, time)
            if self.behind == MANY:
                return self.set_back(self.latest)
        else:
            self.behind = 0
            self.latest = -INFINITY
        if time > self.now + self.leap:
            self.least = self.proposed(time)
            self.run += 1
            if self.run < at_stake:
                return False
            time = self.least
        self.run = 0
        self.least = INFINITY
        if time > self.now:
            self.now = time
        return False

    cdef bint set_back(self, double time) noexcept:
        self.now = time
        self.run = self.behind = 0
        self.least, self.latest = INFINITY, -INFINITY
        return True

    def state(self):
        """What a checkpoint keeps."""
        return {name: getattr(self, name) for name in NAMES}

    def restore(self, state):
        """Go on from there."""
        for name in NAMES:
            setattr(self, name, state[name])


NAMES = ("now", "least", "latest", "run", "behind", "seen")
