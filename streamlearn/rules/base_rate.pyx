"""The score of the mean label: what is predicted without features.

    m = sum a y / (1 + sum a),  w = the constant score for m on the intercept, 0 elsewhere

over the events so far, of weight a. For two classes, -1 and +1, and the logistic loss, these are
the odds (positives + 1/2) / (negatives + 1/2) of [Krichevsky81].
"""

from streamlearn.losses.loss cimport DBL_MAX, Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.self_tuning cimport SelfTuning

import numpy as np


cdef class BaseRate(SelfTuning):
    """Predict the mean label, by an intercept alone; a member for `Mixture`.

    Where features hardly tell anything, as for rare clicks, it is hard to beat. Without an
    intercept, or with a penalized one, its score is 0.
    """

    scalars = (*SelfTuning.scalars, "labels", "mass")
    scalar_merges = {**SelfTuning.scalar_merges, "labels": "sum", "mass": "sum"}
    cdef public double labels, mass  # sum a y, sum a
    cdef double level  # the score

    def restored(self):
        self.set_level()

    cdef void set_level(self) noexcept nogil:
        self.level = self.clip((<Loss>self.loss).constant_at(self.labels / (1.0 + self.mass)))

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.level if j < self.free_slots else 0.0

    cdef double penalty_now(self) noexcept nogil:
        """Return 0: only slots that pay no penalty have a weight."""
        return 0.0

    cdef double predict(self, Row* row) noexcept nogil:
        return self.clip(self.weight(0))

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        return self.clip(self.weight(0))

    def scoring(self):
        """Return how `predict` computes a score."""
        columns = {"weight": self.weights(), "largest": np.full(self.n, DBL_MAX)}
        limits = {"low": self.low, "high": self.high, "least": 0.0, "most": DBL_MAX}
        return {"kind": "limited", **limits, "columns": columns}

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        self.t += 1.0
        self.watch_label(loss, y)
        self.labels += weight * y
        self.mass += weight
        self.set_level()

    def swap_classes(self):
        self.labels = -self.labels
        SelfTuning.swap_classes(self)
