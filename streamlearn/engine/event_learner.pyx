"""A reader of features and a learner: one call per event turns events into scores."""

from cpython.float cimport PyFloat_CheckExact
from libc.math cimport NAN
from libc.stdlib cimport free

from streamlearn.engine.events cimport UNLABELED, Events, Tags
from streamlearn.engine.row_learner cimport RowLearner, learn_watched
from streamlearn.engine.rows cimport Rows
from streamlearn.engine.single cimport Single
from streamlearn.core.row cimport Row
from streamlearn.core.memory cimport reallocate

from streamlearn.columns.reader import ColumnReader
from streamlearn.errors import InvalidEventError
from streamlearn.engine.columns import rows_from_batches


cdef class EventLearner:
    """A reader of features and the learner on its rows."""

    def __dealloc__(self):
        free(self.scores)

    def __init__(self, reader, learner, grows_when_scored=False):
        self.reader = reader
        self.learner = learner
        self.grows_when_scored = grows_when_scored

    cdef int check_idle(self) except -1:
        """Raise RuntimeError while another thread is learning: growth may move its arrays."""
        if self.learner.busy:
            raise RuntimeError(
                "this learner is in use by another thread; wait, or copy the model per thread")
        return 0

    def raise_if_busy(self):
        """Raise RuntimeError while another thread is learning: the state is not consistent then."""
        self.check_idle()

    def learn_one(self, event, label, weight):
        """Learn an event of weight 1.0 with a known label; return False for any other event.

        This is the fast path of most events.
        """
        cdef double y
        if not (PyFloat_CheckExact(weight) and <double>weight == 1.0):
            return False
        if self.codes is not None:
            try:
                code = self.codes.get(label)
            except TypeError:
                return False
            if code is None:
                return False
            y = code
        elif PyFloat_CheckExact(label) and isinstance(self.learner, Single):
            y = label
            if not (<Single>self.learner).loss.accepts(y):
                return False
        else:
            return False
        self.learn_labels(event, &y, 1.0)
        return True

    def learn_coded(self, event, double y, double weight):
        """Learn one event; y is the learner's number for its label."""
        self.learn_labels(event, &y, weight)

    def learn_targets(self, event, targets, double weight):
        """Learn one event with one label per output."""
        self.learn_labels(event, <const double*><size_t>targets.ctypes.data, weight)

    cdef int learn_labels(self, event, const double* y, double weight) except -1:
        self.check_idle()
        self.reader.read(event, True)
        self.learner.make_room(self.reader.row.n)
        if self.reader.size > self.learner.features:
            self.add_slots(y, weight)
        learn_watched(self.learner, &self.reader.row, y, weight, NULL)
        return self.learner.raise_if_diverged()

    cdef int add_slots(self, const double* y, double weight) except -1:
        """Add slots for the new names of the current row, or drop them if it cannot be learned.

        New slots have weight 0, so they do not change the score.
        """
        cdef Row* row = &self.reader.row
        cdef double* value = <double*>reallocate(NULL, row.n * (sizeof(double) + sizeof(int)))
        cdef int* slot = <int*>(value + row.n)
        cdef Py_ssize_t i
        cdef bint good
        cdef Row known
        known.n, known.slot, known.value, known.square = 0, slot, value, row.square
        for i in range(row.n):
            if row.slot[i] < self.learner.features:
                slot[known.n] = row.slot[i]
                value[known.n] = row.value[i]
                known.n += 1
        good = self.learner.can_learn(&known, y, weight)
        free(value)
        if not good:
            self.reader.forget(self.reader.committed_size, self.reader.committed_columns)
            self.learner.diverged = True
            self.learner.raise_if_diverged()
        self.learner.grow(self.reader.size)
        return 0

    def check(self, event):
        """Raise InvalidEventError if this event is invalid, without changing anything."""
        self.reader.read(event, False)

    def score_one(self, event):
        """Return the score of one event, for models with one output."""
        cdef double p
        self.read(event)
        self.learner.predict(&self.reader.row, &p)
        return p

    def scores_one(self, event, list names):
        """Return the scores of one event by name, for the first outputs."""
        cdef Py_ssize_t k, outputs = min(<Py_ssize_t>len(names), self.learner.outputs)
        cdef double* score = self.score(event)
        return {names[k]: score[k] for k in range(outputs)}

    def class_one(self, event, list labels):
        """Return the predicted label of one event, out of two or more."""
        cdef Py_ssize_t k, best = 0
        cdef double* score = self.score(event)
        if self.learner.outputs == 1:
            return labels[score[0] > 0.0]
        for k in range(1, len(labels)):
            if score[k] > score[best]:
                best = k
        return labels[best]

    def probabilities_one(self, event, list labels):
        """Return the probability of each label for one event, out of two or more."""
        cdef Py_ssize_t k, n = len(labels)
        cdef double* score = self.score(event)
        cdef double* share = score + self.learner.outputs
        self.learner.class_probabilities(score, min(n, self.learner.outputs), share)
        return {labels[k]: share[k] for k in range(n)}

    cdef double* score(self, event) except NULL:
        """Return the scores of one event, followed by space for the class probabilities."""
        cdef Py_ssize_t n = 2 * self.learner.outputs + 1
        if n > self.score_room:
            self.scores = <double*>reallocate(self.scores, n * sizeof(double))
            self.score_room = n
        self.read(event)
        self.learner.predict(&self.reader.row, self.scores)
        return self.scores

    cdef int read(self, event) except -1:
        self.check_idle()
        self.reader.read(event, self.grows_when_scored)
        self.learner.make_room(self.reader.row.n)
        # other models may have added names to a shared reader
        if self.reader.size > self.learner.features:
            self.learner.grow(self.reader.size)
        if self.learner.prefetches:
            self.learner.prefetch_row(&self.reader.row)
        return 0

    def run_row(self, Events rows, Py_ssize_t i, double y, double weight):
        """Do `run` for one row and one output, and return its score; weight 0: only score it."""
        cdef RowLearner learner = self.learner
        cdef double p = NAN
        cdef Row row
        rows.inside(i)
        self.check_idle()
        learner.make_room(rows.longest)
        if rows.known[i] > learner.features:
            learner.grow(<Py_ssize_t>rows.known[i])
        rows.row(i, &row)
        if weight == 0.0:
            learner.predict(&row, &p)
            return p
        learn_watched(learner, &row, &y, weight, &p)
        p = NAN if learner.diverged else p
        learner.diverged = False
        return p

    def rows_from_batches(self, batches, bint grow, aside=frozenset(), weights=None):
        """Return the rows of batches of columns, but for the columns that are `aside`."""
        self.check_idle()
        if self.columns is None or self.columns.reader is not self.reader or (
                self.columns.aside != aside):
            self.columns = ColumnReader(self.reader, aside)
        return rows_from_batches(self.columns, batches, grow or self.grows_when_scored, weights)

    def rows_from_events(self, events, bint grow, weights=None):
        """Return events as rows: all of them, or none if one is invalid."""
        cdef Tags tags
        cdef Events rows = Events()
        tags.kind, tags.label, tags.weight, tags.time = UNLABELED, NAN, 1.0, NAN
        tags.id, tags.id_length = NULL, 0
        self.check_idle()
        grow = grow or self.grows_when_scored
        mark = self.reader.mark()
        try:
            for event in events:
                self.reader.read(event, grow and (weights is None or weights[rows.n] != 0.0))
                rows.append(&self.reader.row, &tags, self.reader.size)
                rows.records += 1
        except BaseException as error:
            self.reader.take_back(mark)
            if isinstance(error, InvalidEventError):
                raise InvalidEventError(f"row {rows.n}: {error}", error.field) from None
            raise
        return rows

    def rows_from_matrix(self, X, bint grow):
        """Return a matrix as rows of slots; column j is the feature named j."""
        if self.reader.fields:
            raise ValueError(
                "declared fields need events with fields, not matrix rows; use learn_one or "
                "learn_many, or add columns for what the fields become"
            )
        rows = Rows(X)
        self.check_idle()
        grow = grow or self.grows_when_scored
        rows.map_columns(self.reader.columns(rows.columns, grow))
        if grow:
            self.learner.grow(self.reader.size)
        return rows
