cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.engine.events cimport Tags
from streamlearn.late.incoming cimport IncomingEvents
from streamlearn.late.clock cimport Clock
from streamlearn.late.corrections cimport LearnedTimeouts
from streamlearn.late.held cimport Entry, HeldEvents
from streamlearn.late.joined_rows cimport JoinedRows
from streamlearn.late.id_table cimport IdTable
from streamlearn.late.resolved cimport ResolvedIds
from streamlearn.late.tickets cimport TicketPool
from streamlearn.core.row cimport Row

cdef enum:
    DELAYS = 12


@cython.final
cdef class Join:
    cdef readonly double hold_for
    cdef readonly Py_ssize_t hold_events, hold_bytes
    cdef readonly bint corrections, keep_orphans
    cdef readonly object on_timeout
    cdef readonly HeldEvents pending
    cdef readonly LearnedTimeouts timeouts
    cdef readonly ResolvedIds resolved
    cdef readonly Clock clock
    cdef readonly JoinedRows rows
    cdef readonly list orphans
    cdef IdTable id_table
    cdef IncomingEvents incoming_events, incoming_labels
    cdef TicketPool ticket_pool
    cdef readonly object delays
    cdef int64_t* delay
    cdef readonly double delay_total
    cdef list classes
    cdef dict class_codes
    cdef Tags timeout_tags
    cdef Py_ssize_t known
    cdef double next_expiry  # nothing expires before
    cdef Py_ssize_t unconfirmed  # entries held since records are ahead of the clock
    cdef public int64_t joined, orphaned, timed_out, evicted, corrected, duplicates, repeated

    cdef void prefetch_ahead(self, IncomingEvents incoming, Py_ssize_t i) noexcept
    cdef int process_event(self, IncomingEvents incoming, Py_ssize_t i, bytes origin) except -1
    cdef int process_label(self, IncomingEvents incoming, Py_ssize_t i, bytes origin) except -1
    cdef int join_features(self, Row* row, Tags* tags, uint64_t tag) except -1
    cdef int join_label(self, Tags* tags, uint64_t tag, bytes extra) except -1
    cdef int64_t find(self, uint64_t tag, uint64_t* at) noexcept
    cdef int hold(self, Entry* entry, const void* payload, Row* row) except -1
    cdef int learn(
        self, Entry* entry, HeldEvents held, int64_t place, Tags* tags, int role
    ) except -1
    cdef int resolve(self, int64_t place, uint64_t at, bint correctable) except -1
    cdef int mark_resolved(self, uint64_t at, uint64_t tag, uint8_t kind) except -1
    cdef int correct(self, int64_t place, uint64_t at, uint64_t tag, Tags* tags) except -1
    cdef int forget_id(self, int64_t place) except -1
    cdef int evict(self) except -1
    cdef int time_out(self, int64_t place) except -1
    cdef int drop(self, int64_t place, uint64_t tag) except -1
    cdef int advance(self, double time) except -1
    cdef Py_ssize_t count_expiring(self, double time)
    cdef int expire(self) except -1
    cdef bint is_expired(self, double received_at) noexcept
    cdef int count_delay(self, double seconds) except -1
