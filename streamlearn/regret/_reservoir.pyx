"""What a tracker keeps of a stream: sums over all events, and a uniform sample of them.

The sample is Li's Algorithm L (ACM TOMS 1994): once it is full, random skips say which event comes
in next, so an event that does not costs a comparison. A snapshot is a reference to the arrays of
rows and a copy of the table of places, and a solver in another thread may read it. As long as one
is held, rows are written at the end of the arrays only; else in the place of the row that goes, if
there is room. What was left behind is dropped when half of the arrays is waste.
"""

cimport cython
from libc.math cimport INFINITY, NAN, ceil, exp, floor, isfinite, log, log1p
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from cpython.object cimport PyObject

from streamlearn.engine.watcher cimport Watcher
from streamlearn.losses.loss cimport FEW, Few, Loss, VectorLoss
from streamlearn.losses.total cimport add_up, note, plus, sum_of_few, value_of
from streamlearn.row cimport Row

import numpy as np


cdef void* at(array):
    return <void*><size_t>array.ctypes.data


@cython.final
cdef class Reservoir:
    """A uniform sample, without replacement, of up to `capacity` rows of all that were offered.

    Until it is full it holds all of them, in their order.
    """

    def __init__(self, capacity, seed=0, width=1):
        """`width`: how many numbers a label has."""
        self.capacity = capacity
        self.width = width
        self.random = seed
        self.threshold = 1.0
        self.next = capacity
        self.slot_array = np.empty(0, np.int32)
        self.value_array = np.empty(0)
        self.claim()

    def __dealloc__(self):
        free(self.table)
        free(self.labels)

    cdef int claim(self) except -1:
        """The table of places, of which memory is taken page by page as they are filled."""
        self.table = <Place*>calloc(self.capacity, sizeof(Place))
        self.labels = <double*>calloc(self.capacity * self.width, sizeof(double))
        if self.table == NULL or self.labels == NULL:
            raise MemoryError(f"no memory for a sample of {self.capacity} events")
        return 0

    cdef double uniform(self) noexcept nogil:
        """A number of (0, 1), by splitmix64."""
        cdef unsigned long long z
        self.random += <unsigned long long>0x9E3779B97F4A7C15
        z = self.random
        z = (z ^ (z >> 30)) * <unsigned long long>0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * <unsigned long long>0x94D049BB133111EB
        z ^= z >> 31
        return (<double>(z >> 11) + 0.5) * (1.0 / 9007199254740992.0)

    cdef void skip(self) noexcept nogil:
        """Draw which event comes in next."""
        cdef double jump
        self.threshold *= exp(log(self.uniform()) / self.capacity)
        jump = floor(log(self.uniform()) / log1p(-self.threshold))
        self.next += 1 + (<long long>jump if jump < 4e18 - self.next else <long long>4e18)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for n more entries, in new arrays: a snapshot may look at those of now."""
        cdef Py_ssize_t k, used = 0, room = max(2 * (self.live + n), 1024)
        cdef Place* place
        if 256 <= self.places < self.capacity:
            # for all that will come, once rows tell their length: pages are taken as they fill
            room = max(room, <Py_ssize_t>(1.25 * self.live / self.places * self.capacity))
        slots = np.empty(room, np.int32)
        values = np.empty(room)
        cdef int* new_slots = <int*>at(slots)
        cdef double* new_values = <double*>at(values)
        for k in range(self.places):
            place = self.table + k
            memcpy(new_slots + used, self.slots + place.start, place.length * sizeof(int))
            memcpy(new_values + used, self.values + place.start, place.length * sizeof(double))
            place.start = used
            place.room = place.length
            used += place.length
        self.slot_array, self.value_array = slots, values
        self.slots, self.values = new_slots, new_values
        self.used, self.room = used, room
        return 0

    cdef long long wait(self) noexcept nogil:
        """How many rows from now on the next one is that comes in: 1 for the very next."""
        return 1 if self.seen < self.capacity else self.next - self.seen + 1

    cdef void offer(
        self, Row* row, const double* y, double weight, long long passed
    ) noexcept nogil:
        """Take the row if it is its turn, as it was not that of the rows that passed before."""
        self.seen += passed
        if self.wait() == 1:
            self.admit(row, y, weight)
        self.seen += 1

    cdef void admit(self, Row* row, const double* y, double weight) noexcept nogil:
        """Take the row, and say when it is the next one's turn."""
        if self.seen >= self.capacity:
            self.place(<Py_ssize_t>(self.uniform() * self.capacity), row, y, weight)
            self.skip()
            return
        self.place(self.places, row, y, weight)
        if self.seen == self.capacity - 1:
            self.next = self.seen
            self.skip()

    cdef void place(self, Py_ssize_t k, Row* row, const double* y, double weight) noexcept nogil:
        cdef Place* place = self.table + k
        cdef bint fresh = k == self.places
        if fresh or row.n > place.room or self.lent():
            if self.used + row.n > self.room:
                with gil:
                    try:
                        self.reserve(row.n)
                    except MemoryError:
                        self.failed = True
                        return
            place.start = self.used
            place.room = <int>row.n
            self.used += row.n
        self.live += row.n - (0 if fresh else place.length)
        if fresh:
            self.places += 1
        memcpy(self.slots + place.start, row.slot, row.n * sizeof(int))
        memcpy(self.values + place.start, row.value, row.n * sizeof(double))
        place.length = <int>row.n
        place.weight = weight
        memcpy(self.labels + k * self.width, y, self.width * sizeof(double))

    cdef inline bint lent(self) noexcept nogil:
        """Whether a snapshot looks at the arrays."""
        return (<PyObject*>self.slot_array).ob_refcnt > 1

    @property
    def full(self):
        """Whether rows were left out."""
        return self.seen > self.capacity

    @property
    def size(self):
        """How many rows are here."""
        return self.places

    def snapshot(self):
        """The rows as they are now, to be read in any thread."""
        cdef Py_ssize_t k, n = self.places
        starts, lengths = np.empty(n, np.int64), np.empty(n, np.int32)
        weights, labels = np.empty(n), np.empty((n, self.width))
        cdef long long* start = <long long*>at(starts)
        cdef int* length = <int*>at(lengths)
        cdef double* weight = <double*>at(weights)
        for k in range(n):
            start[k] = self.table[k].start
            length[k] = self.table[k].length
            weight[k] = self.table[k].weight
        memcpy(at(labels), self.labels, n * self.width * sizeof(double))
        return {
            "slots": self.slot_array,
            "values": self.value_array,
            "starts": starts,
            "lengths": lengths,
            "weights": weights,
            "labels": labels,
        }

    def mirror(self):
        """The two classes changed places."""
        cdef Py_ssize_t k
        for k in range(self.places * self.width):
            self.labels[k] = -self.labels[k]

    def state(self):
        """All of it as plain data and arrays."""
        rows = self.snapshot()
        slots, values = gathered(rows)
        return {
            "capacity": self.capacity,
            "width": self.width,
            "seen": self.seen,
            "next": self.next,
            "threshold": self.threshold,
            "random": self.random,
            "slots": slots,
            "values": values,
            "lengths": rows["lengths"],
            "weights": rows["weights"],
            "labels": rows["labels"],
        }

    def restore(self, state):
        """Go on from `state`, to the bit."""
        n = len(state["lengths"])
        if state["capacity"] != self.capacity or state["width"] != self.width or n > self.capacity:
            raise ValueError(
                f"the saved sample is of {state['capacity']} events with {state['width']} labels "
                f"each, this one of {self.capacity} with {self.width}: keep the same memory"
            )
        self.seen, self.next = state["seen"], state["next"]
        self.threshold, self.random = state["threshold"], state["random"]
        self.places = 0
        self.reserve(len(state["slots"]))
        self.used = self.live = len(state["slots"])
        self.places = n
        self.slot_array[: self.used] = state["slots"]
        self.value_array[: self.used] = state["values"]
        lengths = np.ascontiguousarray(state["lengths"], np.int32)
        starts = np.zeros(n + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        weights = np.ascontiguousarray(state["weights"], float)
        labels = np.ascontiguousarray(state["labels"], float)
        if starts[n] != self.used or len(weights) != n or labels.size != n * self.width:
            raise ValueError("the saved sample is damaged: its arrays do not fit one another")
        cdef const long long* start = <const long long*>at(starts)
        cdef const int* length = <const int*>at(lengths)
        cdef const double* weight = <const double*>at(weights)
        for k in range(n):
            self.table[k] = Place(start[k], length[k], length[k], weight[k])
        memcpy(self.labels, at(labels), n * self.width * sizeof(double))


def gathered(rows):
    """The slots and values of a snapshot, row after row."""
    cdef const long long* start = <const long long*>at(rows["starts"])
    cdef const int* length = <const int*>at(rows["lengths"])
    cdef const int* slot = <const int*>at(rows["slots"])
    cdef const double* value = <const double*>at(rows["values"])
    cdef Py_ssize_t k, n = len(rows["starts"]), used = 0
    total = int(rows["lengths"].sum())
    slots, values = np.empty(total, np.int32), np.empty(total)
    cdef int* out_slot = <int*>at(slots)
    cdef double* out_value = <double*>at(values)
    with nogil:
        for k in range(n):
            memcpy(out_slot + used, slot + start[k], length[k] * sizeof(int))
            memcpy(out_value + used, value + start[k], length[k] * sizeof(double))
            used += length[k]
    return slots, values


@cython.final
cdef class Account(Watcher):
    """The progressive sums of a learner, and the sample of its events.

    As a learner's watcher it sees each event; `observe` takes whole batches instead. Where the
    rule does not keep Psi(w_t) up to date, it is looked at on a schedule that grows with the
    stream, and taken to be on a line in between: `exact` is False then. `look` gives Psi and the
    number of slots.
    """

    def __init__(self, loss, capacity, seed=0, width=1):
        self.exact = True
        self.priced = True
        self.due = INFINITY
        self.loss = loss
        self.scalar = isinstance(loss, Loss)
        self.outputs = 1
        self.sample = Reservoir(capacity, seed, width)

    cdef void turn(self, Row* row, const double* y, Py_ssize_t outputs) noexcept nogil:
        cdef int few = self.losses.last.n
        cdef double weight = self.losses.last.weight[few - 1]
        self.outputs = outputs
        self.priced = self.penalties[few - 1] == self.penalties[few - 1]  # no NaN: known
        self.sample.offer(row, y, weight, few - 1 - self.offered)
        self.offered = few
        if not self.priced and self.past + few >= self.next_look:
            with gil:
                self.peek()
        if self.past + few >= self.due:
            with gil:
                self.rouse()
        if not self.scalar:
            self.add_value(weight * (<VectorLoss>self.loss).value_of(self.scores, outputs, y))
        elif few == FEW:
            self.add_value((<Loss>self.loss).sum_of(&self.losses.last))
        self.stop = self.next_stop()

    cdef void add_value(self, double value) noexcept nogil:
        """The losses of the events noted are `value` in all."""
        plus(&self.penalty_sum, &self.penalty_rest, self.last_penalties())
        self.penalty_past += self.losses.last.n if self.priced else 0
        self.weight_past += self.last_weights()
        self.past += self.losses.last.n
        self.offered = 0
        add_up(&self.losses, value)

    cdef int next_stop(self) noexcept nogil:
        """How many noted events there will be when there is something to do."""
        cdef double now = self.past + self.losses.last.n
        cdef double wait = min(<double>self.sample.wait(), self.due - now)
        if not self.priced:
            wait = min(wait, self.next_look - now)
        if not self.scalar or not wait > 1.0:
            return self.losses.last.n + 1
        return <int>min(ceil(wait) + self.losses.last.n, <double>FEW)

    cdef double last_weights(self) noexcept nogil:
        """The weight of the events noted."""
        return sum_of_few(self.losses.last.weight, self.losses.last.n)

    cdef double last_penalties(self) noexcept nogil:
        """The sum of Psi(w) before each of the events noted, if it was known."""
        return sum_of_few(self.penalties, self.losses.last.n) if self.priced else 0.0

    cdef int rouse(self) except -1:
        """Say that it is time, and ask when it is next."""
        self.due = INFINITY
        if self.wake is not None:
            self.due = self.wake()
        return 0

    cdef int peek(self) except -1:
        slots = 0
        if self.look is not None:
            penalty, slots = self.look()
            self.learnt_penalty(penalty)
        # a look takes microseconds, and some nanoseconds more for every slot
        self.next_look = self.events + max(1.0, self.events / 10.0, slots / 8.0)
        return 0

    def learnt_penalty(self, double penalty):
        """Psi(w) after all events so far: on a line from where it was known last."""
        cdef double events = self.events - self.penalty_events
        if events > 0.0:
            self.exact = self.exact and self.penalty == 0.0 and penalty == 0.0
            plus(
                &self.penalty_sum, &self.penalty_rest,
                # Psi before each of them: of the line's ends the first counts, not the last
                events * self.penalty + (penalty - self.penalty) * 0.5 * (events - 1.0),
            )
            self.penalty_past += events
        self.penalty = penalty

    def wake_at(self, double events):
        """Call `wake` when so many events were seen; it gives the next such number."""
        self.due = events
        self.stop = 0

    def observe(self, starts, slots, values, labels, weights, scores):
        """Rows of a batch, in CSR arrays, with the scores before each was learnt.

        Those of weight 0 or with a score that is not finite were not learnt, and don't count.
        """
        starts = np.ascontiguousarray(starts, np.int64)
        slots = np.ascontiguousarray(slots, np.int32)
        values = np.ascontiguousarray(values, float)
        cdef Py_ssize_t i, c, n = len(starts) - 1, width = self.sample.width, k
        labels = np.ascontiguousarray(labels, float).reshape(n, width)
        scores = np.ascontiguousarray(scores, float).reshape(n, -1)
        shares = np.ones(n) if weights is None else np.ascontiguousarray(weights, float)
        if len(shares) != n or (n and (starts[0] < 0 or starts[n] > min(len(slots), len(values)))):
            raise ValueError(f"the arrays of the batch do not fit its {n} rows")
        k = scores.shape[1]
        cdef const long long* start = <const long long*>at(starts)
        cdef const int* slot = <const int*>at(slots)
        cdef const double* value = <const double*>at(values)
        cdef const double* label = <const double*>at(labels)
        cdef const double* share = <const double*>at(shares)
        cdef const double* score = <const double*>at(scores)
        cdef bint good
        cdef Row row
        self.make_room(max(k, self.score_room))
        with nogil:
            for i in range(n):
                good = share[i] > 0.0
                for c in range(k):
                    good = good and isfinite(score[i * k + c])
                    self.scores[c] = score[i * k + c]
                if not good:
                    continue
                row.n = <Py_ssize_t>(start[i + 1] - start[i])
                row.slot = slot + start[i]
                row.value = value + start[i]
                row.square = 0.0  # nobody asks
                self.see(&row, label + i * width, share[i], k, NAN, NAN)

    def use_loss(self, loss):
        """The same loss, for other classes."""
        self.loss = loss

    def mirror(self):
        """The two classes changed places: so do the labels in the sample."""
        self.sample.mirror()

    @property
    def events(self):
        """How many there were."""
        return self.past + self.losses.last.n

    @property
    def weight(self):
        """Their weight."""
        return self.weight_past + self.last_weights()

    @property
    def reservoir(self):
        """The sample of the events."""
        self.sample.seen += self.losses.last.n - self.offered
        self.offered = self.losses.last.n
        return self.sample

    @property
    def progressive_loss(self):
        """The weighted sum of the losses before learning."""
        if not self.scalar:
            return self.losses.sum + self.losses.rest
        return value_of(&self.losses, self.loss)

    @property
    def penalty_events(self):
        """For how many events the sum of Psi(w_t) stands."""
        return self.penalty_past + (self.losses.last.n if self.priced else 0)

    @property
    def penalty_total(self):
        """The sum of Psi(w_t) over the events, those after the last look at its value then."""
        behind = self.events - self.penalty_events
        return self.penalty_sum + self.penalty_rest + self.last_penalties() + behind * self.penalty

    def state(self):
        """All of it as plain data and arrays."""
        cdef Few* last = &self.losses.last
        cdef int i
        return {
            "events": self.past,
            "weight": self.weight_past,
            "outputs": self.outputs,
            "loss": [self.losses.sum, self.losses.rest],
            "noted": [
                [last.score[i], last.label[i], last.weight[i], last.slope[i], self.penalties[i]]
                for i in range(last.n)
            ],
            "penalty": [
                self.penalty_sum, self.penalty_rest, self.penalty, self.penalty_past,
                self.next_look, float(self.exact),
            ],
            "reservoir": self.reservoir.state(),
        }

    def restore(self, state):
        """Go on from `state`, to the bit."""
        self.sample.restore(state["reservoir"])
        self.past, self.weight_past = state["events"], state["weight"]
        self.outputs = state["outputs"]
        self.losses.sum, self.losses.rest = state["loss"]
        self.losses.last.n = 0
        if "last" in state:  # of before, when factors of the last few events were kept
            growth, weight, _ = state["last"]
            plus(&self.losses.sum, &self.losses.rest, weight * log1p(growth))
        for score, label, weight, slope, penalty in state.get("noted", ()):
            self.penalties[self.losses.last.n] = penalty
            note(&self.losses, score, label, weight, slope)
        self.offered = self.losses.last.n
        self.stop = 0
        (
            self.penalty_sum, self.penalty_rest, self.penalty, self.penalty_past,
            self.next_look, self.exact,
        ) = state["penalty"]
