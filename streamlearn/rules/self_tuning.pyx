"""Self-tuning rules: they learn whole events and clip their scores.

Scores are clipped to [-50, 50] or, where a score is on the label's scale, to the range of the
labels seen. Every such rule learns from its own clipped score.
"""

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row, dot
from streamlearn.rules.event_rule cimport EventRule

from streamlearn.rules.requirements import l1_and_l2
from streamlearn.rules.feature_sizes import SIZE_KINDS

DEF LIMIT = 50.0


cdef class SelfTuning(EventRule):
    """A rule without a step size parameter."""

    scalars = ("t", "low", "high")
    scalar_merges = {"t": "mean", "low": "min", "high": "max"}
    needs = (*EventRule.needs, l1_and_l2)
    intercept = "free"
    can_share_table = True
    stays_finite = True

    def start(self):
        self.follows = self.loss.kind == "regression"
        self.low = 0.0 if self.follows else -LIMIT
        self.high = 0.0 if self.follows else LIMIT

    cdef double clip(self, double p) noexcept nogil:
        if p > self.high:
            return self.high
        # NaN, from inf - inf, becomes `low`
        return p if p >= self.low else self.low

    cdef void watch_label(self, Loss loss, double y) noexcept nogil:
        """Widen the score range to include this label."""
        cdef double s
        if self.follows:
            s = loss.score_of(y)
            if self.t <= 1.0:
                self.low = s
                self.high = s
            elif s < self.low:
                self.low = s
            elif s > self.high:
                self.high = s


cdef class Sized(SelfTuning):
    """A rule that divides each feature by its size, which rules on the same rows may share.

    A value larger than all earlier ones counts as the largest earlier one in scores. A rule whose
    `size` is None has no use for sizes.
    """

    def start(self):
        SelfTuning.start(self)
        self.measures = self.size is not None
        self.sizes = SIZE_KINDS[self.size]() if self.measures else None

    def share(self, sizes):
        """Use shared sizes (a dict by kind), whose owner measures the rows."""
        self.sizes = sizes[self.size]
        self.measures = False

    def parts(self):
        return [self.sizes, self] if self.measures else [self]

    cdef int grow(self, Py_ssize_t n) except -1:
        if self.measures:
            self.sizes.grow(n)
        return SelfTuning.grow(self, n)

    cdef double predict(self, Row* row) noexcept nogil:
        if self.measures:
            self.sizes.measure(row)
        return self.sized_score(row)

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        if self.measures:
            self.sizes.observe(row)
        return self.sized_score(row)

    cdef double sized_score(self, Row* row) noexcept nogil:
        """Return the score of the row measured last."""
        return 0.0

    def scoring(self, sizes=None):
        """Return how `predict` computes a score; `sizes`: the columns of shared sizes."""
        columns = {"weight": self.sized_weights(), **(sizes or self.sizes.scoring())}
        return {"kind": "sized", "low": self.low, "high": self.high, "columns": columns}

    def sized_weights(self):
        """Return weight * size of all slots."""
        raise NotImplementedError

    def state(self):
        state = SelfTuning.state(self)
        if self.measures:
            state["sizes"] = self.sizes.slots()
        return state

    def restore(self, state):
        SelfTuning.restore(self, state)
        if "sizes" in state:
            self.sizes.restore_slots(state["sizes"])

    def __reduce__(self):
        """Include the shared sizes, because the copy has its own."""
        if self.penalty is None or self.measures or self.size is None:
            return SelfTuning.__reduce__(self)
        revive, (*identity, state) = SelfTuning.__reduce__(self)
        return revive, (*identity, {**state, "sizes": self.sizes.slots()})


cdef class Normalized(Sized):
    """A rule whose slots begin with weight * size."""

    def settle(self):
        """Replace weights in units of this worker's sizes by those of the features."""
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[0] *= self.sizes.cell(j)[1]

    def derive(self):
        cdef Py_ssize_t j
        cdef double inverse
        for j in range(self.n):
            inverse = self.sizes.cell(j)[1]
            self.cell(j)[0] = self.cell(j)[0] / inverse if inverse > 0.0 else 0.0

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.cell(j)[0] * self.sizes.cell(j)[1]

    cdef double sized_score(self, Row* row) noexcept nogil:
        return self.clip(dot(self.cells, self.stride, row.slot, self.sizes.shown, row.n))

    def sized_weights(self):
        return self.table.copy_columns(self.offset, 1, self.n)[:, 0]


def checked_size(owner, size):
    """Return `size` if it is a kind of size."""
    if size not in SIZE_KINDS:
        raise ValueError(f"{owner}: size must be one of {', '.join(SIZE_KINDS)}, got {size!r}")
    return size
