"""The join of features and labels: what is held, for how long, and when it is learned.

Events enter in the order of their records. The rows to predict and learn (`rows`) depend only on
that order and the times of the records, not on the machine's clock or on where a batch ends.

- Features are predicted, and held under their id. When the label arrives, they are learned as they
  were. A label that arrives first is held too.
- An entry held for longer than `hold_for` on the stream's clock (`Clock`) times out: features are
  learned with the label `on_timeout`, or dropped; a label becomes an orphan. When `hold_events` or
  `hold_bytes` is reached, the oldest entry is evicted as if it timed out.
- Within the same bounds, the id of a learned event is kept. Another label for it is a duplicate, or
  a correction of the timeout's label if `corrections` is on.
"""

import math
import secrets
import sys

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport INFINITY, NAN, fmin, isnan
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamlearn.engine.events cimport CLASS, INT, UNLABELED, Events, Kind, Tags
from streamlearn.features.reader cimport Reader
from streamlearn.late.incoming cimport AHEAD, IncomingEvents
from streamlearn.late.clock cimport Clock
from streamlearn.late.corrections cimport LearnedTimeouts
from streamlearn.late.held cimport Entry, HeldEvents
from streamlearn.late.joined_rows cimport TO_CORRECT, TO_LEARN, TO_PREDICT, TO_TIME_OUT, JoinedRows
from streamlearn.late.id_table cimport IdTable
from streamlearn.late.resolved cimport RESOLVED, CORRECTABLE, ResolvedIds, is_resolved
from streamlearn.late.tickets cimport TicketPool
from streamlearn.core.row cimport Row

import numpy as np

from streamlearn.core.invalid_record import InvalidRecord
from streamlearn.engine.events import LABEL_KINDS
from streamlearn.errors import NO_ID, ModelFileError

DROP = "drop"
LAYOUT = 1  # of the state
# Upper bounds of the delay histogram, in seconds from features to label; the last bin has no bound.
BOUNDS = (
    1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 21600.0, 86400.0, 604800.0, 2592000.0)

cdef double EXACT = 9007199254740992.0  # 2**53: a float64 is exact for integers up to here

cdef enum:
    PREFETCH_ENTRY = 8  # events ahead
    FEATURES = UNLABELED  # the kind of an entry with features; other kinds are those of labels


