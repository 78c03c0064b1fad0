"""The progressive sums of a learner over its events, and the cells of its scores."""

cimport cython
from libc.stdint cimport int64_t, uint16_t
from libc.math cimport INFINITY, NAN, fabs, isfinite, sqrt

from streamlearn.engine.watcher cimport Watcher
from streamlearn.losses.loss cimport MAX_PENDING, PendingEvents, Loss, VectorLoss
from streamlearn.losses.loss_sum cimport add_sum, add_pending, loss_sum, sum_in_lanes, two_sum
from streamlearn.regret.reservoir cimport at
from streamlearn.regret.score_cells cimport ScoreCells, cell_of
from streamlearn.core.row cimport Row

import numpy as np

# Slots that are read in half a millisecond: while reading Psi(w) after every event takes no longer
# in total, its sum is exact.
cdef double EXACT_READ_BUDGET = 2.0 ** 18
cdef double TOLERATED_ERROR = 0.05  # of the sum of Psi(w)


@cython.final
cdef class ProgressiveSums(Watcher):
    """The progressive sums of a learner, and the cells of its scores.

    It sees each event as the learner's watcher, or batches by `observe`. If the rule does not keep
    Psi(w_t) up to date, it is read after every event while that is cheap, then on a schedule that
    grows with the stream, and interpolated linearly in between. The `learner` reads it, or
    `read_penalty` for penalties other than l1 and l2. `penalized`: whether Psi is not 0.

    Learners of the same events share a reservoir. One of them `records` the events; each keeps its
    own scores, before learning, of the sampled events, as cells, and the slopes of the loss there.
    The sum of the tangents of all losses at these scores is kept, if slopes are bounded, unless
    the sample is large.

    Several processes that learn parts of a stream `begin` with positions of their own, and what
    they return as their `part` can `join` the sums of the whole.
    """

    def __init__(self, loss, reservoir, penalized=True, records=True):
        self.exact = True
        self.stride = 1
        self.penalized = penalized
        self.needs_penalty = penalized
        self.next_penalty_read = 0.0 if penalized else INFINITY
        self.loss = loss
        self.scalar = isinstance(loss, Loss)
        self.outputs = 1
        self.reservoir = reservoir
        self.records = records
        self.cells = ScoreCells(loss, reservoir)
        if has_bounded_slopes(loss):
            self.use_gradient(np.zeros(1))

    cdef int use_gradient(self, gradient) except -1:
        self.gradient_array = gradient
        self.gradient = <double*>at(gradient)
        self.gradient_room = len(gradient) - 1
        return 0

    cdef void grow_gradient(self, Py_ssize_t features) noexcept nogil:
        if self.gradient == NULL:
            self.gradient_room = max(self.gradient_room, features)
        if features <= self.gradient_room:
            return
        with gil:
            try:
                wide = np.zeros(max(features, 2 * self.gradient_room) + 1)
                wide[: len(self.gradient_array)] = self.gradient_array
                self.use_gradient(wide)
            except MemoryError:
                self.reservoir.failed, self.gradient, self.gradient_room = True, NULL, features

    cdef double slope_at(self, double score, double label) noexcept nogil:
        return (<Loss>self.loss).slope_at(score, label)

    def gradient_sum(self):
        """Return the sum of weight * slope * row over all events, the intercept first; or None.

        It ends with the last number that is not 0.
        """
        if self.gradient == NULL:
            return None
        used = np.flatnonzero(self.gradient_array)
        return self.gradient_array[: used[-1] + 1 if len(used) else 1].copy()

    cdef void process(self, Row* row, const double* y, Py_ssize_t outputs) noexcept nogil:
        cdef int few = self.losses.last.n
        cdef double weight = self.losses.last.weight[few - 1]
        cdef int64_t place = self.position(few - 1)
        cdef double value = 0.0
        cdef uint16_t cell
        if self.scalar:
            cell = self.cells.cell_at(&self.losses.last, few - 1)
        else:
            value = (<VectorLoss>self.loss).value_of(self.scores, outputs, y)
            cell = cell_of(value, False)
        self.outputs = outputs
        self.needs_penalty = self.penalties[few - 1] == self.penalties[few - 1]  # no NaN: known
        if self.reservoir.has(place):
            if self.records:
                self.reservoir.record(place, row, y, weight)
            self.cells.sample(place, cell, self.losses.last.slope[few - 1])
            if self.reservoir.large:
                self.gradient = NULL  # with so many events, the sum of the tangents adds little
        if not self.needs_penalty and self.past + few >= self.next_penalty_read:
            self.sample_penalty()
        if not self.scalar:
            self.cells.add(cell, weight)
            self.add_value(weight * value)
        elif few == MAX_PENDING:
            self.cells.count(&self.losses.last)
            self.add_value((<Loss>self.loss).sum_pending(&self.losses.last))
        self.process_at = self.next_process_at()

    cdef int64_t position(self, Py_ssize_t pending) noexcept nogil:
        """Return the position of an event with so many pending ones before it."""
        return self.first + self.stride * (<int64_t>self.past + pending)

    cdef void add_value(self, double value) noexcept nogil:
        """Add the sum of the losses of the pending events."""
        two_sum(&self.penalty_sum, &self.penalty_rest, self.pending_penalty())
        self.penalty_past += self.losses.last.n if self.needs_penalty else 0
        self.weight_past += self.pending_weight()
        self.past += self.losses.last.n
        add_sum(&self.losses, value)

    cdef int next_process_at(self) noexcept nogil:
        """Return how many pending events there may be before the next `process`."""
        cdef int n = self.losses.last.n, end = MAX_PENDING
        cdef double now = self.past + n
        if not self.needs_penalty:
            end = <int>min(<double>end, self.next_penalty_read - now + n)
        if not self.scalar or end <= n:
            return n + 1
        for n in range(n + 1, end):
            if self.reservoir.has(self.position(n - 1)):
                return n
        return end

    cdef double pending_weight(self) noexcept nogil:
        """Return the weight of the pending events."""
        return sum_in_lanes(self.losses.last.weight, self.losses.last.n)

    cdef double pending_penalty(self) noexcept nogil:
        """Return the sum of Psi(w) before each pending event, if it was known."""
        return sum_in_lanes(self.penalties, self.losses.last.n) if self.needs_penalty else 0.0

    cdef double penalty_value(self, double* work) noexcept nogil:
        """Return Psi(w) after all events so far, by a pass over all slots; NaN if unknown.

        Set `work` to about the slots, and steps of lagging weights, that it took.
        """
        cdef double value = NAN
        work[0] = 1.0
        if self.learner is not None:
            value = self.learner.penalty_summed(work)
        if value != value:
            with gil:
                if self.read_penalty is not None:
                    value = self.read_penalty()
                if self.learner is not None:
                    work[0] = self.learner.features * self.learner.outputs
        return value

    cdef void sample_penalty(self) noexcept nogil:
        """Read Psi(w), and schedule the next read."""
        cdef double now = self.past + self.losses.last.n, events = self.before + now
        cdef double cost, tolerated, gap
        cdef double value = self.penalty_value(&cost)
        if value != value:
            self.next_penalty_read = INFINITY
            return
        self.set_penalty(value)
        self.next_penalty_read = now + 1.0
        if events * cost > EXACT_READ_BUDGET:
            # more often while the error is large
            tolerated = TOLERATED_ERROR * self.penalty_sum
            gap = (0.5 if 0.0 < self.penalty_variance <= tolerated * tolerated else 0.125) * events
            self.next_penalty_read = now + max(1.0, min(gap, max(0.01 * events, cost)))

    def record_penalty(self, double penalty):
        """Record the value of Psi(w) after all events so far."""
        self.set_penalty(penalty)

    cdef void set_penalty(self, double penalty) noexcept nogil:
        cdef PenaltyGap gap = self.gap_to(penalty)
        two_sum(&self.penalty_sum, &self.penalty_rest, gap.total)
        self.penalty_variance += gap.variance
        self.penalty_past += gap.events
        self.exact = self.exact and gap.events <= 1.0
        self.penalty_change = penalty - self.penalty
        self.penalty = penalty

    cdef PenaltyGap gap_to(self, double penalty) noexcept nogil:
        """Estimate the sum of Psi(w) since its last known value, if it is `penalty` now.

        Psi is interpolated linearly from the first event of the gap; the last value counts for the
        next. The variance is that of noise whose values differ as much as the ends of this gap or
        of the previous one, because the ends are similar where Psi turns around. A steady Psi is
        closer to the line.
        """
        cdef PenaltyGap gap
        cdef double change = penalty - self.penalty, between
        gap.events = self.events_since_read()
        between = max(0.0, gap.events - 1.0)
        gap.total = gap.events * self.penalty + 0.5 * between * change
        between *= max(fabs(change), fabs(self.penalty_change))
        gap.variance = 0.5 * between * between
        return gap

    cdef double events_since_read(self) noexcept nogil:
        """Return the number of events since Psi(w) was known."""
        if self.needs_penalty or not self.penalized:
            return 0.0
        return self.past + self.losses.last.n - self.penalty_past

    cdef void corrected(self) noexcept nogil:
        """Read Psi(w) again: the weights moved without an event."""
        cdef double value, work
        if self.penalized and not self.needs_penalty and self.events_since_read() == 0.0:
            value = self.penalty_value(&work)
            if value == value:
                self.penalty = value

    def observe(self, starts, slots, values, labels, weights, scores):
        """Add a batch of rows in CSR arrays, with the score of each before it was learned.

        Rows of weight 0 or with a score that is not finite were not learned, and do not count.
        """
        starts = np.ascontiguousarray(starts, np.int64)
        slots = np.ascontiguousarray(slots, np.int32)
        values = np.ascontiguousarray(values, float)
        cdef Py_ssize_t i, c, n = len(starts) - 1, width = self.reservoir.width, k
        labels = np.ascontiguousarray(labels, float).reshape(n, width)
        scores = np.ascontiguousarray(scores, float).reshape(n, -1)
        shares = np.ones(n) if weights is None else np.ascontiguousarray(weights, float)
        if len(shares) != n or (n and (starts[0] < 0 or starts[n] > min(len(slots), len(values)))):
            raise ValueError(f"starts, slots, values and weights do not match: starts has {n} rows")
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
        self.grow_gradient(<Py_ssize_t>slots[: starts[n]].max(initial=-1) + 1)
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
                row.square = 0.0  # not used
                self.record_event(&row, label + i * width, share[i], k, NAN, NAN)

    def use_loss(self, loss):
        """Use the same loss, for other classes."""
        self.loss = loss

    def swap_classes(self):
        """Swap the two classes in the sample and the cells; losses stay the same."""
        cdef PendingEvents* last = &self.losses.last
        cdef int i
        if self.records:
            self.reservoir.swap_classes()
        self.cells.swap_classes()
        if self.gradient != NULL:
            self.gradient_array *= -1.0
        for i in range(last.n):
            last.score[i], last.label[i] = -last.score[i], -last.label[i]
            last.slope[i] = -last.slope[i]

    # -- the parts of several processes ---------------------------------------------------------

    @property
    def place(self):
        """The position of the next event."""
        return self.position(self.losses.last.n)

    def begin(self, place, stride=1, before=0.0):
        """Forget all events; the next ones have the positions place, place + stride, ...

        Psi(w) is read as often as after so many events `before`.
        """
        self.first, self.stride, self.before = place, stride, before
        self.past = self.weight_past = 0.0
        self.losses.sum = self.losses.rest = 0.0
        self.losses.last.n = self.process_at = 0
        self.penalty_sum = self.penalty_rest = self.penalty_variance = 0.0
        self.penalty = self.penalty_change = self.penalty_past = 0.0
        self.exact = True
        self.needs_penalty = self.penalized
        self.next_penalty_read = 0.0 if self.penalized else INFINITY
        self.cells.begin()
        if self.gradient != NULL:
            self.gradient_array[:] = 0.0
        if self.penalized:
            self.set_penalty(self.known_penalty())

    def part(self):
        """Return the sums since `begin` as plain data and arrays, for `join`."""
        total, stderr, exact = self.penalty_estimate()
        return {
            "end": self.position(self.losses.last.n - 1) + 1, "events": self.events,
            "weight": self.weight,
            "outputs": self.outputs, "loss": self.progressive_loss, "penalty": total,
            "stderr": stderr, "exact": exact, "samples": list(self.cells.current_samples()),
            "cells": self.cell_weights(), "gradient": nonzeros_of(self.gradient_sum()),
        }

    def join(self, parts):
        """Add what other processes have learned meanwhile, and go on after their positions."""
        place = max([self.place] + [part["end"] for part in parts])
        if self.penalized:
            self.set_penalty(self.known_penalty())
        for part in parts:
            two_sum(&self.losses.sum, &self.losses.rest, part["loss"])
            two_sum(&self.penalty_sum, &self.penalty_rest, part["penalty"])
            self.penalty_variance += part["stderr"] * part["stderr"]
            self.exact = self.exact and part["exact"]
            self.past += part["events"]
            self.penalty_past += part["events"]
            self.weight_past += part["weight"]
            self.outputs = max(self.outputs, part["outputs"])
            if part["gradient"] is None:
                self.gradient = NULL
            if self.gradient != NULL:
                places, values = part["gradient"]
                self.grow_gradient(<Py_ssize_t>places.max(initial=0))
                self.gradient_array[places] += values
        self.cells.join([part["cells"] for part in parts], [part["samples"] for part in parts])
        self.first, self.stride = place - <int64_t>self.events, 1
        self.joined, self.process_at = True, 0

    def known_penalty(self):
        """Return Psi(w) now, or its last known value."""
        cdef double work, value = self.penalty_value(&work)
        return value if value == value else self.penalty

    @property
    def events(self):
        """The number of events."""
        return self.past + self.losses.last.n

    @property
    def weight(self):
        """The sum of the weights of the events."""
        return self.weight_past + self.pending_weight()

    @property
    def progressive_loss(self):
        """The weighted sum of the losses before learning."""
        if not self.scalar:
            return self.losses.sum + self.losses.rest
        return loss_sum(&self.losses, self.loss)

    def cell_weights(self):
        """Return the weight of all events in each cell of scores."""
        cdef int i
        weights = self.cells.weight_of_each()
        for i in range(self.losses.last.n):
            weights[self.cells.cell_at(&self.losses.last, i)] += self.losses.last.weight[i]
        return weights

    def penalty_estimate(self):
        """Return the sum of Psi(w_t) over events, its standard error, and whether it is exact."""
        cdef double value = self.penalty, total = self.penalty_sum + self.penalty_rest, now, work
        cdef PenaltyGap gap
        if self.events_since_read() > 0.0:
            now = self.penalty_value(&work)
            value = now if now == now else value
        gap = self.gap_to(value)
        return (
            total + self.pending_penalty() + gap.total,
            sqrt(self.penalty_variance + gap.variance),
            self.exact and gap.events <= 1.0,
        )

    def state(self):
        """Return everything as plain data and arrays."""
        cdef PendingEvents* last = &self.losses.last
        cdef int i
        return {
            "events": self.past,
            "weight": self.weight_past,
            "outputs": self.outputs,
            "first": self.first,
            "joined": self.joined,
            "loss": [self.losses.sum, self.losses.rest],
            "pending": [
                [last.score[i], last.label[i], last.weight[i], last.slope[i], self.penalties[i]]
                for i in range(last.n)
            ],
            "penalty": [
                self.penalty_sum, self.penalty_rest, self.penalty_variance, self.penalty,
                self.penalty_change, self.penalty_past, self.next_penalty_read, float(self.exact),
            ],
            "cells": self.cells.weight_of_each(),
            "samples": list(self.cells.current_samples()),
            "gradient": self.gradient_sum(),
        }

    def restore(self, state):
        """Resume from `state`, bit for bit."""
        self.past, self.weight_past = state["events"], state["weight"]
        self.outputs, self.first, self.joined = state["outputs"], state["first"], state["joined"]
        self.losses.sum, self.losses.rest = state["loss"]
        self.losses.last.n = 0
        for score, label, weight, slope, penalty in state["pending"]:
            self.penalties[self.losses.last.n] = penalty
            add_pending(&self.losses, score, label, weight, slope)
            self.needs_penalty = penalty == penalty  # no NaN: known
        self.cells.restore(state["cells"], *state["samples"])
        self.gradient = NULL
        if state["gradient"] is not None:
            self.use_gradient(np.append(state["gradient"], 0.0))
        self.process_at = 0
        (
            self.penalty_sum, self.penalty_rest, self.penalty_variance, self.penalty,
            self.penalty_change, self.penalty_past, self.next_penalty_read, self.exact,
        ) = state["penalty"]


def has_bounded_slopes(loss):
    """Return whether slopes of this loss are bounded: then its conjugate is infinite far away."""
    far = np.array([-1e100, 1e100])
    return isinstance(loss, Loss) and bool(np.isinf(loss.conjugate(far, np.ones(2))).all())


def nonzeros_of(array):
    """Return the indices and values of the numbers that are not 0."""
    if array is None:
        return None
    places = np.flatnonzero(array)
    return places, array[places]
