"""The one hot loop: rows in, scores out, rules called twice a row.

- Weights: a rule, and the average of its weights if one was asked for.
- Batch: k slopes at the same weights, to be learnt as one.
- Single: one output; OneVersusRest: one for each class; Joint: all classes in one vector, for
  losses of several outputs.

An intercept is free, with weights of its own (a rule on the single slot 0), or inside the penalty:
then it is slot 0 and the features follow, `shift` = 1.
"""

cimport cython
from libc.math cimport NAN, isfinite
from libc.stdlib cimport free
from libc.string cimport memcpy

from streamlearn.engine.rows cimport Rows
from streamlearn.losses.loss cimport Loss, VectorLoss
from streamlearn.row cimport Row, squared
from streamlearn.rules.average cimport Average
from streamlearn.rules.rule cimport Rule, room

import numpy as np

from streamlearn.errors import Diverged
from streamlearn.rules.needs import Refused


@cython.final
cdef class Weights:
    """A rule at work, and the average that is shown instead of its last weights."""

    def __init__(self, Rule rule, average="last", seed=0):
        self.rule = rule
        if average != "last":
            self.average = Average(rule, average, seed)

    cdef int grow(self, Py_ssize_t n) except -1:
        if n > self.rule.n:
            self.rule.grow(n)
            if self.average is not None:
                self.average.grow()
        return 0

    cdef double predict(self, Row* row) noexcept nogil:
        return self.rule.predict(row) if self.average is None else self.average.score(row)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.rule.weight(j) if self.average is None else self.average.weight(j)

    cdef void before(self, Row* row) noexcept nogil:
        """What an average wants to know before a step."""
        self.average.before(row)
        if self.rule.forgets():
            self.average.settle(self.rule.t + 1.0)

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        cdef double p
        if self.average is not None:
            self.average.before(row)
        p = self.rule.learn(row, loss, y, weight)
        if self.average is not None or self.rule.tired:
            self.after()
        return p

    cdef void after(self) noexcept nogil:
        if self.average is not None:
            self.average.after()
        if self.rule.tired:
            if self.average is not None:
                self.average.settle(self.rule.t)
            self.rule.rest()

    def values(self, start=0, stop=None):
        """The weights of slots start .. stop - 1 as they are shown."""
        shown = self.rule if self.average is None else self.average
        return shown.weights(start, stop)

    def mirror(self):
        self.rule.mirror()
        if self.average is not None:
            self.average.mirror()

    def spread(self, old, new):
        self.rule.spread(old, new)
        if self.average is not None:
            self.average.spread(old, new)

    def state(self):
        state = {"rule": self.rule.state()}
        if self.average is not None:
            state["average"] = self.average.state()
        return state

    def restore(self, state):
        self.rule.restore(state["rule"])
        if self.average is not None:
            self.average.restore(state["average"])