@cython.final
cdef class Join:
    """Join features and labels by id.

    Parameters
    ----------
    hold_events
        How many entries may be held, and how many resolved ids are kept.
    hold_for
        How many seconds of the stream's clock entries are held; None: until they are evicted.
    on_timeout
        `"drop"`, or the label to learn when a timeout occurs.
    corrections
        Whether a label that arrives after the timeout is learned, and the timeout's label undone.
    keep_orphans
        Whether the origins of labels without features are collected in `orphans`.
    hold_bytes
        How many bytes may be held, and how many kept for corrections; one event may exceed it.
    """

    def __init__(
        self, hold_events, hold_for=None, on_timeout=DROP, corrections=False, keep_orphans=False,
        hold_bytes=sys.maxsize,
    ):
        whole = isinstance(hold_events, (int, np.integer)) and not isinstance(hold_events, bool)
        if not whole or hold_events < 1:
            raise ValueError(f"hold_events must be an integer >= 1, not {hold_events!r}")
        hold = math.inf if hold_for is None else hold_for
        number = isinstance(hold, (int, float, np.integer, np.floating))
        if not number or isinstance(hold, (bool, np.timedelta64)) or not hold > 0.0:
            raise ValueError(f"hold_for must be seconds > 0 or None, not {hold_for!r}")
        if on_timeout is None or on_timeout != on_timeout:
            raise ValueError(f"on_timeout must be \"drop\" or a label, not {on_timeout!r}")
        if corrections and on_timeout == DROP:
            raise ValueError("corrections need a label for on_timeout, not \"drop\"")
        if hold_events > 1 << 28:
            raise ValueError(f"hold_events must be at most 2**28, not {hold_events!r}")
        self.hold_events, self.hold_for, self.hold_bytes = hold_events, hold, hold_bytes
        self.on_timeout, self.corrections, self.keep_orphans = on_timeout, corrections, keep_orphans
        self.ticket_pool = TicketPool()
        self.clear_tables(secrets.randbits(64))
        self.incoming_events, self.incoming_labels = IncomingEvents(), IncomingEvents()
        self.clock = Clock(hold)
        self.rows = JoinedRows()
        self.classes = self.rows.classes
        self.class_codes = {}
        self.orphans = []
        self.set_delay_counts(np.zeros(DELAYS, dtype=np.int64))
        self.set_timeout_label()
        self.next_expiry = INFINITY

    def clear_tables(self, seed):
        """Start with empty tables."""
        self.id_table = IdTable(seed)
        self.pending, self.resolved = HeldEvents(self.id_table), ResolvedIds()
        self.timeouts = LearnedTimeouts(seed, self.ticket_pool)

    def set_timeout_label(self):
        """Encode the label of timeouts."""
        cdef Kind kind = kind_of(self.on_timeout)
        self.timeout_tags.kind = kind
        if isinstance(self.on_timeout, str) and self.on_timeout == DROP:
            self.timeout_tags.kind = UNLABELED
        elif kind != CLASS:
            self.timeout_tags.label = self.on_timeout
        else:
            self.timeout_tags.label = self.class_code(self.on_timeout)

    def class_code(self, label):
        """Return the number of a class; a new class gets the next one."""
        found = self.class_codes.get(label)
        if found is None:
            found = self.class_codes[label] = len(self.classes)
            self.classes.append(label)
        return found

    def set_delay_counts(self, counts):
        """Use this array for the delay histogram."""
        self.delays = counts
        self.delay = <int64_t*><size_t>self.delays.ctypes.data

    def clear(self):
        """Clear the rows after they were learned."""
        self.rows.clear()
        self.orphans = []
        self.ticket_pool.recycle()

    # -- input ----------------------------------------------------------------------------------

    def add_records(self, Events events, Events label_events, is_label, origins=None):
        """Add events, and labels from records of their own, in the order of all records.

        `is_label` marks the records of labels. `origins` has the origin of each record, to be kept
        in `orphans` if it is a label without features.
        """
        label_flags = np.ascontiguousarray(is_label, dtype=np.uint8)
        cdef const uint8_t* side = <const uint8_t*><size_t>label_flags.ctypes.data
        cdef Py_ssize_t k, i = 0, j = 0, of_event = 0, of_label = 0, n = len(label_flags)
        self.incoming_events.load(events, self.id_table)
        self.incoming_labels.load(label_events, self.id_table)
        for k in range(n):
            self.rows.records = k
            origin = None if origins is None else origins[k]
            if side[k]:
                if j < label_events.n and label_events.record[j] == of_label:
                    self.prefetch_ahead(self.incoming_labels, j)
                    self.process_label(self.incoming_labels, j, origin)
                    j += 1
                of_label += 1
            else:
                if i < events.n and events.record[i] == of_event:
                    self.prefetch_ahead(self.incoming_events, i)
                    self.process_event(self.incoming_events, i, origin)
                    i += 1
                of_event += 1

    cdef void prefetch_ahead(self, IncomingEvents incoming, Py_ssize_t i) noexcept:
        """Prefetch for events after event i: first table cells, then the entries they refer to."""
        cdef Py_ssize_t later = i + AHEAD
        cdef int64_t place
        cdef uint64_t at
        if later < incoming.n:
            self.id_table.prefetch_cell(incoming.tag[later])
        later = i + PREFETCH_ENTRY
        if later < incoming.n and incoming.events.kind[later] != UNLABELED:
            at = incoming.tag[later] >> 32
            place = self.id_table.probe(incoming.tag[later], &at)
            if place >= 0 and not is_resolved(place):
                self.pending.prefetch_entry(place)

    def add_events(self, Events events):
        """Add events without a label, and labels among them."""
        cdef Py_ssize_t i
        self.incoming_events.load(events, self.id_table)
        for i in range(events.n):
            self.rows.records = <Py_ssize_t>events.record[i]
            self.prefetch_ahead(self.incoming_events, i)
            self.process_event(self.incoming_events, i, None)

    cdef int process_event(self, IncomingEvents incoming, Py_ssize_t i, bytes origin) except -1:
        cdef Events events = incoming.events
        cdef Row row
        cdef Tags tags
        if events.kind[i] != UNLABELED:
            return self.process_label(incoming, i, origin)
        incoming.fill(i, &tags)
        if tags.id == NULL:
            events.invalid.append(InvalidRecord(<Py_ssize_t>events.record[i], None, "id", NO_ID))
            return 0
        self.known = max(self.known, <Py_ssize_t>events.known[i])
        events.row(i, &row)
        return self.join_features(&row, &tags, incoming.tag[i])

    cdef int process_label(self, IncomingEvents incoming, Py_ssize_t i, bytes origin) except -1:
        cdef Events events = incoming.events
        cdef Tags tags
        incoming.fill(i, &tags)
        if tags.kind == UNLABELED or tags.id == NULL:
            code, why = ("id", NO_ID) if tags.id == NULL else ("label", "there is no label")
            events.invalid.append(InvalidRecord(<Py_ssize_t>events.record[i], None, code, why))
            return 0
        if tags.kind == CLASS:  # a decoder numbers classes by itself
            tags.label = self.class_code(events.classes[<Py_ssize_t>tags.label])
        return self.join_label(&tags, incoming.tag[i], origin)

    def add_event(self, Reader reader, event, bytes key, double time, double weight):
        """Add a Python event, which `reader` reads."""
        cdef Tags tags
        reader.read(event, True)
        tags.kind, tags.label, tags.weight, tags.time = UNLABELED, NAN, weight, time
        tags.id, tags.id_length = PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)
        self.known = max(self.known, reader.size)
        self.join_features(&reader.row, &tags, self.id_table.hashed(tags.id, tags.id_length))

    def add_label(self, label, bytes key, double time):
        """Add a Python label."""
        cdef Tags tags
        tags.kind = kind_of(label)
        tags.label = self.class_code(label) if tags.kind == CLASS else label
        tags.weight, tags.time = 1.0, time
        tags.id, tags.id_length = PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)
        self.join_label(&tags, self.id_table.hashed(tags.id, tags.id_length), None)

    cdef int join_features(self, Row* row, Tags* tags, uint64_t tag) except -1:
        cdef Entry entry
        cdef Entry* held = NULL
        cdef int64_t place
        cdef uint64_t at
        cdef int ticket
        self.advance(tags.time)
        place = self.find(tag, &at)
        if place < 0:
            self.evict()
            ticket = self.ticket_pool.acquire()
            new_entry(&entry, tag, self.clock.now, tags, tags.weight, ticket, FEATURES)
            self.hold(&entry, NULL, row)
            return self.rows.add_row(row, tags, self.known, TO_PREDICT, ticket)
        if not is_resolved(place):
            held = self.pending.at(place)
        if held == NULL or held.kind == FEATURES:
            self.repeated += 1
            return self.rows.add_row(row, tags, self.known, TO_PREDICT, -1)
        # The label arrived first.
        ticket = self.ticket_pool.acquire()
        self.rows.add_row(row, tags, self.known, TO_PREDICT, ticket)
        self.count_delay(0.0)
        self.joined += 1
        tags.kind = <Kind>held.kind
        tags.label = held.number
        self.rows.add_row(row, tags, self.known, TO_LEARN, ticket)
        self.ticket_pool.release(ticket)
        return self.resolve(place, at, False)

    cdef int join_label(self, Tags* tags, uint64_t tag, bytes extra) except -1:
        cdef Entry entry
        cdef Entry* held
        cdef int64_t place
        cdef uint64_t at
        self.advance(tags.time)
        place = self.find(tag, &at)
        if place < 0:
            self.evict()
            new_entry(&entry, tag, self.clock.now, tags, tags.label, -1, tags.kind)
            payload = extra if self.keep_orphans and extra is not None else b""
            entry.n = <int>len(payload)
            return self.hold(&entry, PyBytes_AS_STRING(payload), NULL)
        if is_resolved(place):
            return self.correct(place, at, tag, tags)
        held = self.pending.at(place)
        if held.kind != FEATURES:
            self.duplicates += 1
            return 0
        self.joined += 1
        self.count_delay(
            (self.clock.now - held.received_at) if isnan(tags.time - held.time)
            else tags.time - held.time)
        self.learn(held, self.pending, place, tags, TO_LEARN)
        return self.resolve(place, at, False)

    # -- lookup ---------------------------------------------------------------------------------

    cdef int64_t find(self, uint64_t tag, uint64_t* at) noexcept:
        """Return the place of the id with this hash, and its cell; -1 if it is unknown.

        Only the hash of an id is stored, with a secret seed. Two ids are confused if all 64 bits
        are equal: for one new id in 10^13 if a million are stored.
        """
        cdef int64_t place
        at[0] = tag >> 32
        while True:
            place = self.id_table.probe(tag, at)
            if place < 0:
                return place
            if tag == (
                self.resolved.tag(place) if is_resolved(place) else self.pending.at(place).tag
            ):
                return place
            at[0] += 1

    cdef int hold(self, Entry* entry, const void* payload, Row* row) except -1:
        """Hold features or a label under a new id."""
        self.id_table.add(entry.tag, self.pending.append(entry, payload, row))
        self.next_expiry = fmin(self.next_expiry, entry.received_at + self.hold_for)
        self.unconfirmed += self.clock.ahead_count > 0
        return 0

    # -- outcomes -------------------------------------------------------------------------------

    cdef int learn(
        self, Entry* entry, HeldEvents held, int64_t place, Tags* tags, int role
    ) except -1:
        """Learn held features with a label."""
        cdef Row row
        cdef Tags label_tags = tags[0]
        label_tags.weight = entry.number
        self.rows.offer(&row, entry.n, label_tags.id_length)
        held.read(place, &row)
        return self.rows.add_row(&row, &label_tags, self.known, role, entry.ticket)

    cdef int resolve(self, int64_t place, uint64_t at, bint correctable) except -1:
        """Resolve a learned entry, whose id has the cell `at`; keep it if it may be corrected."""
        cdef Entry* entry = self.pending.at(place)
        if correctable:
            self.timeouts.keep(entry)
        elif entry.ticket >= 0:
            self.ticket_pool.release(entry.ticket)
        self.mark_resolved(at, entry.tag, CORRECTABLE if correctable else RESOLVED)
        return self.pending.remove(place)

    cdef int mark_resolved(self, uint64_t at, uint64_t tag, uint8_t kind) except -1:
        """Mark an id as resolved."""
        self.id_table.replace(at, self.resolved.append(tag, self.clock.now, kind))
        while (self.resolved.count > self.hold_events
               or self.timeouts.events.used > self.hold_bytes and self.resolved.count > 1):
            self.forget_id(self.resolved.oldest())
        self.next_expiry = fmin(self.next_expiry, self.clock.now + self.hold_for)
        return 0

    cdef int correct(self, int64_t place, uint64_t at, uint64_t tag, Tags* tags) except -1:
        """Handle a label for a resolved id: a correction of a timeout, or a duplicate."""
        cdef HeldEvents held = self.timeouts.events
        cdef int64_t kept = -1
        # As in Python, 0, 0.0 and False are equal.
        same = (tags.kind == CLASS) == (self.timeout_tags.kind == CLASS) and (
            tags.label == self.timeout_tags.label)
        if self.resolved.kind(place) == CORRECTABLE and self.corrections and not same:
            kept = self.timeouts.find(tag)
        if kept < 0 or held.at(kept).ticket < 0:
            self.duplicates += 1
            return 0
        self.corrected += 1
        self.learn(held.at(kept), held, kept, tags, TO_CORRECT)
        self.timeouts.drop(kept)
        self.resolved.remove(place)
        return self.mark_resolved(at, tag, RESOLVED)

    cdef int forget_id(self, int64_t place) except -1:
        """Forget a resolved id."""
        cdef uint64_t tag = self.resolved.tag(place)
        self.id_table.prefetch_cell(self.resolved.tag_ahead())
        if self.resolved.kind(place) == CORRECTABLE:
            self.timeouts.drop(self.timeouts.find(tag))
        self.id_table.remove(tag, place)
        return self.resolved.remove(place)

    cdef int evict(self) except -1:
        """Evict the oldest entries until one more can be held."""
        while (self.pending.count >= self.hold_events  # repeatedly if the bound was lowered
               or self.pending.used > self.hold_bytes and self.pending.count):
            self.evicted += 1
            self.time_out(self.pending.oldest())
        return 0

    cdef int time_out(self, int64_t place) except -1:
        """Time out an entry."""
        cdef Entry* entry = self.pending.at(place)
        if entry.kind != FEATURES:
            self.orphaned += 1
            if self.keep_orphans and (origin := self.pending.payload(place)):
                self.orphans.append(origin)  # empty if held while orphans were not kept
            return self.drop(place, entry.tag)
        self.timed_out += 1
        if self.timeout_tags.kind == UNLABELED:
            self.ticket_pool.release(entry.ticket)
            return self.drop(place, entry.tag)
        self.timeout_tags.time = entry.time
        self.learn(entry, self.pending, place, &self.timeout_tags, TO_TIME_OUT)
        return self.resolve(place, self.id_table.cell_of(entry.tag, place), self.corrections)

    cdef int drop(self, int64_t place, uint64_t tag) except -1:
        """Drop a pending entry."""
        self.id_table.remove(tag, place)
        return self.pending.remove(place)

    cdef int count_delay(self, double seconds) except -1:
        cdef Py_ssize_t i, k = 0
        for i in range(DELAYS - 1):  # without an unpredictable branch
            k += seconds > BOUND[i]
        if seconds > 0.0:  # negative if clocks disagree
            self.delay_total += seconds
        self.delay[k] += 1
        return 0

    # -- time -----------------------------------------------------------------------------------

    cdef int advance(self, double time) except -1:
        """Advance the clock to a record's time, and expire what is due before the record."""
        cdef Py_ssize_t expiring = 0
        cdef double before = self.clock.now
        if not self.unconfirmed and self.clock.advance_if_normal(time):
            return 0 if self.clock.now < self.next_expiry else self.expire()
        if time > self.clock.now + self.clock.max_step:
            expiring = self.count_expiring(self.clock.proposed(time))
        if self.clock.advance(time, expiring):
            self.pending.clamp_times(self.clock.now)
            self.resolved.clamp_times(self.clock.now)
            self.next_expiry = -INFINITY
        elif self.unconfirmed and self.clock.now > before + self.clock.max_step:
            # Unconfirmed entries did not arrive before the step.
            self.pending.set_last_times(self.unconfirmed, self.clock.now)
        if self.clock.ahead_count == 0:
            self.unconfirmed = 0
        return self.expire()

    cdef Py_ssize_t count_expiring(self, double time):
        """Return how many events, up to ten, would time out at this time."""
        cdef int64_t place = self.pending.oldest()
        cdef Py_ssize_t n = 0
        while place >= 0 and n < 10:
            if not self.pending.at(place).received_at + self.hold_for <= time:
                break
            n += 1
            place = self.pending.next(place)
        return n

    cdef int expire(self) except -1:
        """Time out and forget expired entries, the oldest first."""
        cdef int64_t place
        if self.clock.now < self.next_expiry:
            return 0
        self.next_expiry = INFINITY
        place = self.pending.oldest()
        while place >= 0 and self.is_expired(self.pending.at(place).received_at):
            self.time_out(place)
            place = self.pending.oldest()
        place = self.resolved.oldest()
        while place >= 0 and self.is_expired(self.resolved.resolved_at(place)):
            self.forget_id(place)
            place = self.resolved.oldest()
        return 0

    cdef bint is_expired(self, double received_at) noexcept:
        """Return whether an entry is expired; otherwise update the next expiry."""
        if received_at + self.hold_for <= self.clock.now:
            return True
        self.next_expiry = fmin(self.next_expiry, received_at + self.hold_for)
        return False

    # -- metrics and state ----------------------------------------------------------------------

    @property
    def tickets(self):
        """The number of tickets, for which scores must be stored."""
        return self.ticket_pool.count

    @property
    def held(self):
        """The number of events and labels held."""
        return self.pending.count

    @property
    def age(self):
        """How long the oldest entry has been held, by the stream's clock; NaN if none is held."""
        cdef int64_t place = self.pending.oldest()
        return math.nan if place < 0 else self.clock.now - self.pending.at(place).received_at

    @property
    def counts(self):
        """The number of records by outcome."""
        return {name: getattr(self, name) for name in COUNTS}

    def state(self):
        """Return all entries and counts; the returned data does not change later."""
        return {
            "layout": LAYOUT,
            "on_timeout": self.on_timeout,
            "pending": self.pending.state(),
            "correctable": self.timeouts.events.state(),
            "resolved": self.resolved.state(),
            "seed": self.id_table.seed,
            "clock": self.clock.state(),
            "classes": list(self.classes),
            "tickets": self.tickets,
            "free": self.ticket_pool.free_tickets(),
            "known": self.known,
            "unconfirmed": self.unconfirmed,
            "counts": self.counts,
            "delays": self.delays.copy(),
            "delay_total": self.delay_total,
        }

    def restore(self, state):
        """Resume from `state`."""
        if state.get("layout") != LAYOUT:
            raise ModelFileError(
                "the held events are from another version of streamlearn, which this one cannot "
                "read; resume with that version, or start from scratch (--reset all)")
        self.clear_tables(state["seed"])
        self.pending.restore(state["pending"])
        self.timeouts.events.restore(state["correctable"])
        self.resolved.restore(state["resolved"], self.id_table)
        self.clock.restore(state["clock"])
        self.classes[:] = state["classes"]
        self.class_codes = {label: k for k, label in enumerate(self.classes)}
        self.set_timeout_label()
        self.next_expiry = -INFINITY
        self.ticket_pool.restore(state["tickets"], state["free"])
        self.known = state["known"]
        self.unconfirmed = state["unconfirmed"]
        for name in COUNTS:
            setattr(self, name, state["counts"][name])
        self.set_delay_counts(state["delays"].copy())
        self.delay_total = state["delay_total"]
        before = state["on_timeout"]
        if (type(before), before) != (type(self.on_timeout), self.on_timeout):
            self.timeouts.release_all()  # of another label


cdef Kind kind_of(label) except *:
    """Return the kind under which a label is held: a number only if a float64 is exact for it."""
    cdef Kind kind = LABEL_KINDS.get(type(label), CLASS)
    return CLASS if kind == INT and not -EXACT <= label <= EXACT else kind


cdef double[11] BOUND
for _k in range(11):
    BOUND[_k] = BOUNDS[_k]
COUNTS = (
    "joined", "orphaned", "timed_out", "evicted", "corrected", "duplicates", "repeated")


cdef void new_entry(
    Entry* entry, uint64_t tag, double received_at, Tags* tags, double number, int ticket, int kind
) noexcept:
    entry.tag, entry.received_at, entry.time, entry.number = tag, received_at, tags.time, number
    entry.n, entry.ticket, entry.kind = 0, ticket, <uint8_t>kind
