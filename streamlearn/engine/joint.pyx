"""All outputs in one weight vector, for losses of several outputs."""

cimport cython
from libc.math cimport NAN
from libc.stdlib cimport free
from libc.string cimport memcpy

from streamlearn.engine.row_learner cimport RowLearner, is_learnable
from streamlearn.engine.averaged_rule cimport Minibatch, AveragedRule
from streamlearn.losses.loss cimport VectorLoss, softmax
from streamlearn.core.row cimport Row
from streamlearn.core.memory cimport reallocate

import numpy as np


@cython.final
cdef class Joint(RowLearner):
    """All outputs in one vector, with feature j of output k in slot (shift + j) outputs + k.

    Penalties, projections and norms apply to the whole vector, as in [Teo07] section 3.2.
    """

    def __init__(self, rule, penalty, loss, intercept, average, batch, seed, outputs):
        self.loss = loss
        self.outputs = outputs
        self.weights = AveragedRule(rule.bind(penalty, loss), average, seed)
        self.inside = intercept == "inside"
        self.shift = 1 if self.inside else 0
        self.observes_events = self.weights.rule.observes_events
        self.separate_score = average != "last" or self.weights.rule.query_is_not_score
        self.batch = Minibatch(batch)
        if intercept == "free":
            self.free_intercept = AveragedRule(self.weights.rule.for_intercept(), average, seed)
            self.intercept_batch = Minibatch(batch)
        self.make_room(16)
        self.grow(0)

    def __dealloc__(self):
        free(self.wide_slot)
        free(self.numbers)

    cdef int make_room(self, Py_ssize_t n) except -1:
        RowLearner.make_room(self, n)
        if n + 1 > self.wide_room:
            self.wide_room = 2 * n + 16
            self.wide_slot = <int*>reallocate(self.wide_slot, self.wide_room * sizeof(int))
        return 0

    cdef int grow(self, Py_ssize_t features) except -1:
        self.features = max(self.features, features)
        # a score, a slope and a zero for every output
        self.numbers = <double*>reallocate(self.numbers, 3 * self.outputs * sizeof(double))
        self.weights.grow((self.features + self.shift) * self.outputs)
        self.batch.grow((self.features + self.shift) * self.outputs)
        if self.free_intercept is not None:
            self.free_intercept.grow(self.outputs)
            self.intercept_batch.grow(self.outputs)
        return 0

    cdef void output_row(self, Row* row, Py_ssize_t k, Row* out) noexcept nogil:
        """Map the row to the slots of output k."""
        cdef Py_ssize_t i
        for i in range(row.n):
            self.wide_slot[i] = <int>(row.slot[i] * self.outputs + k)
        out.n = row.n
        out.slot = self.wide_slot
        out.value = row.value
        out.square = row.square

    cdef void query(self, Row* row, double* scores, bint shown) noexcept nogil:
        """Write the scores of a row: for predictions if `shown`, else for slopes."""
        cdef Row wide, one
        cdef Py_ssize_t k
        cdef int slot
        cdef double value = 1.0
        one.n = 1
        one.slot = &slot
        one.value = &value
        one.square = 1.0
        for k in range(self.outputs):
            self.output_row(row, k, &wide)
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
            self.with_intercept(row, &inside)
            row = &inside
        self.query(row, scores, True)

    cdef void class_probabilities(
        self, const double* scores, Py_ssize_t k, double* out
    ) noexcept nogil:
        if self.loss.has_probability:
            self.loss.probabilities_of(scores, k, out)
        else:
            softmax(scores, k, 1.0, out)

    cdef double penalty_now(self) noexcept nogil:
        return self.weights.rule.penalty_now() if self.weights.average is None else NAN

    cdef double penalty_summed(self, double* work) noexcept nogil:
        return self.weights.penalty(work)

    cdef bint can_learn(self, Row* row, const double* y, double weight) noexcept nogil:
        cdef double* slopes = self.numbers + self.outputs
        cdef Row inside
        cdef Py_ssize_t k
        if self.inside:
            self.with_intercept(row, &inside)
            row = &inside
        self.query(row, self.numbers, False)
        self.loss.slopes_of(self.numbers, self.outputs, y, slopes)
        for k in range(self.outputs):
            if not is_learnable(self.numbers[k], weight * slopes[k], row):
                return False
        return True

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
            self.with_intercept(row, &inside)
            row = &inside
        if scores != NULL and self.separate_score:
            self.query(row, scores, True)
        self.query(row, f, False)
        if scores != NULL and not self.separate_score:
            memcpy(scores, f, self.outputs * sizeof(double))
        self.loss.slopes_of(f, self.outputs, y, slopes)
        for k in range(self.outputs):
            if not is_learnable(f[k], weight * slopes[k], row):
                self.diverged = True
                return
        if self.observes_events:
            for k in range(self.outputs):
                zeros[k] = 0.0
            at_zero = self.loss.value_of(zeros, self.outputs, y)
            self.weights.rule.observe(row, at_zero, weight)
            if self.free_intercept is not None:
                self.free_intercept.rule.observe(&one, at_zero, weight)
        for k in range(self.outputs):
            if slopes[k] != 0.0:
                self.output_row(row, k, &wide)
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
        """Use the same loss, for other classes."""
        self.loss = loss
        if self.watcher is not None:
            self.watcher.use_loss(loss)

    def widen(self, outputs):
        """Widen to this number of outputs; new ones have start values."""
        old = self.outputs
        self.weights.widen_outputs(old, outputs)
        self.batch.widen_outputs(old, outputs)
        if self.free_intercept is not None:
            self.free_intercept.widen_outputs(old, outputs)
            self.intercept_batch.widen_outputs(old, outputs)
        self.outputs = outputs
        self.grow(self.features)

    # -- public interface -------------------------------------------------------------------------

    def rules(self):
        return [self.weights.rule]

    def coefficients(self):
        wide = self.weights.values().reshape(self.features + self.shift, self.outputs)
        return np.ascontiguousarray(wide[self.shift :].T)

    def weights_at(self, Py_ssize_t slot):
        """Return the weights of one feature, one per output."""
        if not 0 <= slot < self.features:
            return np.zeros(self.outputs)
        slot = (self.shift + slot) * self.outputs
        return self.weights.values(slot, slot + self.outputs)

    def intercepts(self):
        if self.inside:
            return self.weights.values(0, self.outputs)
        if self.free_intercept is not None:
            return self.free_intercept.values(0, self.outputs)
        return np.zeros(self.outputs)

    def scoring(self):
        """Return the form of each output's score, and the free intercepts; None without them."""
        wide = self.weights.scoring()
        columns = {name: each.reshape(-1, self.outputs) for name, each in wide["columns"].items()}
        forms = [
            {**wide, "columns": {name: each[:, k] for name, each in columns.items()}}
            for k in range(self.outputs)
        ]
        apart = self.free_intercept
        return forms, None if apart is None else apart.values(0, self.outputs)

    def penalized_weights(self):
        return self.weights.values()

    def bound(self, u, intercept):
        """Return the regret bound against u, an array of outputs x features, or its norm."""
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
        self.grow(state["features"])
        self.weights.restore(state["weights"])
        self.batch.restore(state["batch"])
        if self.free_intercept is not None:
            self.free_intercept.restore(state["intercept"])
            self.intercept_batch.restore(state["intercept_batch"])
