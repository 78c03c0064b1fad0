"""The join of features and labels: what is held, for how long, and what is learned when.

Events go in, in the order of their records; out come the rows to be predicted and learned, in the
order in which that is to be done (`rows`). Nothing but the order of records and their times decides
what comes out: not the machine's clock, and not where a batch ends.

- Features are predicted, and held under their id. When the label comes they are learned as they
  were; a label that comes first is held too.
- What is held for longer than `hold_for` on the stream's clock (`Clock`) times out: features are
  learned with the label `on_timeout`, or dropped; a label becomes an orphan. When `hold_events`, or
  `hold_bytes`, are held already the oldest makes way, as if timed out.
- An id whose label was learned is remembered within the same bounds: a second label is a duplicate,
  or corrects the one of the time-out, if `corrections` says so.
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
from streamlearn.late.arrivals cimport AHEAD, Arrivals
from streamlearn.late.clock cimport Clock
from streamlearn.late.held cimport Entry, HeldEvents
from streamlearn.late.joined cimport TO_CORRECT, TO_LEARN, TO_PREDICT, TO_TIME_OUT, Joined
from streamlearn.late.places cimport Places
from streamlearn.late.settled cimport DONE, GUESSED, ResolvedIds, is_settled
from streamlearn.late.tickets cimport Tickets
from streamlearn.core.row cimport Row

import numpy as np

from streamlearn.engine.events import LABEL_KINDS
from streamlearn.errors import NO_ID, ModelFileError

DROP = "drop"
LAYOUT = 4  # of what is held, in a checkpoint
# seconds from features to label; the last counts what took longer
BOUNDS = (
    1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 21600.0, 86400.0, 604800.0, 2592000.0)

cdef double EXACT = 9007199254740992.0  # 2**53: a float64 holds whole numbers up to here

cdef enum:
    SOON = 8  # events
    FEATURES = UNLABELED  # the kind of an entry; others are those of labels


@cython.final
cdef class Join:
    """Joins features and labels by id.

    Parameters
    ----------
    hold_events
        How many may be held, and as many ids remembered that are done with.
    hold_for
        How long, in seconds of the stream's clock; None: until there is no room.
    on_timeout
        `"drop"`, or the label of features whose own did not come.
    corrections
        Whether a label that comes after its time-out is learned, and the time-out's taken back.
    keep_orphans
        Whether what was said of labels that found no features is kept in `orphans`.
    hold_bytes
        How many bytes may be held, and as many to be corrected; a single event may exceed it.
    """

    def __init__(
        self, hold_events, hold_for=None, on_timeout=DROP, corrections=False, keep_orphans=False,
        hold_bytes=sys.maxsize,
    ):
        whole = isinstance(hold_events, (int, np.integer)) and not isinstance(hold_events, bool)
        if not whole or hold_events < 1:
            raise ValueError(f"hold_events={hold_events!r}: a whole number >= 1")
        hold = math.inf if hold_for is None else hold_for
        number = isinstance(hold, (int, float, np.integer, np.floating))
        if not number or isinstance(hold, (bool, np.timedelta64)) or not hold > 0.0:
            raise ValueError(f"hold_for={hold_for!r}: seconds > 0, or None")
        if on_timeout is None or on_timeout != on_timeout:
            raise ValueError(f"on_timeout={on_timeout!r}: \"drop\", or a label")
        if corrections and on_timeout == DROP:
            raise ValueError("corrections are of labels given at time-outs: on_timeout is a label")
        if hold_events > 1 << 28:
            raise ValueError(f"hold_events={hold_events!r}: at most 2**28")
        self.hold_events, self.hold_for, self.hold_bytes = hold_events, hold, hold_bytes
        self.on_timeout, self.corrections, self.keep_orphans = on_timeout, corrections, keep_orphans
        self.hold_nothing(secrets.randbits(64))
        self.of_events, self.of_labels = Arrivals(), Arrivals()
        self.clock = Clock(hold)
        self.rows = Joined()
        self.classes = self.rows.classes
        self.codes = {}
        self.orphans = []
        self.seats = Tickets()
        self.count_delays(np.zeros(DELAYS, dtype=np.int64))
        self.set_label()
        self.due = INFINITY

    def hold_nothing(self, seed):
        """What waits, what was learned, and a table of what is where.

        Beside it what was learned with the label of a time-out, to be corrected, in its own table.
        """
        self.places, self.guesses = Places(seed), Places(seed)
        self.waiting, self.guessed = HeldEvents(self.places), HeldEvents(self.guesses)
        self.settled = ResolvedIds()

    def set_label(self):
        """The label of time-outs as a number."""
        cdef Kind kind = kind_of(self.on_timeout)
        self.at_timeout.kind = kind
        if isinstance(self.on_timeout, str) and self.on_timeout == DROP:
            self.at_timeout.kind = UNLABELED
        elif kind != CLASS:
            self.at_timeout.label = self.on_timeout
        else:
            self.at_timeout.label = self.code(self.on_timeout)

    def code(self, label):
        """The place of a class among those met."""
        found = self.codes.get(label)
        if found is None:
            found = self.codes[label] = len(self.classes)
            self.classes.append(label)
        return found

    def count_delays(self, counts):
        """Count delays in this array from now on."""
        self.delays = counts
        self.delay = <int64_t*><size_t>self.delays.ctypes.data

    def clear(self):
        """The rows were learned: what they have given back may be given again."""
        self.rows.clear()
        self.orphans = []
        self.seats.settle()

    # Events in

    def both(self, Events events, Events told, is_label, origins=None):
        """Events, and labels of records of their own, in the order of all records.

        `is_label` says which record is a label's; `origins` what is to be kept of each if it is a
        label that waits in vain: see `orphans`.
        """
        sides = np.ascontiguousarray(is_label, dtype=np.uint8)
        cdef const uint8_t* side = <const uint8_t*><size_t>sides.ctypes.data
        cdef Py_ssize_t k, i = 0, j = 0, of_event = 0, of_label = 0, n = len(sides)
        self.of_events.see(events, self.places)
        self.of_labels.see(told, self.places)
        for k in range(n):
            self.rows.records = k
            if side[k]:
                if j < told.n and told.record[j] == of_label:
                    self.approach(self.of_labels, j)
                    self.one_label(self.of_labels, j, None if origins is None else origins[k])
                    j += 1
                of_label += 1
            else:
                if i < events.n and events.record[i] == of_event:
                    self.approach(self.of_events, i)
                    self.one_event(self.of_events, i, None if origins is None else origins[k])
                    i += 1
                of_event += 1

    cdef void approach(self, Arrivals coming, Py_ssize_t i) noexcept:
        """Event i comes: what is known of those that follow soon is fetched meanwhile.

        Step by step: the cell of the table, and what a label waits for, of which the cell tells.
        """
        cdef Py_ssize_t later = i + AHEAD
        cdef int64_t place
        cdef uint64_t at
        if later < coming.n:
            self.places.approach(coming.tag[later])
        later = i + SOON
        if later < coming.n and coming.events.kind[later] != UNLABELED:
            at = coming.tag[later] >> 32
            place = self.places.probe(coming.tag[later], &at)
            if place >= 0 and not is_settled(place):
                self.waiting.approach(place)

    def features(self, Events events):
        """Events whose labels come later, and labels among them."""
        cdef Py_ssize_t i
        self.of_events.see(events, self.places)
        for i in range(events.n):
            self.rows.records = <Py_ssize_t>events.record[i]
            self.approach(self.of_events, i)
            self.one_event(self.of_events, i, None)

    def labels(self, Events events):
        """Labels."""
        cdef Py_ssize_t i
        self.of_labels.see(events, self.places)
        for i in range(events.n):
            self.rows.records = <Py_ssize_t>events.record[i]
            self.approach(self.of_labels, i)
            self.one_label(self.of_labels, i, None)

    cdef int one_event(self, Arrivals coming, Py_ssize_t i, bytes origin) except -1:
        cdef Events events = coming.events
        cdef Row row
        cdef Tags tags
        if events.kind[i] != UNLABELED:
            return self.one_label(coming, i, origin)
        coming.fill(i, &tags)
        if tags.id == NULL:
            events.bad.append((<Py_ssize_t>events.record[i], None, NO_ID))
            return 0
        self.known = max(self.known, <Py_ssize_t>events.known[i])
        events.row(i, &row)
        return self.take_features(&row, &tags, coming.tag[i])

    cdef int one_label(self, Arrivals coming, Py_ssize_t i, bytes origin) except -1:
        cdef Events events = coming.events
        cdef Tags tags
        coming.fill(i, &tags)
        if tags.kind == UNLABELED or tags.id == NULL:
            why = NO_ID if tags.id == NULL else "there is no label"
            events.bad.append((<Py_ssize_t>events.record[i], None, why))
            return 0
        if tags.kind == CLASS:  # a decoder numbers classes in its own way
            tags.label = self.code(events.classes[<Py_ssize_t>tags.label])
        return self.take_label(&tags, coming.tag[i], origin)

    def read(self, Reader reader, event, bytes key, double time, double weight):
        """An event as Python has it, read by this reader."""
        cdef Tags tags
        reader.read(event, True)
        tags.kind, tags.label, tags.weight, tags.time = UNLABELED, NAN, weight, time
        tags.id, tags.id_length = PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)
        self.known = max(self.known, reader.size)
        self.take_features(&reader.row, &tags, self.places.hashed(tags.id, tags.id_length))

    def label(self, label, bytes key, double time):
        """A label as Python has it."""
        cdef Tags tags
        tags.kind = kind_of(label)
        tags.label = self.code(label) if tags.kind == CLASS else label
        tags.weight, tags.time = 1.0, time
        tags.id, tags.id_length = PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)
        self.take_label(&tags, self.places.hashed(tags.id, tags.id_length), None)

    cdef int take_features(self, Row* row, Tags* tags, uint64_t tag) except -1:
        cdef Entry entry
        cdef Entry* held = NULL
        cdef int64_t place
        cdef uint64_t at
        cdef int ticket
        self.advance(tags.time)
        place = self.find(tag, &at)
        if place < 0:
            self.make_way()
            ticket = self.seats.give()
            new_entry(&entry, tag, self.clock.now, tags, tags.weight, ticket, FEATURES)
            self.hold(&entry, NULL, row)
            return self.rows.enter(row, tags, self.known, TO_PREDICT, ticket)
        if not is_settled(place):
            held = self.waiting.at(place)
        if held == NULL or held.kind == FEATURES:
            self.repeated += 1
            return self.rows.enter(row, tags, self.known, TO_PREDICT, -1)
        # its label came before
        ticket = self.seats.give()
        self.rows.enter(row, tags, self.known, TO_PREDICT, ticket)
        self.count_delay(0.0)
        self.joined += 1
        tags.kind = <Kind>held.kind
        tags.label = held.number
        self.rows.enter(row, tags, self.known, TO_LEARN, ticket)
        self.seats.take_back(ticket)
        return self.settle(place, at, False)

    cdef int take_label(self, Tags* tags, uint64_t tag, bytes extra) except -1:
        cdef Entry entry
        cdef Entry* held
        cdef int64_t place
        cdef uint64_t at
        self.advance(tags.time)
        place = self.find(tag, &at)
        if place < 0:
            self.make_way()
            new_entry(&entry, tag, self.clock.now, tags, tags.label, -1, tags.kind)
            rest = extra if self.keep_orphans and extra is not None else b""
            entry.n = <int>len(rest)
            return self.hold(&entry, PyBytes_AS_STRING(rest), NULL)
        if is_settled(place):
            return self.correct(place, at, tag, tags)
        held = self.waiting.at(place)
        if held.kind != FEATURES:
            self.duplicates += 1
            return 0
        self.joined += 1
        self.count_delay(
            (self.clock.now - held.stamp) if isnan(tags.time - held.time)
            else tags.time - held.time)
        self.learn(held, self.waiting, place, tags, TO_LEARN)
        return self.settle(place, at, False)

    # Where things are

    cdef int64_t find(self, uint64_t tag, uint64_t* at) noexcept:
        """The place of the id that has this hash, and the cell that says so; -1: it is not known.

        Of an id there is no more than its hash, whose seed is a secret: another one is taken for
        it if all 64 bits are the same; with a million known, one in 10^13.
        """
        cdef int64_t place
        at[0] = tag >> 32
        while True:
            place = self.places.probe(tag, at)
            if place < 0:
                return place
            if tag == (
                self.settled.tag(place) if is_settled(place) else self.waiting.at(place).tag
            ):
                return place
            at[0] += 1

    cdef int64_t find_guess(self, uint64_t tag) noexcept:
        """The place of what was learned with the label of a time-out, and is kept."""
        cdef uint64_t at = tag >> 32
        cdef int64_t place = self.guesses.probe(tag, &at)
        while self.guessed.at(place).tag != tag:
            at += 1
            place = self.guesses.probe(tag, &at)
        return place

    cdef int hold(self, Entry* entry, const void* rest, Row* row) except -1:
        """Features or a label wait from now on, under an id that is not known."""
        self.places.enter(entry.tag, self.waiting.append(entry, rest, row))
        self.due = fmin(self.due, entry.stamp + self.hold_for)
        self.doubted += self.clock.run > 0
        return 0

    # What happens to them

    cdef int learn(
        self, Entry* entry, HeldEvents held, int64_t place, Tags* tags, int role
    ) except -1:
        """Held features are learned with this label."""
        cdef Row row
        cdef Tags said = tags[0]
        said.weight = entry.number
        self.rows.offer(&row, entry.n, said.id_length)
        held.read(place, &row)
        return self.rows.enter(&row, &said, self.known, role, entry.ticket)

    cdef int settle(self, int64_t place, uint64_t at, bint guessed) except -1:
        """What waited was learned; if it was a guess it is kept. `at` is the cell of its id."""
        cdef Entry* entry = self.waiting.at(place)
        if guessed:
            self.guesses.enter(entry.tag, self.guessed.copy(entry))
        elif entry.ticket >= 0:
            self.seats.take_back(entry.ticket)
        self.remember(at, entry.tag, GUESSED if guessed else DONE)
        return self.waiting.remove(place)

    cdef int remember(self, uint64_t at, uint64_t tag, uint8_t kind) except -1:
        """An id is done with."""
        self.places.alter(at, self.settled.append(tag, self.clock.now, kind))
        while (self.settled.count > self.hold_events
               or self.guessed.used > self.hold_bytes and self.settled.count > 1):
            self.forget(self.settled.oldest())
        self.due = fmin(self.due, self.clock.now + self.hold_for)
        return 0

    cdef int correct(self, int64_t place, uint64_t at, uint64_t tag, Tags* tags) except -1:
        """A label came for an id that is done with: a duplicate, unless it corrects a guess."""
        cdef Entry* entry
        cdef int64_t kept
        # 0, 0.0 and False are one label, as in Python
        same = (tags.kind == CLASS) == (self.at_timeout.kind == CLASS) and (
            tags.label == self.at_timeout.label)
        if self.settled.kind(place) != GUESSED or not self.corrections or same:
            self.duplicates += 1
            return 0
        kept = self.find_guess(tag)
        entry = self.guessed.at(kept)
        if entry.ticket < 0:
            self.duplicates += 1
            return 0
        self.corrected += 1
        self.learn(entry, self.guessed, kept, tags, TO_CORRECT)
        self.drop_guess(kept, tag)
        self.settled.remove(place)
        return self.remember(at, tag, DONE)

    cdef int forget(self, int64_t place) except -1:
        """The id that was settled first goes."""
        cdef uint64_t tag = self.settled.tag(place)
        self.places.approach(self.settled.tag_ahead())
        if self.settled.kind(place) == GUESSED:
            self.drop_guess(self.find_guess(tag), tag)
        self.places.leave(tag, place)
        return self.settled.remove(place)

    cdef int drop_guess(self, int64_t place, uint64_t tag) except -1:
        """What was kept to be corrected is not needed."""
        cdef int ticket = self.guessed.at(place).ticket
        if ticket >= 0:
            self.seats.take_back(ticket)
        self.guesses.leave(tag, place)
        return self.guessed.remove(place)

    cdef int make_way(self) except -1:
        """Room for one more to wait: the oldest goes."""
        while (self.waiting.count >= self.hold_events  # of more, if the bound was another before
               or self.waiting.used > self.hold_bytes and self.waiting.count):
            self.evicted += 1
            self.pass_on(self.waiting.oldest())
        return 0

    cdef int pass_on(self, int64_t place) except -1:
        """What is held goes without having found its like."""
        cdef Entry* entry = self.waiting.at(place)
        if entry.kind != FEATURES:
            self.orphaned += 1
            if self.keep_orphans and (said := self.waiting.rest(place)):
                self.orphans.append(said)  # of one held before orphans were kept nothing is known
            return self.let_go(place, entry.tag)
        self.timed_out += 1
        if self.at_timeout.kind == UNLABELED:
            self.seats.take_back(entry.ticket)
            return self.let_go(place, entry.tag)
        self.at_timeout.time = entry.time
        self.learn(entry, self.waiting, place, &self.at_timeout, TO_TIME_OUT)
        return self.settle(place, self.places.cell_of(entry.tag, place), self.corrections)

    cdef int let_go(self, int64_t place, uint64_t tag) except -1:
        """What waited is known no more."""
        self.places.leave(tag, place)
        return self.waiting.remove(place)

    cdef int count_delay(self, double seconds) except -1:
        cdef Py_ssize_t i, k = 0
        for i in range(DELAYS - 1):  # all of them: where it ends can't be foreseen
            k += seconds > BOUND[i]
        if seconds > 0.0:  # a clock that is wrong may say that the label came first
            self.delay_total += seconds
        self.delay[k] += 1
        return 0

    # Time

    cdef int advance(self, double time) except -1:
        """A record of this time comes: what is due by it goes before."""
        cdef Py_ssize_t stake = 0
        cdef double before = self.clock.now
        if not self.doubted and self.clock.goes_on(time):
            return 0 if self.clock.now < self.due else self.expire()
        if time > self.clock.now + self.clock.leap:
            stake = self.at_stake(self.clock.proposed(time))
        if self.clock.moves(time, stake):
            self.waiting.restamp(self.clock.now)
            self.settled.restamp(self.clock.now)
            self.due = -INFINITY
        elif self.doubted and self.clock.now > before + self.clock.leap:
            # those that were doubted did not come before the leap
            self.waiting.restamp_last(self.doubted, self.clock.now)
        if self.clock.run == 0:
            self.doubted = 0
        return self.expire()

    cdef Py_ssize_t at_stake(self, double time):
        """How many events would time out at this time, up to ten."""
        cdef int64_t place = self.waiting.oldest()
        cdef Py_ssize_t n = 0
        while place >= 0 and n < 10:
            if not self.waiting.at(place).stamp + self.hold_for <= time:
                break
            n += 1
            place = self.waiting.next(place)
        return n

    cdef int expire(self) except -1:
        """What was held for long enough goes, the oldest first."""
        cdef int64_t place
        if self.clock.now < self.due:
            return 0
        self.due = INFINITY
        place = self.waiting.oldest()
        while place >= 0 and self.is_due(self.waiting.at(place).stamp):
            self.pass_on(place)
            place = self.waiting.oldest()
        place = self.settled.oldest()
        while place >= 0 and self.is_due(self.settled.stamp(place)):
            self.forget(place)
            place = self.settled.oldest()
        return 0

    cdef bint is_due(self, double stamp) noexcept:
        """Whether this was held for long enough; if not, it will be at another time."""
        if stamp + self.hold_for <= self.clock.now:
            return True
        self.due = fmin(self.due, stamp + self.hold_for)
        return False

    # What there is to see, and what a checkpoint keeps

    @property
    def tickets(self):
        """How many predictions there is to be room for."""
        return self.seats.given

    @property
    def held(self):
        """How many events and labels are held."""
        return self.waiting.count

    @property
    def age(self):
        """How long the oldest has been held, by the stream's clock; NaN if none is."""
        cdef int64_t place = self.waiting.oldest()
        return math.nan if place < 0 else self.clock.now - self.waiting.at(place).stamp

    @property
    def counts(self):
        """How many of what, over all that was seen."""
        return {name: getattr(self, name) for name in COUNTS}

    def __sizeof__(self):
        parts = (
            self.waiting, self.guessed, self.settled, self.rows, self.of_events, self.of_labels,
            self.seats)
        total = object.__sizeof__(self) + sum(part.__sizeof__() for part in parts)
        return total + self.places.nbytes + self.guesses.nbytes

    def state(self):
        """All that is held, and all that was counted; nothing in it changes any more."""
        return {
            "layout": LAYOUT,
            "on_timeout": self.on_timeout,
            "waiting": self.waiting.state(),
            "guessed": self.guessed.state(),
            "settled": self.settled.state(),
            "seed": self.places.seed,
            "clock": self.clock.state(),
            "classes": list(self.classes),
            "tickets": self.tickets,
            "free": self.seats.idle(),
            "known": self.known,
            "doubted": self.doubted,
            "counts": self.counts,
            "delays": self.delays.copy(),
            "delay_total": self.delay_total,
        }

    def restore(self, state):
        """Go on from there."""
        if state.get("layout") != LAYOUT:
            raise ModelFileError(
                "what waits for its label was held by another version of streamlearn, and this one "
                "cannot read it: go on with that version, or begin afresh (--reset all)")
        self.hold_nothing(state["seed"])
        self.waiting.restore(state["waiting"])
        self.guessed.restore(state["guessed"])
        self.settled.restore(state["settled"], self.places)
        self.clock.restore(state["clock"])
        self.classes[:] = state["classes"]
        self.codes = {label: k for k, label in enumerate(self.classes)}
        self.set_label()
        self.due = -INFINITY
        self.seats.restore(state["tickets"], state["free"])
        self.known = state["known"]
        self.doubted = state["doubted"]
        for name in COUNTS:
            setattr(self, name, state["counts"][name])
        self.count_delays(state["delays"].copy())
        self.delay_total = state["delay_total"]
        before = state["on_timeout"]
        if (type(before), before) != (type(self.on_timeout), self.on_timeout):
            self.believe_guesses()

    def believe_guesses(self):
        """Nothing is corrected of what was learned so far: time-outs had another label then."""
        cdef int64_t place = self.guessed.oldest()
        while place >= 0:
            if self.guessed.at(place).ticket >= 0:
                self.seats.take_back(self.guessed.at(place).ticket)
                self.guessed.at(place).ticket = -1
            place = self.guessed.next(place)


cdef Kind kind_of(label) except *:
    """How a label is held: as a number, or as a class, if a float64 is not exactly that number."""
    cdef Kind kind = LABEL_KINDS.get(type(label), CLASS)
    return CLASS if kind == INT and not -EXACT <= label <= EXACT else kind


cdef double[11] BOUND
for _k in range(11):
    BOUND[_k] = BOUNDS[_k]
COUNTS = (
    "joined", "orphaned", "timed_out", "evicted", "corrected", "duplicates", "repeated")


cdef void new_entry(
    Entry* entry, uint64_t tag, double stamp, Tags* tags, double number, int ticket, int kind
) noexcept:
    entry.tag, entry.stamp, entry.time, entry.number = tag, stamp, tags.time, number
    entry.n, entry.ticket, entry.kind = 0, ticket, <uint8_t>kind
