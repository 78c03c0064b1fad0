cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.engine.events cimport Tags
from streamlearn.late.arrivals cimport Arrivals
from streamlearn.late.clock cimport Clock
from streamlearn.late.held cimport Entry, HeldEvents
from streamlearn.late.joined cimport Joined
from streamlearn.late.places cimport Places
from streamlearn.late.settled cimport ResolvedIds
from streamlearn.late.tickets cimport Tickets
from streamlearn.core.row cimport Row

cdef enum:
    DELAYS = 12


@cython.final
cdef class Join:
    cdef readonly double hold_for
    cdef readonly Py_ssize_t hold_events, hold_bytes
    cdef readonly bint corrections, keep_orphans
    cdef readonly object on_timeout
    cdef readonly HeldEvents waiting, guessed
    cdef readonly ResolvedIds settled
    cdef readonly Clock clock
    cdef readonly Joined rows
    cdef readonly list orphans
    cdef Places places, guesses
    cdef Arrivals of_events, of_labels
    cdef Tickets seats
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

    cdef void approach(self, Arrivals coming, Py_ssize_t i) noexcept
    cdef int one_event(self, Arrivals coming, Py_ssize_t i, bytes origin) except -1
    cdef int one_label(self, Arrivals coming, Py_ssize_t i, bytes origin) except -1
    cdef int take_features(self, Row* row, Tags* tags, uint64_t tag) except -1
    cdef int take_label(self, Tags* tags, uint64_t tag, bytes extra) except -1
    cdef int64_t find(self, uint64_t tag, uint64_t* at) noexcept
    cdef int64_t find_guess(self, uint64_t tag) noexcept
    cdef int hold(self, Entry* entry, const void* rest, Row* row) except -1
    cdef int learn(
        self, Entry* entry, HeldEvents held, int64_t place, Tags* tags, int role
    ) except -1
    cdef int settle(self, int64_t place, uint64_t at, bint guessed) except -1
    cdef int remember(self, uint64_t at, uint64_t tag, uint8_t kind) except -1
    cdef int correct(self, int64_t place, uint64_t at, uint64_t tag, Tags* tags) except -1
    cdef int forget(self, int64_t place) except -1
    cdef int drop_guess(self, int64_t place, uint64_t tag) except -1
    cdef int make_way(self) except -1
    cdef int pass_on(self, int64_t place) except -1
    cdef int let_go(self, int64_t place, uint64_t tag) except -1
    cdef int advance(self, double time) except -1
    cdef Py_ssize_t at_stake(self, double time)
    cdef int expire(self) except -1
    cdef bint is_due(self, double stamp) noexcept
    cdef int count_delay(self, double seconds) except -1
