"""What a rule is: per-slot state, declared once, with a score and an update per row.

A member declares

- `fields`: its per-slot numbers, each with a start value, how the same number from two workers
  merges, and whether it changes sign when the two classes change places;
- `scalars`: the names of its other numbers;
- `needs`: what the penalty and the loss must be like (rules/needs.py).

Growth of the table, memory count, save, load, copy and pickle follow from that declaration.
"""

from libc.math cimport NAN
from libc.stdlib cimport abort, free, malloc

from streamlearn.losses.loss cimport Loss
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.core.row cimport Row
from streamlearn.rules.table cimport SlotTable, copied, paste, room
from streamlearn.core.parameters cimport Parameterized

from typing import NamedTuple

import numpy as np

from streamlearn.errors import ModelFileError


class Field(NamedTuple):
    """One number of every slot."""

    name: str
    start: float = 0.0
    merge: str | None = None  # how two workers' numbers combine: "sum", "max" or not at all
    odd: bool = False  # changes sign when the classes change places


cdef class StepSums:
    def __cinit__(self):
        self.reserve(1024)
        self.forget(0.0)

    def __dealloc__(self):
        free(self.scales)
        free(self.products)
        free(self.thresholds)

    def __sizeof__(self):
        return object.__sizeof__(self) + 24 * self.capacity

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for n steps: with as many as slots, settling them all costs O(1) a step."""
        if n > self.capacity:
            self.scales = <double*>room(self.scales, (n + 1) * sizeof(double))
            self.products = <double*>room(self.products, (n + 1) * sizeof(double))
            self.thresholds = <double*>room(self.thresholds, (n + 1) * sizeof(double))
            self.capacity = n
        return 0

    cdef int append(self, double c, double threshold) noexcept nogil:
        """The scalars of the next step; the caller rests before it is full."""
        cdef Py_ssize_t i = self.size
        self.scales[i + 1] = self.scales[i] + c
        self.products[i + 1] = self.products[i] + c * threshold
        self.thresholds[i + 1] = threshold
        self.size = i + 1
        return 0

    cdef bint full(self) noexcept nogil:
        return self.size >= self.capacity - 1

    cdef double between(self, double key, double a, double b) noexcept nogil:
        """The sum of c (key - T)_+ over the steps a < t <= b; T never falls."""
        cdef Py_ssize_t low = <Py_ssize_t>(a - self.base), high = <Py_ssize_t>(b - self.base)
        cdef Py_ssize_t first = low, middle
        if low >= high:
            return 0.0
        if self.thresholds[high] >= key:
            # past the step where the weight became 0
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

    cdef void forget(self, double t) noexcept nogil:
        """Drop the steps up to t; what comes after keeps its place."""
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
            "scales": copied(self.scales, m),
            "products": copied(self.products, m),
            "thresholds": copied(self.thresholds, m),
        }

    def restore(self, state):
        m = len(state["scales"])
        self.reserve(m)
        paste(self.scales, state["scales"])
        paste(self.products, state["products"])
        paste(self.thresholds, state["thresholds"])
        self.size = m - 1
        self.base = state["base"]


cdef class Rule(Parameterized):
    """How the weights move when an event is learned."""

    fields = ()
    scalars = ("t",)
    needs = ()
    # "free": outside the penalty where the penalty allows; "inside": a feature of value 1
    intercept = "free"
    # learns whole events (row, label), not slopes: no batches, no vector losses
    whole = False
    # the penalty counts once against the sum of all losses, not once an event
    weighs_once = False
    # its numbers may lie beside those of others: it finds them by `stride`
    strides = False

    def __cinit__(self):
        self.lazy = True

    def __dealloc__(self):
        free(self.scratch)

    def __sizeof__(self):
        table = 0 if self.table is None or self.hosted else self.table.__sizeof__()
        return object.__sizeof__(self) + table

    # -- life -----------------------------------------------------------------------------------

    def bind(self, Penalty penalty, loss):
        """A fresh rule with these parameters, for this penalty and loss; refuses what cannot be."""
        from streamlearn.rules.needs import check

        check(self, penalty, loss)
        cdef Rule rule = self.variant(penalty)
        rule.penalty = penalty
        rule.loss = loss
        rule.width = len(rule.fields)
        rule.sit(SlotTable(rule.width), 0)
        rule.start()
        return rule

    def sit(self, SlotTable table, offset):
        """Keep the numbers of a slot in this table, from `offset` on."""
        self.table = table
        self.offset = offset
        self.stride = table.width
        self.hosted = self.stride != self.width

    def variant(self, Penalty penalty):
        """The class that does it for this penalty; usually one does it for all."""
        return type(self)(**self.params)

    def start(self):
        """Called once, when penalty and loss are known."""

    def for_intercept(self):
        """The rule with which a free intercept moves: this one, with nothing to pay."""
        from streamlearn.penalties.norms import Zero

        return type(self)(**self.params).bind(Zero(), self.loss)

    cdef int grow(self, Py_ssize_t n) except -1:
        """Make slots up to n - 1 known."""
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
            self.born(j)
        self.n = n
        if self.ledger is not None:
            self.ledger.reserve(n)
        self.grown(old)
        return 0

    cdef void born(self, Py_ssize_t j) noexcept nogil:
        """Slot j, at its start values, becomes known now."""

    cdef int grown(self, Py_ssize_t old) except -1:
        """The slots from `old` on became known."""
        return 0

    cdef int keep_ledger(self) except -1:
        """Record the scalars of every step, for averages of rules that move all slots at once."""
        return 0

    # -- one row --------------------------------------------------------------------------------

    cdef double* scratch_for(self, Py_ssize_t n) noexcept nogil:
        """Room for a number per feature of the row at hand."""
        if n > self.scratch_room:
            self.scratch_room = 2 * n + 16
            free(self.scratch)
            self.scratch = <double*>malloc(self.scratch_room * sizeof(double))
            if self.scratch == NULL:
                abort()
        return self.scratch

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        """The weight of slot j."""
        return 0.0

    cdef double score(self, Row* row) noexcept nogil:
        """<w, x>."""
        cdef double p = 0.0
        cdef Py_ssize_t i
        for i in range(row.n):
            p += self.weight(row.slot[i]) * row.value[i]
        return p

    cdef void fetch(self, Row* row, Py_ssize_t shift) noexcept nogil:
        """This row, its slots moved by `shift`, comes soon (of rules with `fetches`)."""

    cdef double query(self, Row* row) noexcept nogil:
        """<u, x> at the point u where the rule asks for the slope; most ask at w."""
        return self.score(row)

    cdef double predict(self, Row* row) noexcept nogil:
        """The score that a prediction is made of; some rules guard it."""
        return self.score(row)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        """Learn the gradient slope * x."""
        self.t += 1.0

    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil:
        """Learn a whole event; the score before learning."""
        cdef double p = self.meet(row)
        self.learn_met(row, loss, y, weight, p, loss.slope_at(p, y))
        return p

    cdef double meet(self, Row* row) noexcept nogil:
        """The score of an event that is about to be learned."""
        return self.query(row)

    cdef void learn_met(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        """Learn the event that was met, with this slope at its score p."""
        self.update(row, weight * slope)

    cdef void see(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        """For `watchful` rules: an event that is about to be learned, and its loss at w = 0."""

    cdef double between(self, Py_ssize_t j, double a, double b) noexcept nogil:
        """The sum of slot j's weights over the steps a < t <= b, if no event touched it then."""
        return (b - a) * self.weight(j)

    cdef bint forgets(self) noexcept nogil:
        """Whether the next step shrinks all weights to 0: averages are settled before it."""
        return False

    cdef double penalty_now(self) noexcept nogil:
        """Psi(w) where it is known without a pass over all slots, else NaN."""
        return NAN

    cdef void rest(self) noexcept nogil:
        """House-keeping between two steps."""
        self.tired = False

    # -- what users see -------------------------------------------------------------------------

    def weights(self, start=0, stop=None):
        """The weights of slots start .. stop - 1."""
        cdef Py_ssize_t j, first = start, last = self.n if stop is None else stop
        out = np.zeros(max(last - first, 0))
        cdef double* w = <double*><size_t>out.ctypes.data
        with nogil:
            for j in range(first, last):
                w[j - first] = self.weight(j) + 0.0  # no negative zeros
        return out

    def bound(self, u):
        """(the paper's bound on the regret against u, None), or (None, the reason for none)."""
        return None, f"no bound is proved for {type(self).__name__}"

    @property
    def step_size(self):
        """The step of the next event, where the rule has one for all slots."""
        return None

    @property
    def sums_slopes(self):
        """Whether weights follow from a sum of slopes, out of which one can be taken again."""
        return not self.whole and any([f.merge == "sum" and f.odd for f in self.fields])

    # -- state, from the declaration --------------------------------------------------------------

    def state(self):
        """All that is learned, as plain data and arrays."""
        state = self.scalars_now()
        state["cells"] = self.table.part(self.offset, self.width, self.n)
        if self.ledger is not None:
            state["ledger"] = self.ledger.state()
        return state

    def scalars_now(self):
        """What is learned beside the numbers of slots."""
        return {name: getattr(self, name) for name in self.scalars}

    def restore_scalars(self, state):
        """Go on from what `scalars_now` gave."""
        for name in self.scalars:
            setattr(self, name, state[name])
        self.restored()

    def restore(self, state):
        """Go on from `state`, to the bit."""
        cells = state["cells"]
        if cells.shape != (len(cells), self.width) or len(cells) < self.n:
            raise ModelFileError(f"not the state of {type(self).__name__}: {cells.shape} numbers")
        self.grow(len(cells))
        self.table.paste(self.offset, cells)
        if "ledger" in state:
            self.keep_ledger()
            self.ledger.restore(state["ledger"])
            self.ledger.reserve(self.n)
        self.restore_scalars(state)

    def restored(self):
        """Called after `restore`, to rebuild what is derived."""

    def mirror(self):
        """Exchange the two classes."""
        cdef Py_ssize_t j
        cdef int f
        for f in range(self.width):
            if self.fields[f].odd:
                for j in range(self.n):
                    self.cells[j * self.stride + f] = -self.cells[j * self.stride + f]
        self.restored()

    def spread(self, Py_ssize_t old, Py_ssize_t new):
        """Give every feature `new` slots instead of `old`, one for each class."""
        cdef Py_ssize_t features = self.n // old, j, k
        cells = self.table.part(self.offset, self.width, self.n)
        wide = np.empty((features, new, self.width))
        for k, field in enumerate(self.fields):
            wide[:, :, k] = field.start
        wide[:, :old] = cells.reshape(features, old, self.width)
        self.grow(features * new)
        self.table.paste(self.offset, wide.reshape(features * new, self.width))
        for j in range(features):
            for k in range(old, new):
                self.born(j * new + k)
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
