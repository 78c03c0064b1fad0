"""One output, for regression or two classes; and one output per class."""

cimport cython
from libc.math cimport NAN, tanh
from libc.stdlib cimport free

from streamlearn.engine.calibration cimport Calibration
from streamlearn.engine.row_learner cimport RowLearner, is_learnable
from streamlearn.engine.averaged_rule cimport Minibatch, AveragedRule
from streamlearn.losses.loss cimport softmax
from streamlearn.core.row cimport Row
from streamlearn.rules.event_rule cimport EventRule
from streamlearn.core.memory cimport reallocate

import numpy as np

from streamlearn.losses.margin import Logistic
from streamlearn.errors import IncompatibleError


@cython.final
cdef class Single(RowLearner):
    """One output, for regression or two classes."""

    def __init__(self, rule, penalty, loss, intercept, average, batch, seed, calibrated=False):
        """`intercept`: "none", "free" or "inside"; `calibrated`: scores are calibrated log-odds."""
        self.calibration = Calibration() if calibrated else None
        self.loss = loss
        self.outputs = 1
        self.weights = AveragedRule(rule.bind(penalty, loss), average, seed)
        self.learns_events = type(self.weights.rule).learns_events
        # rules that learn whole events have the intercept in the row, inside the penalty or not
        self.inside = intercept == "inside" or (intercept == "free" and self.learns_events)
        self.shift = 1 if self.inside else 0
        self.weights.rule.free_slots = 1 if self.inside and intercept == "free" else 0
        self.observes_events = self.weights.rule.observes_events
        self.prefetches = self.weights.rule.prefetches
        self.separate_score = average != "last" or self.weights.rule.query_is_not_score
        if batch > 1:
            if self.learns_events:
                raise IncompatibleError(
                    f"{type(rule).__name__}: it learns whole events and supports no batches; "
                    "use batch=1"
                )
            self.batch = Minibatch(batch)
        if intercept == "free" and not self.inside:
            self.free_intercept = AveragedRule(self.weights.rule.for_intercept(), average, seed)
            self.free_intercept.grow(1)
            self.observes_events = self.observes_events or self.free_intercept.rule.observes_events
        self.needs_slope = not (self.learns_events and self.weights.stays_finite)
        self.intercept_slot = 0
        self.intercept_value = 1.0
        self.intercept_row.n = 1
        self.intercept_row.slot = &self.intercept_slot
        self.intercept_row.value = &self.intercept_value
        self.intercept_row.square = 1.0
        self.make_room(16)
        self.grow(0)

    cdef int grow(self, Py_ssize_t features) except -1:
        self.features = max(self.features, features)
        self.weights.grow(self.features + self.shift)
        if self.batch is not None:
            self.batch.grow(self.features + self.shift)
        return 0

    cdef double predict_one(self, Row* row) noexcept nogil:
        cdef double apart = 0.0
        cdef double p = self.predict_raw(row, &apart)
        return p + apart if self.calibration is None else self.calibrate(p, apart)

    cdef inline double predict_raw(self, Row* row, double* apart) noexcept nogil:
        """Return the score before calibration, with the free intercept apart."""
        cdef Row inside
        if self.inside:
            self.with_intercept(row, &inside)
            return self.weights.predict(&inside)
        if self.free_intercept is not None:
            apart[0] = self.free_intercept.predict(&self.intercept_row)
        return self.weights.predict(row)

    cdef inline double calibrate(self, double p, double apart) noexcept nogil:
        """Return calibrated log-odds, added up as a snapshot does."""
        cdef double scale = self.calibration.scale
        return scale * p + (scale * apart + self.calibration.shift)

    cdef bint can_learn(self, Row* row, const double* y, double weight) noexcept nogil:
        cdef Row inside
        cdef double p
        if self.weights.stays_finite:
            return True
        if self.inside:
            self.with_intercept(row, &inside)
            row = &inside
        p = self.query(row)
        return is_learnable(p, weight * self.loss.slope_at(p, y[0]), row)

    cdef double learn_one(self, Row* row, double y, double weight, bint scored) noexcept nogil:
        """Learn a row and return its score before learning; `scored`: as `predict_one` gives it."""
        cdef Row inside, mean
        cdef double p = 0.0, slope = 0.0, shown = 0.0, raw = 0.0, apart = 0.0, at_zero
        cdef bint calibrated = self.calibration is not None
        if calibrated:
            raw = self.predict_raw(row, &apart)
            shown = self.calibrate(raw, apart)
        elif scored and self.separate_score and not self.needs_slope:
            shown = self.predict_one(row)
        if self.inside:
            self.with_intercept(row, &inside)
            row = &inside
        if self.needs_slope:
            if scored and self.separate_score and not calibrated:
                p = self.query_and_predict(row, &shown)
            else:
                p = self.query(row)
            slope = self.loss.slope_at(p, y)
            if not (self.learns_events or self.separate_score or calibrated):
                self.slope = slope
            slope *= weight
            if not is_learnable(p, slope, row):
                self.diverged = True
                return p
        if self.observes_events:
            at_zero = self.loss.value_at(0.0, y)
            self.weights.rule.observe(row, at_zero, weight)
            if self.free_intercept is not None:
                self.free_intercept.rule.observe(&self.intercept_row, at_zero, weight)
        if self.learns_events:
            p = self.weights.learn(row, self.loss, y, weight)
            if not (self.separate_score or calibrated):
                self.slope = (<EventRule>self.weights.rule).slope
        elif self.batch is None:
            self.step(row, slope, slope)
        else:
            self.batch.add(row, slope)
            self.intercept_sum += slope
            if self.batch.complete():
                self.batch.take(&mean)
                self.step(&mean, 1.0, self.intercept_sum / self.batch.size)
                self.intercept_sum = 0.0
        if calibrated:
            self.calibration.learn(raw + apart, y, weight)
            return shown
        return shown if self.separate_score else p

    cdef inline double query(self, Row* row) noexcept nogil:
        """Return the score at the point where the rule evaluates the slope."""
        cdef double p = self.weights.query(row)
        if self.free_intercept is not None:
            p += self.free_intercept.query(&self.intercept_row)
        return p

    cdef inline double query_and_predict(self, Row* row, double* shown) noexcept nogil:
        """Return `query` and set `shown` to the score for predictions."""
        cdef double p = self.weights.query_and_predict(row, shown), apart
        if self.free_intercept is not None:
            p += self.free_intercept.query_and_predict(&self.intercept_row, &apart)
            shown[0] += apart
        return p

    cdef double penalty_now(self) noexcept nogil:
        return self.weights.rule.penalty_now() if self.weights.average is None else NAN

    cdef double penalty_summed(self, double* work) noexcept nogil:
        return self.weights.penalty(work)

    cdef inline void step(self, Row* row, double slope, double intercept_slope) noexcept nogil:
        self.weights.update(row, slope)
        if self.free_intercept is not None:
            self.free_intercept.update(&self.intercept_row, intercept_slope)

    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil:
        cdef double p = self.learn_one(row, y[0], weight, scores != NULL)
        if scores != NULL:
            scores[0] = p

    cdef void predict(self, Row* row, double* scores) noexcept nogil:
        scores[0] = self.predict_one(row)

    cdef double positive_probability(self, double score) noexcept nogil:
        """Return the probability of the positive class; logistic if the loss defines none."""
        if self.loss.has_probability:
            return self.loss.probability_at(score)
        return 0.5 * (1.0 + tanh(0.5 * score))

    cdef void class_probabilities(
        self, const double* scores, Py_ssize_t k, double* out
    ) noexcept nogil:
        out[1] = self.positive_probability(scores[0])
        out[0] = 1.0 - out[1]

    cdef void prefetch_row(self, Row* row) noexcept nogil:
        self.weights.rule.prefetch_row(row, self.shift)

    # -- public interface -------------------------------------------------------------------------

    def rules(self):
        """Return the rules of the feature weights, one per output."""
        return [self.weights.rule]

    def coefficients(self):
        """Return the weights of all features, an array of outputs x features."""
        found = self.weights.values(self.shift, self.shift + self.features)[None, :]
        return found if self.calibration is None else self.calibration.scale * found

    def weights_at(self, Py_ssize_t slot):
        """Return the weights of one feature, one per output."""
        if not 0 <= slot < self.features:
            return np.zeros(1)
        found = self.weights.values(self.shift + slot, self.shift + slot + 1)
        return found if self.calibration is None else self.calibration.scale * found

    def intercepts(self):
        found = np.zeros(1)
        if self.inside:
            found = self.weights.values(0, 1)
        elif self.free_intercept is not None:
            found = self.free_intercept.values(0, 1)
        if self.calibration is None:
            return found
        return self.calibration.scale * found + self.calibration.shift

    def scoring(self):
        """Return the form of each output's score, and the free intercepts; None without them."""
        apart, form = self.free_intercept, self.weights.scoring()
        intercept = None if apart is None else apart.values(0, 1)
        if self.calibration is None:
            return [form], intercept
        form = {"kind": "mixture", "shares": [self.calibration.scale], "members": [form]}
        intercept = np.zeros(1) if intercept is None else intercept
        return [form], self.calibration.scale * intercept + self.calibration.shift

    def penalized_weights(self):
        """Return the vector of weights that the penalty applies to."""
        return self.weights.values(self.weights.rule.free_slots)

    def bound(self, u, intercept):
        """Return the regret bound against the weights u and an intercept."""
        if self.calibration is not None:
            return None, "the bound is on scores that are not calibrated"
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

    def swap_classes(self):
        """Swap the two classes."""
        if self.watcher is not None:
            self.watcher.swap_classes()
        self.weights.swap_classes()
        if self.free_intercept is not None:
            self.free_intercept.swap_classes()
        if self.batch is not None:
            self.batch.swap_classes()
        if self.calibration is not None:
            self.calibration.swap_classes()
        self.intercept_sum = -self.intercept_sum

    def state(self):
        state = {"features": self.features, "weights": self.weights.state()}
        if self.calibration is not None:
            state["calibration"] = self.calibration.state()
        if self.free_intercept is not None:
            state["intercept"] = self.free_intercept.state()
        if self.batch is not None:
            state["batch"] = self.batch.state()
            state["intercept_sum"] = self.intercept_sum
        return state

    def restore(self, state):
        self.grow(state["features"])
        self.weights.restore(state["weights"])
        if self.free_intercept is not None:
            self.free_intercept.restore(state["intercept"])
        if self.calibration is not None:
            self.calibration.restore(state["calibration"])
        if self.batch is not None:
            self.batch.restore(state["batch"])
            self.intercept_sum = state["intercept_sum"]


