"""What a tracker keeps of a stream: sums over all events, and a uniform sample of them."""

cimport cython
from libc.math cimport INFINITY, NAN, fabs, isfinite, log1p, sqrt

from streamlearn.engine.watcher cimport Watcher
from streamlearn.losses.loss cimport FEW, Few, Loss, VectorLoss
from streamlearn.losses.total cimport add_up, note, plus, sum_of_few, value_of
from streamlearn.regret.reservoir cimport Reservoir, at
from streamlearn.core.row cimport Row

import numpy as np

# Slots that are read in half a millisecond: as long as reading Psi(w) after every event takes no
# longer, its sum is exact.
cdef double CHEAP = 2.0 ** 18


@cython.final
cdef class Account(Watcher):
    """The progressive sums of a learner, and the sample of its events.

    As a learner's watcher it sees each event; `observe` takes whole batches instead. Where the
    rule does not keep Psi(w_t) up to date, it is read after every event as long as that is cheap,
    then on a schedule that grows with the stream, and assumed linear in between. The `learner`
    reads it, or `look` where the penalty is more than l1 and l2. `penalised`: whether Psi is not 0.
    """

    def __init__(self, loss, capacity, seed=0, width=1, penalised=True):
        self.exact = True
        self.penalised = penalised
        self.priced = penalised
        self.next_look = 0.0 if penalised else INFINITY
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
        return <int>min(wait + self.losses.last.n, <double>FEW)

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

    cdef double penalty_value(self) noexcept nogil:
        """Psi(w) after all events so far, by a pass over all slots; NaN if nobody can tell."""
        cdef double value = NAN
        if self.learner is not None:
            value = self.learner.penalty_summed()
        if value != value:
            with gil:
                if self.look is not None:
                    value = self.look()
        return value

    cdef void peek(self) noexcept nogil:
        """Read Psi(w), and choose when to do so again."""
        cdef double events = self.past + self.losses.last.n, cost = 1.0
        cdef double value = self.penalty_value()
        if value != value:
            self.next_look = INFINITY
            return
        self.learn_penalty(value)
        if self.learner is not None:
            cost = self.learner.features * self.learner.outputs
        self.next_look = events + 1.0
        if events * cost > CHEAP:
            self.next_look = events + max(1.0, min(0.5 * events, max(0.01 * events, cost)))

    def learned_penalty(self, double penalty):
        """Psi(w) after all events so far is this."""
        self.learn_penalty(penalty)

    cdef void learn_penalty(self, double penalty) noexcept nogil:
        cdef Gap gap = self.gap_to(penalty)
        plus(&self.penalty_sum, &self.penalty_rest, gap.total)
        self.penalty_variance += gap.variance
        self.penalty_past += gap.events
        self.exact = self.exact and gap.events <= 1.0
        self.penalty_change = penalty - self.penalty
        self.penalty = penalty

    cdef Gap gap_to(self, double penalty) noexcept nogil:
        """Psi(w) before each of the events since it was known last, if it is `penalty` now.

        It is assumed on a line, of whose ends the first counts and not the last. The variance is
        that of noise in which two values differ so much as the ends, or as those of the gap before:
        where Psi turns around, the ends are alike. Psi that moves steadily is nearer to its line.
        """
        cdef Gap gap
        cdef double change = penalty - self.penalty, between
        gap.events = self.events_behind()
        between = max(0.0, gap.events - 1.0)
        gap.total = gap.events * self.penalty + 0.5 * between * change
        between *= max(fabs(change), fabs(self.penalty_change))
        gap.variance = 0.5 * between * between
        return gap

    cdef double events_behind(self) noexcept nogil:
        """How many events there were since Psi(w) was known."""
        if self.priced or not self.penalised:
            return 0.0
        return self.past + self.losses.last.n - self.penalty_past

    cdef void corrected(self) noexcept nogil:
        """The weights moved without an event: what Psi(w) was after the last one is not known."""
        cdef double value
        if self.penalised and not self.priced and self.events_behind() == 0.0:
            value = self.penalty_value()
            if value == value:
                self.penalty = value

    def wake_at(self, double events):
        """Call `wake` when so many events were seen; it gives the next such number."""
        self.due = events
        self.stop = 0

    def observe(self, starts, slots, values, labels, weights, scores):
        """Rows of a batch, in CSR arrays, with the scores before each was learned.

        Those of weight 0 or with a score that is not finite were not learned, and don't count.
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

    def penalty_estimate(self):
        """The sum of Psi(w_t) over the events, its standard error, and whether it is exact."""
        cdef double value = self.penalty, total = self.penalty_sum + self.penalty_rest, now
        cdef Gap gap
        if self.events_behind() > 0.0:
            now = self.penalty_value()
            value = now if now == now else value
        gap = self.gap_to(value)
        return (
            total + self.last_penalties() + gap.total,
            sqrt(self.penalty_variance + gap.variance),
            self.exact and gap.events <= 1.0,
        )

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
                self.penalty_sum, self.penalty_rest, self.penalty_variance, self.penalty,
                self.penalty_change, self.penalty_past, self.next_look, float(self.exact),
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
            self.priced = penalty == penalty  # no NaN: known
        self.offered = self.losses.last.n
        self.stop = 0
        (
            self.penalty_sum, self.penalty_rest, self.penalty_variance, self.penalty,
            self.penalty_change, self.penalty_past, self.next_look, self.exact,
        ) = state["penalty"]
