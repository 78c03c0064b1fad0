"""An average of a rule's weights with polynomial decay ([Shamir13] section 3).

    w_bar += (1 + eta) / (n + eta) (w - w_bar)

after the n-th event that touches a slot. Recent weights count most, so it follows drift at a
distance and is less noisy than the rule itself. It is 0 where the rule is, and starts again there.
"""

from libc.math cimport fabs

from streamlearn.losses.loss cimport DBL_MAX, Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.composite cimport Support
from streamlearn.rules.event_rule cimport EventRule
from streamlearn.rules.self_tuning cimport SelfTuning

from streamlearn.rules.composite import Composite
from streamlearn.rules.mirror_descent import MirrorDescent
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

cdef enum:
    AVERAGE
    LARGEST
    COUNT


cdef class PolynomialAverage(SelfTuning):
    """The average of a self-tuning rule; the rule learns from its own score, as alone.

    >>> PolynomialAverage(MirrorDescent(16.0)).eta
    3.0
    """

    _names = ("rule", "eta")
    _examples = ((MirrorDescent(16.0),), (MirrorDescent(2.0, "explicit", "largest"), 1.0))
    fields = (PerSlot("average", flips_sign=True), PerSlot("largest"), PerSlot("count"))
    can_share_table = False
    cdef readonly object rule
    cdef readonly double eta
    cdef EventRule inner  # the bound rule
    cdef double inner_score  # of the event scored last

    def __init__(self, rule, eta=3.0):
        if not isinstance(rule, SelfTuning):
            raise ValueError(f"PolynomialAverage: rule must be a self-tuning rule, got {rule!r}")
        self.rule = rule
        self.eta = number("PolynomialAverage", "eta", eta, low=0.0)

    @property
    def stays_finite(self):
        return (self.rule if self.inner is None else self.inner).stays_finite

    @property
    def why_no_merge(self):
        return "its average follows the order of events; use its rule alone"

    def start(self):
        SelfTuning.start(self)
        self.inner = self.rule.bind(self.penalty, self.loss)
        self.averages_lazily = self.inner.averages_lazily

    def restrict(self, Support support):
        """Keep weights outside this support at 0, where the rule does."""
        if isinstance(self.inner, Composite):
            self.inner.restrict(support)

    cdef int grow(self, Py_ssize_t n) except -1:
        self.inner.free_slots = self.free_slots
        self.inner.grow(n)
        return SelfTuning.grow(self, n)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cell(j)[AVERAGE] if self.inner.weight(j) != 0.0 else 0.0

    cdef double predict(self, Row* row) noexcept nogil:
        cdef double p = 0.0, x, m
        cdef Py_ssize_t i
        for i in range(row.n):
            m = self.cell(row.slot[i])[LARGEST]
            x = row.value[i]
            x = m if x > m else (x if x > -m else -m)
            p += self.weight(row.slot[i]) * x
        return self.clip(p)

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        cdef double p = self.predict(row)
        self.inner_score = self.inner.score_for_learning(row)
        return p

    def scoring(self):
        """Return how `predict` computes a score."""
        columns = {"weight": self.weights(), "largest": self.slots()[:, LARGEST]}
        limits = {"low": self.low, "high": self.high, "least": 0.0, "most": DBL_MAX}
        return {"kind": "limited", **limits, "columns": columns}

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double q = self.inner_score, w, m
        cdef double* cell
        cdef Py_ssize_t i
        self.t += 1.0
        self.watch_label(loss, y)
        self.inner.apply(row, loss, y, weight, q, loss.slope_at(q, y))
        for i in range(row.n):
            m = fabs(row.value[i])
            if m == 0.0:
                continue
            cell, w = self.cell(row.slot[i]), self.inner.weight(row.slot[i])
            cell[LARGEST] = m if m > cell[LARGEST] else cell[LARGEST]
            cell[COUNT] += 1.0
            if w != 0.0 and cell[AVERAGE] != 0.0:
                w += (cell[COUNT] - 1.0) / (cell[COUNT] + self.eta) * (cell[AVERAGE] - w)
            cell[AVERAGE] = w

    def state(self):
        return {**SelfTuning.state(self), "rule": self.inner.state()}

    def restore(self, state):
        SelfTuning.restore(self, state)
        self.inner.restore(state["rule"])

    def swap_classes(self):
        self.inner.swap_classes()
        SelfTuning.swap_classes(self)

    def widen_outputs(self, old, new):
        self.inner.widen_outputs(old, new)
        SelfTuning.widen_outputs(self, old, new)
