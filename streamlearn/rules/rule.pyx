"""The base class of rules: per-slot state, declared once, with a score and an update per row.

A rule declares

- `fields`: its per-slot numbers, each with a start value, how the numbers of two workers merge,
  and whether the sign flips when the two classes are swapped;
- `scalars`: the names of its other state;
- `needs`: its requirements on the penalty and the loss (rules/requirements.py).

Table growth, memory accounting, saving, loading, copying and pickling follow from this declaration.
"""

from libc.math cimport NAN
from libc.stdlib cimport abort, free, malloc

from streamlearn.losses.loss cimport Loss
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.core.row cimport Row
from streamlearn.core.memory cimport reallocate
from streamlearn.rules.table cimport SlotTable, to_array, copy_from_array
from streamlearn.core.parameters cimport Parameterized

from typing import NamedTuple

import numpy as np

from streamlearn.errors import ModelFileError


class Field(NamedTuple):
    """A number that a rule keeps for every slot."""

    name: str
    start: float = 0.0
    merge: str | None = None  # how the numbers of two workers combine: "sum", "max", or None
    flips_sign: bool = False  # when the two classes are swapped


cdef class StepSums:
    def __cinit__(self):
        self.reserve(1024)
        self.drop_until(0.0)

    def __dealloc__(self):
        free(self.scales)
        free(self.products)
        free(self.thresholds)

    def __sizeof__(self):
        return object.__sizeof__(self) + 24 * self.capacity

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Reserve n steps: with as many as slots, settling all slots costs O(1) per step."""
        if n > self.capacity:
            self.scales = <double*>reallocate(self.scales, (n + 1) * sizeof(double))
            self.products = <double*>reallocate(self.products, (n + 1) * sizeof(double))
            self.thresholds = <double*>reallocate(self.thresholds, (n + 1) * sizeof(double))
            self.capacity = n
        return 0

    cdef int append(self, double c, double threshold) noexcept nogil:
        """Append the scalars of the next step; the caller rebases before capacity is reached."""
        cdef Py_ssize_t i = self.size
        self.scales[i + 1] = self.scales[i] + c
        self.products[i + 1] = self.products[i] + c * threshold
        self.thresholds[i + 1] = threshold
        self.size = i + 1
        return 0

    cdef bint full(self) noexcept nogil:
        return self.size >= self.capacity - 1

    cdef double sum_between(self, double key, double a, double b) noexcept nogil:
        """Sum c (key - T)_+ over the steps a < t <= b; T never decreases."""
        cdef Py_ssize_t low = <Py_ssize_t>(a - self.base), high = <Py_ssize_t>(b - self.base)
        cdef Py_ssize_t first = low, middle
        if low >= high:
            return 0.0
        if self.thresholds[high] >= key:
            # skip the steps after the weight became 0
            while low < high:
                middle = (low + high + 1) // 2
                if self.thresholds[middle] < key:
                    low = middle
                else:
                    high = middle - 1
            high = low
        return key * (self.scales[high] - self.scales[first]) - (
            self.products[high] - self.products[first]
        )

    cdef void drop_until(self, double t) noexcept nogil:
        """Drop the steps up to t; later steps keep their numbers."""
        cdef Py_ssize_t i, gone = <Py_ssize_t>(t - self.base)
        cdef Py_ssize_t left = self.size - gone
        cdef double c = self.scales[gone], p = self.products[gone]
        if self.size == 0:
            c = p = 0.0
            left = 0
            self.scales[0] = 0.0
            self.products[0] = 0.0
        else:
            for i in range(left + 1):
                self.scales[i] = self.scales[i + gone] - c
                self.products[i] = self.products[i + gone] - p
                self.thresholds[i] = self.thresholds[i + gone]
        self.thresholds[0] = -1.0
        self.size = left
        self.base = t

    def state(self):
        m = self.size + 1
        return {
            "base": self.base,
            "scales": to_array(self.scales, m),
            "products": to_array(self.products, m),
            "thresholds": to_array(self.thresholds, m),
        }

    def restore(self, state):
        m = len(state["scales"])
        self.reserve(m)
        copy_from_array(self.scales, state["scales"])
        copy_from_array(self.products, state["products"])
        copy_from_array(self.thresholds, state["thresholds"])
        self.size = m - 1
        self.base = state["base"]


cdef class Rule(Parameterized):
    """How the weights move when an event is learned.

    `intercept` is "free" (outside the penalty where the penalty allows) or "inside" (a feature of
    value 1). `learns_events`: learns whole events (row, label) instead of slopes, so no batches
    and no vector losses. `penalty_counts_once`: the penalty counts once against the sum of all
    losses, not once per event. `can_share_table`: its numbers may be stored next to those of other
    rules, at `stride`. `stays_finite`: its state stays finite whatever the row; for other rules the
    engine rejects rows that would overflow.
    """

    fields = ()
    scalars = ("t",)
    needs = ()
    intercept = "free"
    learns_events = False
    penalty_counts_once = False
    can_share_table = False
    stays_finite = False

    def __cinit__(self):
        self.lazy = True

    def __dealloc__(self):
        free(self.scratch)

    def __sizeof__(self):
        table = 0 if self.table is None or self.table_is_shared else self.table.__sizeof__()
        return object.__sizeof__(self) + table

    # -- setup and growth -----------------------------------------------------------------------

    def bind(self, Penalty penalty, loss):
        """Return a new rule for this penalty and loss; IncompatibleError if they do not fit."""
        from streamlearn.rules.requirements import check

        check(self, penalty, loss)
        cdef Rule rule = self.implementation(penalty)
        rule.penalty = penalty
        rule.loss = loss
        rule.width = len(rule.fields)
        rule.attach(SlotTable(rule.width), 0)
        rule.start()
        return rule

    def attach(self, SlotTable table, offset):
        """Store the numbers of each slot in this table, starting at `offset`."""
        self.table = table
        self.offset = offset
        self.stride = table.width
        self.table_is_shared = self.stride != self.width

    def implementation(self, Penalty penalty):
        """Return the implementation for this penalty; most rules have one for all."""
        return type(self)(**self.params)

    def start(self):
        """Initialize the state, once the penalty and the loss are set."""

    def for_intercept(self):
        """Return the rule for a free intercept: this one without a penalty."""
        from streamlearn.penalties.norms import Zero

        return type(self)(**self.params).bind(Zero(), self.loss)

    cdef int grow(self, Py_ssize_t n) except -1:
        """Add slots up to n - 1."""
        cdef Py_ssize_t old = self.n, j
        cdef int f
        if n <= old:
            return 0
        self.table.reserve(n)
        self.cells = self.table.cells + self.offset
        starts = [field.start for field in self.fields]
        for f in range(self.width):
            start_value(self.cells + f, self.stride, old, n, starts[f])
        for j in range(old, n):
            self.init_slot(j)
        self.n = n
        if self.step_sums is not None:
            self.step_sums.reserve(n)
        self.slots_added(old)
        return 0

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
        """Initialize slot j where constant start values are not enough."""

    cdef int slots_added(self, Py_ssize_t old) except -1:
        """Handle the new slots, from `old` on."""
        return 0

    cdef int record_steps(self) except -1:
        """Record the scalars of every step, for closed-form averages of untouched slots."""
        return 0

    # -- one row --------------------------------------------------------------------------------

    cdef double* scratch_for(self, Py_ssize_t n) noexcept nogil:
        """Return a buffer of at least n numbers, valid until the next call."""
        if n > self.scratch_room:
            self.scratch_room = 2 * n + 16
            free(self.scratch)
            self.scratch = <double*>malloc(self.scratch_room * sizeof(double))
            if self.scratch == NULL:
                abort()
        return self.scratch

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

    cdef void prefetch_row(self, Row* row, Py_ssize_t shift) noexcept nogil:
        """Prefetch the state of a coming row, its slots shifted (rules with `prefetches`)."""

    cdef double query(self, Row* row) noexcept nogil:
        """Return <u, x> at the point u where the rule evaluates the slope; for most, w."""
        return self.score(row)

    cdef double predict(self, Row* row) noexcept nogil:
        """Return the score used for predictions; self-tuning rules clip it."""
        return self.score(row)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        """Learn from the gradient slope * x."""
        self.t += 1.0

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        """Learn an event and return its score before learning."""
        cdef double p = self.score_for_learning(row)
        self.apply(row, loss, y, weight, p, loss.slope_at(p, y))
        return p

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        """Return the score of an event that is learned next."""
        return self.query(row)

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        """Learn the event scored last, given the slope at its score p."""
        self.update(row, weight * slope)

    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        """Record an event that is learned next and its loss at w = 0 (`observes_events`)."""

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        """Return the sum of slot j's weights over the steps a < t <= b, if it is untouched then."""
        return (b - a) * self.weight(j)

    cdef bint erases_weights(self) noexcept nogil:
        """Return whether the next step sets all weights to 0; averages are settled before it."""
        return False

    cdef double penalty_now(self) noexcept nogil:
        """Return Psi(w) if it is known without a pass over all slots, else NaN."""
        return NAN

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

    def bound(self, u):
        """Return (the paper's regret bound against u, None), or (None, why there is none)."""
        return None, f"no bound is proved for {type(self).__name__}"

    @property
    def step_size(self):
        """The step size of the next event, if it is the same for all slots."""
        return None

    @property
    def sums_gradients(self):
        """Whether the weights follow from a sum of gradients, so one of them can be subtracted."""
        if self.learns_events:
            return False
        return any([field.merge == "sum" and field.flips_sign for field in self.fields])

    # -- state, from the declaration --------------------------------------------------------------

    def state(self):
        """Return the learned state as plain data and arrays."""
        state = self.scalar_state()
        state["cells"] = self.table.copy_columns(self.offset, self.width, self.n)
        if self.step_sums is not None:
            state["step_sums"] = self.step_sums.state()
        return state

    def scalar_state(self):
        """Return the learned state except for the per-slot numbers."""
        return {name: getattr(self, name) for name in self.scalars}

    def restore_scalars(self, state):
        """Restore what `scalar_state` returned."""
        for name in self.scalars:
            setattr(self, name, state[name])
        self.restored()

    def restore(self, state):
        """Restore what `state` returned; learning resumes bit-identically."""
        cells = state["cells"]
        if cells.shape != (len(cells), self.width) or len(cells) < self.n:
            raise ModelFileError(
                f"the saved state of shape {cells.shape} does not fit {type(self).__name__}: load "
                "it into the rule that wrote it"
            )
        self.grow(len(cells))
        self.table.restore_columns(self.offset, cells)
        if "step_sums" in state:
            self.record_steps()
            self.step_sums.restore(state["step_sums"])
            self.step_sums.reserve(self.n)
        self.restore_scalars(state)

    def restored(self):
        """Rebuild derived values after `restore`."""

    def swap_classes(self):
        """Swap the two classes."""
        cdef Py_ssize_t j
        cdef int f
        for f in range(self.width):
            if self.fields[f].flips_sign:
                for j in range(self.n):
                    self.cells[j * self.stride + f] = -self.cells[j * self.stride + f]
        self.restored()

    def widen_outputs(self, Py_ssize_t old, Py_ssize_t new):
        """Give every feature `new` slots instead of `old`, one per class."""
        cdef Py_ssize_t features = self.n // old, j, k
        cells = self.table.copy_columns(self.offset, self.width, self.n)
        wide = np.empty((features, new, self.width))
        for k, field in enumerate(self.fields):
            wide[:, :, k] = field.start
        wide[:, :old] = cells.reshape(features, old, self.width)
        self.grow(features * new)
        self.table.restore_columns(self.offset, wide.reshape(features * new, self.width))
        for j in range(features):
            for k in range(old, new):
                self.init_slot(j * new + k)
        self.restored()

    def __reduce__(self):
        if self.penalty is None:
            return Parameterized.__reduce__(self)
        return _revive, (type(self), self.params, self.penalty, self.loss, self.state())


cdef void start_value(
    double* field, Py_ssize_t stride, Py_ssize_t old, Py_ssize_t n, double start
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(old, n):
        field[j * stride] = start


def _revive(kind, params, penalty, loss, state):
    rule = kind(**params).bind(penalty, loss)
    rule.restore(state)
    return rule
