"""The clock of a stream: the latest plausible time of its records.

The clock does not go back: a record with an earlier time is late, and counts as of now. A record
that is ahead by more than a tenth of `hold_for` may come from a wrong clock, or follow a gap. It is
trusted once as many consecutive records, up to ten, are that far ahead as events would time out.
The clock then moves to the earliest of their times, which also counts as their time of arrival. So
a record ahead of time expires at most one event, and a time in the far future must be confirmed by
ten records.

There is no reference during the first ten records, so an earlier one sets the clock back. Later, a
thousand consecutive records that are all more than `hold_for` behind do so: the clock was wrong.
"""

cimport cython
from libc.math cimport INFINITY, NAN, fmax, isnan

cdef enum:
    BEHIND_RUN = 1000  # consecutive records behind that set the clock back


@cython.final
cdef class Clock:
    """The time of a stream; NaN before the first time."""

    def __init__(self, double hold_for=INFINITY):
        self.max_step = 0.1 * hold_for
        self.hold_for = hold_for
        self.now = NAN
        self.earliest_ahead = INFINITY
        self.latest_behind = -INFINITY

    cdef double proposed(self, double time) noexcept:
        """Return the time to which the clock would move if this record were trusted."""
        if isnan(time) or (self.ahead_count == 0 or time < self.earliest_ahead):
            return time
        return self.earliest_ahead

    cdef bint advance(self, double time, Py_ssize_t would_expire) noexcept:
        """Process the time of a record; return whether the clock was set back or first set.

        would_expire: how many events, up to ten, would time out at `proposed(time)`.
        """
        if isnan(time):
            return False
        self.seen += 1
        if isnan(self.now) or (self.seen <= WARM_UP and time < self.now - self.max_step):
            return self.set_back(time)
        if time < self.now - self.hold_for:
            self.behind_count += 1
            self.latest_behind = fmax(self.latest_behind, time)
            if self.behind_count == BEHIND_RUN:
                return self.set_back(self.latest_behind)
        else:
            self.behind_count = 0
            self.latest_behind = -INFINITY
        if time > self.now + self.max_step:
            self.earliest_ahead = self.proposed(time)
            self.ahead_count += 1
            if self.ahead_count < would_expire:
                return False
            time = self.earliest_ahead
        self.ahead_count = 0
        self.earliest_ahead = INFINITY
        if time > self.now:
            self.now = time
        return False

    cdef bint set_back(self, double time) noexcept:
        self.now = time
        self.ahead_count = self.behind_count = 0
        self.earliest_ahead, self.latest_behind = INFINITY, -INFINITY
        return True

    def state(self):
        """Return the state as plain data."""
        return {name: getattr(self, name) for name in STATE_NAMES}

    def restore(self, state):
        """Resume from `state`."""
        for name in STATE_NAMES:
            setattr(self, name, state[name])


STATE_NAMES = ("now", "earliest_ahead", "latest_behind", "ahead_count", "behind_count", "seen")