@cython.final
cdef class Batch:
    """Sums of slope * x over the events of a batch, and which slots they touch."""

    def __init__(self, size):
        self.size = size

    def __dealloc__(self):
        free(self.sums)
        free(self.slot)
        free(self.value)
        free(self.marked)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.capacity * (2 * sizeof(double) + 2 * sizeof(int))

    cdef int grow(self, Py_ssize_t n) except -1:
        cdef Py_ssize_t j
        if n > self.capacity:
            self.capacity = n if n > 2 * self.capacity else 2 * self.capacity
            self.sums = <double*>room(self.sums, self.capacity * sizeof(double))
            self.slot = <int*>room(self.slot, self.capacity * sizeof(int))
            self.value = <double*>room(self.value, self.capacity * sizeof(double))
            self.marked = <bint*>room(self.marked, self.capacity * sizeof(bint))
        for j in range(self.n, n):
            self.sums[j] = 0.0
            self.marked[j] = False
        if n > self.n:
            self.n = n
        return 0

    cdef void add(self, Row* row, double slope) noexcept nogil:
        cdef Py_ssize_t i, j
        for i in range(row.n):
            j = row.slot[i]
            if not self.marked[j]:
                self.marked[j] = True
                self.slot[self.touched] = <int>j
                self.touched += 1
            self.sums[j] += slope * row.value[i]

    cdef bint complete(self) noexcept nogil:
        """Count one event; whether the batch is full."""
        self.count += 1
        return self.count >= self.size

    cdef void take(self, Row* row) noexcept nogil:
        """The mean gradient as a row; the batch is empty again."""
        cdef Py_ssize_t i, j
        for i in range(self.touched):
            j = self.slot[i]
            self.value[i] = self.sums[j] / self.size
            self.sums[j] = 0.0
            self.marked[j] = False
        row.n = self.touched
        row.slot = self.slot
        row.value = self.value
        row.square = squared(self.value, self.touched)
        self.touched = 0
        self.count = 0

    def mirror(self):
        cdef Py_ssize_t j
        for j in range(self.n):
            self.sums[j] = -self.sums[j]

    def pending(self):
        """The slots touched and their sums."""
        slots = [self.slot[i] for i in range(self.touched)]
        return slots, [self.sums[j] for j in slots]

    def spread(self, old, new):
        """Give every feature `new` slots instead of `old`."""
        slots, sums = self.pending()
        for j in slots:
            self.sums[<Py_ssize_t>j] = 0.0
            self.marked[<Py_ssize_t>j] = False
        self.touched = 0
        moved = [j // old * new + j % old for j in slots]
        self.hold(max(self.n // old * new, self.n), self.count, moved, sums)

    def hold(self, n, count, slots, sums):
        """Take these sums as what is pending."""
        cdef Py_ssize_t j
        self.grow(n)
        self.count = count
        for j, total in zip(slots, sums, strict=True):
            self.marked[j] = True
            self.slot[self.touched] = <int>j
            self.touched += 1
            self.sums[j] = total

    def state(self):
        slots, sums = self.pending()
        return {
            "n": self.n,
            "count": self.count,
            "slots": np.array(slots, dtype=np.int64),
            "sums": np.array(sums),
        }

    def restore(self, state):
        self.hold(state["n"], state["count"], state["slots"].tolist(), state["sums"].tolist())


cdef class Learner:
    """What learns from rows: one score a row, or one for each class."""

    def __dealloc__(self):
        free(self.slot)
        free(self.value)

    cdef int make_room(self, Py_ssize_t n) except -1:
        """Room for a row of n features and an intercept."""
        if n + 1 > self.row_room:
            self.row_room = 2 * n + 16
            self.slot = <int*>room(self.slot, self.row_room * sizeof(int))
            self.value = <double*>room(self.value, self.row_room * sizeof(double))
        if self.watcher is not None:
            self.watcher.make_room(self.outputs)
        return 0

    cdef int know(self, Py_ssize_t features) except -1:
        """Make so many features known."""
        self.features = max(self.features, features)
        return 0

    cdef void placed(self, Row* row, Row* out) noexcept nogil:
        """The row with the intercept inside it, as slot 0."""
        cdef Py_ssize_t i
        self.slot[0] = 0
        self.value[0] = 1.0
        for i in range(row.n):
            self.slot[i + 1] = row.slot[i] + 1
        memcpy(self.value + 1, row.value, row.n * sizeof(double))
        out.n = row.n + 1
        out.slot = self.slot
        out.value = self.value
        out.square = row.square + 1.0

    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil:
        """Learn one row; `scores`, if not NULL, gets the scores before learning."""

    cdef void predict(self, Row* row, double* scores) noexcept nogil:
        """The scores of one row."""

    cdef double penalty_now(self) noexcept nogil:
        """Psi at the weights that are shown; NaN where that would take a pass over all slots."""
        return NAN

    cdef int complain(self) except -1:
        """Raise Diverged if an event could not be learnt."""
        if self.diverged:
            self.diverged = False
            raise Diverged(
                "the score of an event is not finite, so it was not learnt: the steps are too long "
                "for features of this size; scale them, take a smaller step, or a rule that sets "
                "its own (the default)"
            )
        return 0

    cdef int enter(self) except -1:
        if self.busy:
            raise RuntimeError("this learner is at work in another thread")
        self.busy = True

    def run(self, Rows rows, labels, weights, scores, Py_ssize_t start=0, stop=None):
        """Learn rows start .. stop - 1, without the GIL.

        `labels` are float64, one row of them for each row; `weights` and `scores` too, or None.
        """
        cdef Columns columns
        cdef Py_ssize_t last = rows.n if stop is None else stop
        columns.labels = <const double*><size_t>labels.ctypes.data
        columns.width = labels.shape[1] if labels.ndim == 2 else 1
        columns.weights = NULL if weights is None else <const double*><size_t>weights.ctypes.data
        columns.scores = NULL if scores is None else <double*><size_t>scores.ctypes.data
        self.make_room(rows.longest)
        self.enter()
        try:
            with nogil:
                self.learn_all(rows, &columns, start, last)
        finally:
            self.busy = False
        self.complain()

    cdef void learn_all(
        self, Rows rows, const Columns* columns, Py_ssize_t start, Py_ssize_t stop
    ) noexcept nogil:
        cdef Py_ssize_t i
        cdef double weight = 1.0
        cdef double* scores = NULL
        cdef Row row
        for i in range(start, stop):
            rows.row(i, &row)
            if columns.weights != NULL:
                weight = columns.weights[i]
            if columns.scores != NULL:
                scores = columns.scores + i * self.outputs
            if weight != 0.0:
                learn_watched(self, &row, columns.labels + i * columns.width, weight, scores)
                if self.diverged:
                    return
            elif scores != NULL:
                self.predict(&row, scores)

    def score(self, Rows rows):
        """The scores of all rows, without the GIL."""
        cdef Py_ssize_t i, n = rows.n, k = self.outputs
        scores = np.empty((n, k))
        cdef double* out = <double*><size_t>scores.ctypes.data
        cdef Row row
        self.make_room(rows.longest)
        self.enter()
        try:
            with nogil:
                for i in range(n):
                    rows.row(i, &row)
                    self.predict(&row, out + i * k)
        finally:
            self.busy = False
        return scores


@cython.final
cdef class Single(Learner):
    """One output: a regression, or two classes."""

    def __init__(self, rule, penalty, loss, intercept, average, batch, seed):
        """`intercept`: "none", "free" or "inside"."""
        self.loss = loss
        self.outputs = 1
        self.weights = Weights(rule.bind(penalty, loss), average, seed)
        self.inside = intercept == "inside"
        self.shift = 1 if self.inside else 0
        self.whole = type(self.weights.rule).whole
        self.watchful = self.weights.rule.watchful
        self.separate_score = average != "last" or self.weights.rule.looks_ahead
        if batch > 1:
            if self.whole:
                raise Refused(
                    f"{type(rule).__name__}: its steps look at each event's own features, "
                    "so it takes no batches; use batch=1"
                )
            self.batch = Batch(batch)
        if intercept == "free":
            self.free_intercept = Weights(self.weights.rule.for_intercept(), average, seed)
            self.free_intercept.grow(1)
            self.watchful = self.watchful or self.free_intercept.rule.watchful
        self.special = (
            self.inside
            or self.whole
            or self.watchful
            or self.separate_score
            or self.batch is not None
        )
        self.one_slot = 0
        self.one_value = 1.0
        self.one.n = 1
        self.one.slot = &self.one_slot
        self.one.value = &self.one_value
        self.one.square = 1.0
        self.make_room(16)
        self.know(0)

    cdef int know(self, Py_ssize_t features) except -1:
        self.features = max(self.features, features)
        self.weights.grow(self.features + self.shift)
        if self.batch is not None:
            self.batch.grow(self.features + self.shift)
        return 0

    cdef double predict_one(self, Row* row) noexcept nogil:
        cdef Row inside
        cdef double p
        if self.inside:
            self.placed(row, &inside)
            return self.weights.predict(&inside)
        p = self.weights.predict(row)
        if self.free_intercept is not None:
            p += self.free_intercept.predict(&self.one)
        return p

    cdef double learn_one(self, Row* row, double y, double weight, bint scored) noexcept nogil:
        cdef double p, slope
        if self.special:
            return self.learn_specially(row, y, weight, scored)
        p = self.ask(row)
        slope = weight * self.loss.slope_at(p, y)
        if isfinite(p) and isfinite(slope):
            self.step(row, slope, slope)
        else:
            self.diverged = True
        return p

    cdef double learn_specially(
        self, Row* row, double y, double weight, bint scored
    ) noexcept nogil:
        """With an average, a batch, the intercept inside, or a rule that wants the whole event."""
        cdef Row inside
        cdef double p, shown = 0.0, slope
        if scored and self.separate_score:
            shown = self.predict_one(row)
        if self.inside:
            self.placed(row, &inside)
            row = &inside
        if self.whole:
            if self.watchful:
                self.weights.rule.see(row, self.loss.value_at(0.0, y), weight)
            p = self.weights.learn(row, self.loss, y, weight)
            return shown if self.separate_score else p
        p = self.ask(row)
        slope = weight * self.loss.slope_at(p, y)
        if not (isfinite(p) and isfinite(slope)):
            self.diverged = True
            return p
        if self.watchful:
            self.weights.rule.see(row, self.loss.value_at(0.0, y), weight)
            if self.free_intercept is not None:
                self.free_intercept.rule.see(&self.one, self.loss.value_at(0.0, y), weight)
        if self.batch is None:
            self.step(row, slope, slope)
        else:
            self.batch.add(row, slope)
            self.intercept_sum += slope
            if self.batch.complete():
                self.batch.take(&inside)
                self.step(&inside, 1.0, self.intercept_sum / self.batch.size)
                self.intercept_sum = 0.0
        return shown if self.separate_score else p

    cdef inline double ask(self, Row* row) noexcept nogil:
        """The score at the weights where the rule asks for the slope."""
        cdef double p = self.weights.query(row)
        if self.free_intercept is not None:
            p += self.free_intercept.query(&self.one)
        return p

    cdef double penalty_now(self) noexcept nogil:
        return self.weights.rule.penalty_now() if self.weights.average is None else NAN

    cdef inline void step(self, Row* row, double slope, double intercept_slope) noexcept nogil:
        self.weights.update(row, slope)
        if self.free_intercept is not None:
            self.free_intercept.update(&self.one, intercept_slope)

    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil:
        cdef double p = self.learn_one(row, y[0], weight, scores != NULL)
        if scores != NULL:
            scores[0] = p

    cdef void predict(self, Row* row, double* scores) noexcept nogil:
        scores[0] = self.predict_one(row)

    # -- what users see ---------------------------------------------------------------------------

    def rules(self):
        """The rules of the features' weights, one for each output."""
        return [self.weights.rule]

    def coefficients(self):
        """The weights of all features, an array of outputs x features."""
        return self.weights.values(self.shift, self.shift + self.features)[None, :]

    def intercepts(self):
        if self.inside:
            return self.weights.values(0, 1)
        if self.free_intercept is not None:
            return self.free_intercept.values(0, 1)
        return np.zeros(1)

    def penalised(self):
        """The vector that the penalty sees."""
        return self.weights.values()

    def bound(self, u, intercept):
        """The regret bound against the weights u and an intercept."""
        if u is not None and np.ndim(u) == 1 and self.inside:
            u = np.concatenate([[intercept], u])
        bound, reason = self.weights.rule.bound(u)
        if reason is None and self.free_intercept is not None:
            against = None if u is None else np.array([intercept])
            more, reason = self.free_intercept.rule.bound(against)
            if reason is not None:
                return None, f"the intercept is free: {reason}"
            bound += more
        return bound, reason

    def mirror(self):
        """Exchange the two classes."""
        if self.watcher is not None:
            self.watcher.mirror()
        self.weights.mirror()
        if self.free_intercept is not None:
            self.free_intercept.mirror()
        if self.batch is not None:
            self.batch.mirror()
        self.intercept_sum = -self.intercept_sum

    def state(self):
        state = {"features": self.features, "weights": self.weights.state()}
        if self.free_intercept is not None:
            state["intercept"] = self.free_intercept.state()
        if self.batch is not None:
            state["batch"] = self.batch.state()
            state["intercept_sum"] = self.intercept_sum
        return state

    def restore(self, state):
        self.know(state["features"])
        self.weights.restore(state["weights"])
        if self.free_intercept is not None:
            self.free_intercept.restore(state["intercept"])
        if self.batch is not None:
            self.batch.restore(state["batch"])
            self.intercept_sum = state["intercept_sum"]


@cython.final
cdef class OneVersusRest(Learner):
    """One output for each class, each learning its class against all others."""

    def __init__(self, singles):
        self.singles = singles
        self.outputs = len(singles)
        self.features = max(single.features for single in singles)
        self.shift = singles[0].shift
        self.point()

    def __dealloc__(self):
        free(self.each)

    cdef int point(self) except -1:
        """The singles again, borrowed, for code without the GIL."""
        self.each = <void**>room(self.each, self.outputs * sizeof(void*))
        for k in range(self.outputs):
            self.each[k] = <void*>self.singles[k]
        return 0

    cdef int make_room(self, Py_ssize_t n) except -1:
        Learner.make_room(self, n)
        for single in self.singles:
            (<Single>single).make_room(n)
        return 0

    cdef int know(self, Py_ssize_t features) except -1:
        self.features = max(self.features, features)
        for single in self.singles:
            (<Single>single).know(self.features)
        return 0

    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil:
        cdef Py_ssize_t k
        cdef double p, label
        for k in range(self.outputs):
            label = 1.0 if y[0] == k else -1.0
            p = (<Single>self.each[k]).learn_one(row, label, weight, scores != NULL)
            if scores != NULL:
                scores[k] = p

    cdef void predict(self, Row* row, double* scores) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.outputs):
            scores[k] = (<Single>self.each[k]).predict_one(row)

    def rules(self):
        return [rule for single in self.singles for rule in single.rules()]

    def coefficients(self):
        return np.vstack([single.coefficients() for single in self.singles])

    def intercepts(self):
        return np.concatenate([single.intercepts() for single in self.singles])

    def penalised(self):
        return np.concatenate([single.penalised() for single in self.singles])

    def bound(self, u, intercept):
        return None, "a bound holds for one output, and each class has its own (`rules`)"

    def add(self, single):
        """One more class."""
        (<Single>single).know(self.features)
        self.singles.append(single)
        self.outputs += 1
        self.point()

    def state(self):
        return {"singles": [single.state() for single in self.singles]}

    def restore(self, state):
        for single, saved in zip(self.singles, state["singles"], strict=True):
            single.restore(saved)
        self.know(max(single.features for single in self.singles))


@cython.final
cdef class Joint(Learner):
    """All outputs in one vector, feature j of output k in slot (shift + j) outputs + k.

    So penalties, projections and norms see the whole of it, as in 004 section 3.2.
    """

    def __init__(self, rule, penalty, loss, intercept, average, batch, seed, outputs):
        self.loss = loss
        self.outputs = outputs
        self.weights = Weights(rule.bind(penalty, loss), average, seed)
        self.inside = intercept == "inside"
        self.shift = 1 if self.inside else 0
        self.watchful = self.weights.rule.watchful
        self.separate_score = average != "last" or self.weights.rule.looks_ahead
        self.batch = Batch(batch)
        if intercept == "free":
            self.free_intercept = Weights(self.weights.rule.for_intercept(), average, seed)
            self.intercept_batch = Batch(batch)
        self.make_room(16)
        self.know(0)

    def __dealloc__(self):
        free(self.wide_slot)
        free(self.numbers)

    cdef int make_room(self, Py_ssize_t n) except -1:
        Learner.make_room(self, n)
        if n + 1 > self.wide_room:
            self.wide_room = 2 * n + 16
            self.wide_slot = <int*>room(self.wide_slot, self.wide_room * sizeof(int))
        return 0

    cdef int know(self, Py_ssize_t features) except -1:
        self.features = max(self.features, features)
        # scores, slopes and zeros, one of each for every output
        self.numbers = <double*>room(self.numbers, 3 * self.outputs * sizeof(double))
        self.weights.grow((self.features + self.shift) * self.outputs)
        self.batch.grow((self.features + self.shift) * self.outputs)
        if self.free_intercept is not None:
            self.free_intercept.grow(self.outputs)
            self.intercept_batch.grow(self.outputs)
        return 0

    cdef void of_class(self, Row* row, Py_ssize_t k, Row* out) noexcept nogil:
        """The row in the slots of output k."""
        cdef Py_ssize_t i
        for i in range(row.n):
            self.wide_slot[i] = <int>(row.slot[i] * self.outputs + k)
        out.n = row.n
        out.slot = self.wide_slot
        out.value = row.value
        out.square = row.square

    cdef void ask(self, Row* row, double* scores, bint shown) noexcept nogil:
        """The scores of a row with its intercept: those shown, or those slopes are asked at."""
        cdef Row wide, one
        cdef Py_ssize_t k
        cdef int slot
        cdef double value = 1.0
        one.n = 1
        one.slot = &slot
        one.value = &value
        one.square = 1.0
        for k in range(self.outputs):
            self.of_class(row, k, &wide)
            scores[k] = self.weights.predict(&wide) if shown else self.weights.query(&wide)
            if self.free_intercept is not None:
                slot = <int>k
                if shown:
                    scores[k] += self.free_intercept.predict(&one)
                else:
                    scores[k] += self.free_intercept.query(&one)

    cdef void predict(self, Row* row, double* scores) noexcept nogil:
        cdef Row inside
        if self.inside:
            self.placed(row, &inside)
            row = &inside
        self.ask(row, scores, True)

    cdef double penalty_now(self) noexcept nogil:
        return self.weights.rule.penalty_now() if self.weights.average is None else NAN

    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil:
        cdef double* f = self.numbers
        cdef double* slopes = f + self.outputs
        cdef double* zeros = slopes + self.outputs
        cdef Row inside, wide, one
        cdef Py_ssize_t k
        cdef int slot = 0
        cdef double value = 1.0, at_zero
        one.n = 1
        one.slot = &slot
        one.value = &value
        one.square = 1.0
        if self.inside:
            self.placed(row, &inside)
            row = &inside
        if scores != NULL and self.separate_score:
            self.ask(row, scores, True)
        self.ask(row, f, False)
        if scores != NULL and not self.separate_score:
            memcpy(scores, f, self.outputs * sizeof(double))
        self.loss.slopes_of(f, self.outputs, y, slopes)
        for k in range(self.outputs):
            if not (isfinite(f[k]) and isfinite(slopes[k])):
                self.diverged = True
                return
        if self.watchful:
            for k in range(self.outputs):
                zeros[k] = 0.0
            at_zero = self.loss.value_of(zeros, self.outputs, y)
            self.weights.rule.see(row, at_zero, weight)
            if self.free_intercept is not None:
                self.free_intercept.rule.see(&one, at_zero, weight)
        for k in range(self.outputs):
            if slopes[k] != 0.0:
                self.of_class(row, k, &wide)
                self.batch.add(&wide, weight * slopes[k])
                if self.free_intercept is not None:
                    slot = <int>k
                    self.intercept_batch.add(&one, weight * slopes[k])
        if self.batch.complete():
            self.batch.take(&wide)
            self.weights.update(&wide, 1.0)
            if self.free_intercept is not None:
                self.intercept_batch.take(&wide)
                self.free_intercept.update(&wide, 1.0)

    def use_loss(self, VectorLoss loss):
        """The same loss, for other classes."""
        self.loss = loss
        if self.watcher is not None:
            self.watcher.use_loss(loss)

    def widen(self, outputs):
        """Room for so many outputs, the new ones at the start."""
        old = self.outputs
        self.weights.spread(old, outputs)
        self.batch.spread(old, outputs)
        if self.free_intercept is not None:
            self.free_intercept.spread(old, outputs)
            self.intercept_batch.spread(old, outputs)
        self.outputs = outputs
        self.know(self.features)

    # -- what users see ---------------------------------------------------------------------------

    def rules(self):
        return [self.weights.rule]

    def coefficients(self):
        wide = self.weights.values().reshape(self.features + self.shift, self.outputs)
        return np.ascontiguousarray(wide[self.shift :].T)

    def intercepts(self):
        if self.inside:
            return self.weights.values(0, self.outputs)
        if self.free_intercept is not None:
            return self.free_intercept.values(0, self.outputs)
        return np.zeros(self.outputs)

    def penalised(self):
        return self.weights.values()

    def bound(self, u, intercept):
        """Against u, an array of outputs x features, or the norm of all of it."""
        if u is not None and np.ndim(u) > 0:
            u = np.asarray(u, dtype=float)
            if self.inside:
                u = np.hstack([np.broadcast_to(intercept, len(u))[:, None], u])
            u = np.ascontiguousarray(u.T).ravel()
        bound, reason = self.weights.rule.bound(u)
        if reason is None and self.free_intercept is not None:
            against = None if u is None else np.broadcast_to(intercept, self.outputs)
            more, reason = self.free_intercept.rule.bound(against)
            if reason is not None:
                return None, f"the intercepts are free: {reason}"
            bound += more
        return bound, reason

    def state(self):
        state = {
            "features": self.features,
            "outputs": self.outputs,
            "weights": self.weights.state(),
            "batch": self.batch.state(),
        }
        if self.free_intercept is not None:
            state["intercept"] = self.free_intercept.state()
            state["intercept_batch"] = self.intercept_batch.state()
        return state

    def restore(self, state):
        self.outputs = state["outputs"]
        self.know(state["features"])
        self.weights.restore(state["weights"])
        self.batch.restore(state["batch"])
        if self.free_intercept is not None:
            self.free_intercept.restore(state["intercept"])
            self.intercept_batch.restore(state["intercept_batch"])
