from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from streamlearn.engine.events cimport Events, Tags
from streamlearn.late.clock cimport Clock
from streamlearn.late.held cimport Head, Held
from streamlearn.late.tickets cimport Tickets
from streamlearn.row cimport Row

cdef enum:
    DELAYS = 12


cdef class Joined(Events):
    cdef object role_array, ticket_array
    cdef Py_ssize_t joined_room
    cdef uint8_t* role
    cdef int32_t* ticket
    cdef int enter(self, Row* row, Tags* tags, Py_ssize_t known, int role, int ticket) except -1


cdef class Join:
    cdef readonly double hold_for
    cdef readonly Py_ssize_t hold_events
    cdef readonly bint corrections, keep_orphans
    cdef readonly object on_timeout
    cdef readonly Held waiting, settled
    cdef readonly Clock clock
    cdef readonly Joined rows
    cdef readonly list orphans
    cdef Tickets places
    cdef readonly object delays
    cdef int64_t* delay
    cdef readonly double delay_total
    cdef list classes
    cdef dict codes
    cdef Tags at_timeout
    cdef Py_ssize_t known
    cdef double due  # before it nothing times out
    cdef Py_ssize_t doubted  # held since records have come whose time is not yet believed
    cdef public int64_t joined, orphaned, timed_out, evicted, corrected, duplicates, repeated

    cdef void approach(self, Events events, Py_ssize_t i) noexcept
    cdef int take_features(self, Row* row, Tags* tags) except -1
    cdef int take_label(self, Tags* tags, bytes extra) except -1
    cdef int one_event(self, Events events, Py_ssize_t i, bytes origin) except -1
    cdef int one_label(self, Events events, Py_ssize_t i, bytes origin) except -1
    cdef int advance(self, double time) except -1
    cdef Py_ssize_t at_stake(self, double time)
    cdef int expire(self) except -1
    cdef bint is_due(self, Held held, int64_t place) noexcept
    cdef int pass_on(self, int64_t place, bint at_bound) except -1
    cdef int make_way(self, Held held) except -1
    cdef int settle(
        self, const char* name, Py_ssize_t length, uint64_t tag, Row* row, Head* old, int kind
    ) except -1
    cdef int forget(self, int64_t place, uint64_t tag) except -1
    cdef int learn(self, int64_t place, Head* head, Tags* tags, int role) except -1
    cdef int count_delay(self, double seconds) except -1