@cython.final
cdef class OneVersusRest(RowLearner):
    """One output per class, each learned against all other classes."""

    def __init__(self, singles):
        self.singles = singles
        self.outputs = len(singles)
        self.features = max(single.features for single in singles)
        self.shift = singles[0].shift
        self.prefetches = (<Single>singles[0]).prefetches
        loss = singles[0].loss
        self.log_odds = isinstance(loss, Logistic) or not loss.has_probability
        self.update_pointers()

    def __dealloc__(self):
        free(self.single_pointers)

    cdef int update_pointers(self) except -1:
        """Refresh the borrowed pointers to the singles, for code without the GIL."""
        cdef size_t size = self.outputs * sizeof(void*)
        self.single_pointers = <void**>reallocate(self.single_pointers, size)
        for k in range(self.outputs):
            self.single_pointers[k] = <void*>self.singles[k]
        return 0

    cdef int make_room(self, Py_ssize_t n) except -1:
        RowLearner.make_room(self, n)
        for single in self.singles:
            (<Single>single).make_room(n)
        return 0

    cdef int grow(self, Py_ssize_t features) except -1:
        self.features = max(self.features, features)
        for single in self.singles:
            (<Single>single).grow(self.features)
        return 0

    cdef bint can_learn(self, Row* row, const double* y, double weight) noexcept nogil:
        cdef Py_ssize_t k
        cdef double label
        for k in range(self.outputs):
            label = 1.0 if y[0] == k else -1.0
            if not (<Single>self.single_pointers[k]).can_learn(row, &label, weight):
                return False
        return True

    cdef void learn(self, Row* row, const double* y, double weight, double* scores) noexcept nogil:
        cdef Py_ssize_t k
        cdef double p, label
        for k in range(self.outputs):
            label = 1.0 if y[0] == k else -1.0
            p = (<Single>self.single_pointers[k]).learn_one(row, label, weight, scores != NULL)
            if (<Single>self.single_pointers[k]).diverged:
                (<Single>self.single_pointers[k]).diverged = False
                self.diverged = True
            if scores != NULL:
                scores[k] = p

    cdef void predict(self, Row* row, double* scores) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.outputs):
            scores[k] = (<Single>self.single_pointers[k]).predict_one(row)

    cdef void class_probabilities(
        self, const double* scores, Py_ssize_t k, double* out
    ) noexcept nogil:
        """Combine the outputs into one distribution.

        Scores that are log-odds of a class against the rest are shrunk by (k - 1) / k. That is
        exact for two classes, whose scores are s and -s, and correct to first order if all classes
        are about equally likely.
        """
        cdef Py_ssize_t i
        cdef double total = 0.0
        if self.log_odds:
            softmax(scores, k, 1.0 - 1.0 / k, out)
            return
        for i in range(k):
            out[i] = (<Single>self.single_pointers[i]).positive_probability(scores[i])
            total += out[i]
        for i in range(k):
            out[i] = out[i] / total if total > 0.0 else 1.0 / k

    cdef void prefetch_row(self, Row* row) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.outputs):
            (<Single>self.single_pointers[k]).prefetch_row(row)

    def rules(self):
        return [rule for single in self.singles for rule in single.rules()]

    def coefficients(self):
        return np.vstack([single.coefficients() for single in self.singles])

    def weights_at(self, slot):
        return np.concatenate([single.weights_at(slot) for single in self.singles])

    def intercepts(self):
        return np.concatenate([single.intercepts() for single in self.singles])

    def scoring(self):
        forms, apart = zip(*[single.scoring() for single in self.singles], strict=True)
        return [form for [form] in forms], None if apart[0] is None else np.concatenate(apart)

    def penalized_weights(self):
        return np.concatenate([single.penalized_weights() for single in self.singles])

    def bound(self, u, intercept):
        return None, "bounds hold for one output; use `rules` for the bound of each class"

    def add(self, single):
        """Add a class."""
        (<Single>single).grow(self.features)
        self.singles.append(single)
        self.outputs += 1
        self.update_pointers()

    def state(self):
        return {"singles": [single.state() for single in self.singles]}

    def restore(self, state):
        for single, saved in zip(self.singles, state["singles"], strict=True):
            single.restore(saved)
        self.grow(max(single.features for single in self.singles))
