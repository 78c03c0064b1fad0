"""Corrections: a label that arrives after its timeout is learned, and the timeout's is undone.

The join keeps the events that were learned at a timeout (`LearnedTimeouts`). Each learner keeps the
scores at which it did so (`Corrections`), since their slopes are what it takes back.
"""

cimport cython
from libc.math cimport isnan
from libc.stdint cimport int64_t, uint64_t

from streamlearn.core.row cimport Row
from streamlearn.engine.events cimport Events
from streamlearn.engine.row_learner cimport RowLearner, is_learnable
from streamlearn.engine.single cimport OneVersusRest, Single
from streamlearn.late.held cimport Entry, HeldEvents
from streamlearn.late.id_table cimport IdTable
from streamlearn.late.tickets cimport TicketPool

import numpy as np

from streamlearn.errors import IncompatibleError
from streamlearn.late.joined_rows import CORRECTED, PREDICTED, TIMED_OUT


@cython.final
cdef class LearnedTimeouts:
    """The events of a join that were learned at a timeout, by id: a label may correct them."""

    def __init__(self, seed, TicketPool ticket_pool):
        self.id_table = IdTable(seed)
        self.events = HeldEvents(self.id_table)
        self.ticket_pool = ticket_pool

    cdef int keep(self, Entry* entry) except -1:
        """Keep an event that is being learned."""
        self.id_table.add(entry.tag, self.events.copy(entry))
        return 0

    cdef int64_t find(self, uint64_t tag) noexcept:
        """Return the place of an event, which is here."""
        cdef uint64_t at = tag >> 32
        cdef int64_t place = self.id_table.probe(tag, &at)
        while self.events.at(place).tag != tag:
            at += 1
            place = self.id_table.probe(tag, &at)
        return place

    cdef int drop(self, int64_t place) except -1:
        """Drop an event."""
        self.release(place)
        self.id_table.remove(self.events.at(place).tag, place)
        return self.events.remove(place)

    cdef void release(self, int64_t place) noexcept:
        """Release the ticket of an event, which can no longer be corrected."""
        cdef Entry* entry = self.events.at(place)
        if entry.ticket >= 0:
            self.ticket_pool.release(entry.ticket)
            entry.ticket = -1

    def release_all(self):
        """Release all tickets: the timeouts were learned with another label."""
        cdef int64_t place = self.events.oldest()
        while place >= 0:
            self.release(place)
            place = self.events.next(place)


class Corrections:
    """The corrections of one learner, for the timeouts of `label`."""

    def __init__(self, label):
        self.label = label
        self.scores = np.empty((0, 1))  # by ticket: at which the label was learned; NaN: it was not

    def learn_part(self, estimator, rows, part):
        """Do `Linear.learn_part`, with the corrections among the rows; their scores are NaN."""
        corrected = np.flatnonzero(rows.roles[part.start:part.stop] == CORRECTED).tolist()
        n, at = part.stop - part.start, 0
        for i in [*corrected, n]:
            estimator.engine.learner.run(
                rows, part.codes[at:i], part.weights[at:i], part.scores[at:i],
                part.start + at, part.start + i, True)
            self.note(rows, part, at, i)
            if i < n:
                self.correct(estimator, rows, part, i)
            at = i + 1

    def note(self, rows, part, first, last):
        """Note the scores at which timeouts were learned, and forget those of earlier events."""
        at = slice(part.start + first, part.start + last)
        roles, tickets, scores = rows.roles[at], rows.tickets[at], part.scores[first:last]
        self.scores[tickets[(roles == PREDICTED) & (tickets >= 0)]] = np.nan
        learned = (roles == TIMED_OUT) & ~np.isnan(scores[:, 0])
        self.scores[tickets[learned]] = scores[learned]

    def correct(self, estimator, rows, part, i):
        """Learn a row of a part, and undo what was learned from it with `label`."""
        row = part.start + i
        code, factor = estimator.code_and_factor(self.label)
        part.scores[i] = np.nan
        relearn(
            estimator.engine.learner, rows, row, part.codes[i], part.weights[i],
            code, factor * rows.weights[row], self.scores[rows.tickets[row]])


def relearn(
    RowLearner learner, Events rows, Py_ssize_t i, double y, double weight, double old_y,
    double old_weight, scores,
):
    """Learn a row, and undo the slope at these scores with the label `old_y`; NaN: none."""
    cdef Py_ssize_t k
    cdef Row row, inside
    cdef Row* used = &row
    cdef Single one
    cdef double p, slope
    learner.make_room(rows.longest)
    rows.row(i, &row)
    for k in range(learner.outputs):
        one = output_of(learner, k)
        if one.inside:
            one.with_intercept(&row, &inside)
            used = &inside
        p = one.query(used)
        slope = weight * one.loss.slope_at(p, side(learner, y, k))
        if not (isnan(scores[k]) or isnan(old_y)):
            slope -= old_weight * one.loss.slope_at(scores[k], side(learner, old_y, k))
        if is_learnable(p, slope, used):
            one.step(used, slope, slope)
            if one.watcher is not None:
                one.watcher.corrected()


cdef Single output_of(RowLearner learner, Py_ssize_t k):
    return learner if isinstance(learner, Single) else (<OneVersusRest>learner).singles[k]


cdef double side(RowLearner learner, double code, Py_ssize_t k):
    """Return a label for output k: with several outputs, this class or the rest."""
    if isinstance(learner, Single):
        return code
    return 1.0 if code == k else -1.0


def check_corrections(estimator):
    """Raise IncompatibleError unless a learned event can be undone."""
    cdef RowLearner learner = estimator.engine.learner
    cdef Single one
    if isinstance(learner, (Single, OneVersusRest)):
        one = output_of(learner, 0)
        if one.calibration is not None:
            raise IncompatibleError(
                "corrections cannot be undone in a calibration, which is no sum of slopes; use "
                "calibrated=False, or no corrections")
        special = one.learns_events or one.observes_events or one.separate_score
        if not special and one.batch is None and one.weights.rule.sums_gradients:
            return
    raise IncompatibleError(
        f"{type(estimator).__name__} with {estimator.rules[0]!r} cannot undo a learned event: "
        "its weights are not a function of the sum of all slopes; for corrections use "
        'DualAveraging or AdaGradDualAveraging, a scalar loss, average="last" and batch=1')
