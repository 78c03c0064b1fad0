"""The base class of rules: how the weights move when an event is learned.

A rule declares

- `fields`: its numbers per slot, each with a start value, how those of several workers merge,
  and whether the sign flips when the two classes are swapped (rules/slot_state.pyx);
- `scalars`: the names of its other state;
- `needs`: its requirements on the penalty and the loss (rules/requirements.py);

and implements `weight` and `update`. What some rules add: whole events instead of slopes
(rules/event_rule.pyx), averages in closed form (rules/recorded_steps.pyx), cached weights
(rules/caching.pyx).
"""

from libc.math cimport NAN
from libc.stdlib cimport abort, free, malloc

from streamlearn.penalties.penalty cimport Penalty
from streamlearn.core.row cimport Row, prefetch
from streamlearn.rules.slot_state cimport SlotState
from streamlearn.rules.table cimport SlotTable
from streamlearn.core.parameters cimport Parameterized

import numpy as np

DEF LINE = 8  # numbers in a cache line
DEF CACHED = 65536  # numbers that fit in the cache anyway: half a MB


cdef class Rule(SlotState):
    """How the weights move when an event is learned.

    `intercept` is "free" (outside the penalty where the penalty allows) or "inside" (a feature of
    value 1). `learns_events`: an EventRule. `penalty_counts_once`: the penalty counts once against
    the sum of all losses, not once per event. `can_share_table`: its numbers may be stored next to
    those of other rules. `stays_finite`: its state stays finite whatever the row; for other rules
    the engine rejects rows that would overflow. `sums_gradients`: the weights follow from a sum of
    gradients, so one of them can be subtracted. `steers`: it sets the strength of l1 for a number
    of weights. `scalar_merges`: how the scalars of several workers merge, and `evidence`: the field
    that grows with what a worker saw of a slot (rules/merging.py).
    """

    scalars = ("t",)
    needs = ()
    intercept = "free"
    learns_events = False
    penalty_counts_once = False
    can_share_table = False
    stays_finite = False
    sums_gradients = False
    steers = False
    scalar_merges = {"t": "mean"}
    evidence = None

    def __cinit__(self):
        self.averages_lazily = True

    def __dealloc__(self):
        free(self.scratch)

    # -- setup ----------------------------------------------------------------------------------

    def bind(self, Penalty penalty, loss):
        """Return a new rule for this penalty and loss; IncompatibleError if they do not fit."""
        from streamlearn.rules.requirements import check

        check(self, penalty, loss)
        cdef Rule rule = self.implementation(penalty)
        rule.penalty = penalty
        rule.loss = loss
        rule.attach(SlotTable(len(rule.fields)), 0)
        rule.start()
        return rule

    def implementation(self, Penalty penalty):
        """Return the implementation for this penalty; most rules have one for all."""
        return type(self)(**self.params)

    def start(self):
        """Initialize the state, once the penalty and the loss are set."""

    def for_intercept(self):
        """Return the rule for a free intercept: this one without a penalty."""
        from streamlearn.penalties.norms import Zero

        return type(self)(**self.params).bind(Zero(), self.loss)

    # -- one row --------------------------------------------------------------------------------

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        """Return the weight of slot j."""
        return 0.0

    cdef double score(self, Row* row) noexcept nogil:
        """Return <w, x>."""
        cdef double p = 0.0
        cdef Py_ssize_t i
        for i in range(row.n):
            p += self.weight(row.slot[i]) * row.value[i]
        return p

    cdef double query(self, Row* row) noexcept nogil:
        """Return <u, x> at the point u where the rule evaluates the slope; for most, w."""
        return self.score(row)

    cdef double predict(self, Row* row) noexcept nogil:
        """Return the score used for predictions; self-tuning rules clip it."""
        return self.score(row)

    cdef double query_and_predict(self, Row* row, double* shown) noexcept nogil:
        """Return `query` and set `shown` to `predict`."""
        shown[0] = self.predict(row)
        return self.query(row)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        """Learn from the gradient slope * x."""
        self.t += 1.0

    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        """Record an event that is learned next and its loss at w = 0 (`observes_events`)."""

    cdef void prefetch_row(self, Row* row, Py_ssize_t shift) noexcept nogil:
        """Prefetch the row's slots, shifted, unless the table fits in the cache anyway."""
        cdef const double* cells = self.table.cells
        cdef Py_ssize_t i, line, width = self.table.width
        if self.n * width < CACHED:
            return
        for i in range(row.n):
            for line in range(0, width, LINE):
                prefetch(cells + width * (row.slot[i] + shift) + line)

    cdef double* scratch_for(self, Py_ssize_t n) noexcept nogil:
        """Return a buffer of at least n numbers, valid until the next call."""
        if n > self.scratch_room:
            self.scratch_room = 2 * n + 16
            free(self.scratch)
            self.scratch = <double*>malloc(self.scratch_room * sizeof(double))
            if self.scratch == NULL:
                abort()
        return self.scratch

    cdef double penalty_now(self) noexcept nogil:
        """Return Psi(w) if it is known without a pass over all slots, else NaN."""
        return NAN

    # -- averages -------------------------------------------------------------------------------

    cdef int record_steps(self) except -1:
        """Record every step from now on, if `weight_sum` needs it."""
        return 0

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        """Return the sum of slot j's weights over the steps a < t <= b, if it is untouched then."""
        return (b - a) * self.weight(j)

    cdef bint erases_weights(self) noexcept nogil:
        """Return whether the next step sets all weights to 0; averages are settled before it."""
        return False

    cdef void rebase(self) noexcept nogil:
        """Rebase scales and sums between two steps, before they overflow."""
        self.needs_rebase = False

    # -- public interface -----------------------------------------------------------------------

    def weights(self, start=0, stop=None):
        """Return the weights of slots start .. stop - 1."""
        cdef Py_ssize_t j, first = start, last = self.n if stop is None else stop
        out = np.zeros(max(last - first, 0))
        cdef double* w = <double*><size_t>out.ctypes.data
        with nogil:
            for j in range(first, last):
                w[j - first] = self.weight(j) + 0.0  # no negative zeros
        return out

    def scoring(self):
        """Return how `predict` computes a score, as a form of docs/reference/snapshots.md.

        A rule that overrides `score` or `predict` overrides this too.
        """
        return {"kind": "sum", "columns": {"weight": self.weights()}}

    def bound(self, u):
        """Return (the paper's regret bound against u, None), or (None, why there is none)."""
        return None, f"no bound is proved for {type(self).__name__}"

    @property
    def step_size(self):
        """The step size of the next event, if it is the same for all slots."""
        return None

    # -- several workers: rules/merging.py ---------------------------------------------------------

    @property
    def why_no_merge(self):
        """Why the states of several workers cannot be merged; None if they can."""
        return None

    @property
    def slots_are_independent(self):
        """Whether slots that events lack keep their numbers, and each slot merges on its own."""
        return True

    @property
    def merges_by_slot(self):
        """Whether each slot merges by who saw it; otherwise all slots are means of the workers."""
        return True

    def charge(self, events):
        """Let all slots pay the penalty of so many events besides those of t."""

    def penalize(self, events):
        """Let each slot pay the penalty of so many more events; for penalties that grow with t."""

    def fresh(self):
        """Return a rule of the same kind and parameters that has learned nothing."""
        cdef Rule rule = type(self)(**self.params).bind(self.penalty, self.loss)
        rule.free_slots = self.free_slots
        return rule

    def settle(self):
        self.rebase()

    # -- state, from the declaration --------------------------------------------------------------

    def state(self):
        """Return the learned state as plain data and arrays."""
        return {**self.scalar_state(), "cells": self.slots()}

    def scalar_state(self):
        """Return the learned state except for the numbers per slot."""
        return {name: getattr(self, name) for name in self.scalars}

    def restore_scalars(self, state):
        """Restore what `scalar_state` returned."""
        for name in self.scalars:
            setattr(self, name, state[name])
        self.restored()

    def restore(self, state):
        """Restore what `state` returned; learning resumes bit-identically."""
        self.restore_slots(state["cells"])
        self.restore_scalars(state)

    def restored(self):
        """Rebuild derived values after a change of the state from outside."""

    def swap_classes(self):
        SlotState.swap_classes(self)
        self.restored()

    def widen_outputs(self, old, new):
        SlotState.widen_outputs(self, old, new)
        self.restored()

    def __reduce__(self):
        if self.penalty is None:
            return Parameterized.__reduce__(self)
        return _revive, (type(self), self.params, self.penalty, self.loss, self.state())


def _revive(kind, params, penalty, loss, state):
    rule = kind(**params).bind(penalty, loss)
    rule.restore(state)
    return rule
