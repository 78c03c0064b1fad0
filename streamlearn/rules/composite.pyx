"""What self-tuning rules under l1 and l2 have in common: one soft threshold per weight.

In FTRL-proximal form ([McMahan11]), with the sum z of a slot's gradients and its curvature D,

    w = S(z, T) / (D + t l2),  S(z, T) = -sgn(z) (|z| - T)_+
    T = l1 t + min(sqrt G, 30 l1 t),  G = sum (g x)^2

The second term of T keeps out a feature that was seen once. Members of a mixture take G from the
first of them.
"""

from libc.math cimport sqrt

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row, products, soft
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.self_tuning cimport Sized, moving_slope

from streamlearn.rules.slot_state import PerSlot

DEF MARGIN = 30.0
DEF VOTING = 0.1


cdef class Support:
    """The slots in which at least one of some members of a mixture has a non-zero weight.

    Only members with a tenth of the best one's share vote.
    """

    def __init__(self, rules, places):
        self.rules = tuple(rules)
        self.count = len(self.rules)
        for k in range(self.count):
            self.each[k] = <void*>self.rules[k]
            self.place[k] = places[k]
            self.votes[k] = True

    cdef void vote(self, const double* pi) noexcept nogil:
        """Set who votes, given the shares of all members."""
        cdef double best = 0.0
        cdef int k
        for k in range(self.count):
            best = pi[self.place[k]] if pi[self.place[k]] > best else best
        for k in range(self.count):
            self.votes[k] = pi[self.place[k]] >= VOTING * best

    cdef bint has(self, Py_ssize_t j) noexcept nogil:
        cdef int k
        for k in range(self.count):
            if self.votes[k] and (<Rule>self.each[k]).weight(j) != 0.0:
                return True
        return False


cdef class Composite(Sized):
    """A self-tuning rule under l1 and l2.

    `selects`: its zeros are those of FTRL-proximal, and other members of a mixture may follow them.
    """

    fields = (PerSlot("squares"), PerSlot("z", flips_sign=True))
    stays_finite = False
    selects = True

    @property
    def why_no_merge(self):
        return (
            "its thresholds and shrinkage follow the order of events; use AdaGradDualAveraging or "
            "DualAveraging under l1, or this rule without a penalty"
        )

    def start(self):
        Sized.start(self)
        self.leader = self
        self.averages_lazily = False  # thresholds move all slots at every event

    def follow(self, Composite leader):
        """Use the thresholds of another member of a mixture."""
        self.leader = leader

    def restrict(self, Support support):
        """Keep weights outside this support at 0; rules that select ignore it."""

    cdef double threshold(self, Py_ssize_t j) noexcept nogil:
        cdef double T = self.penalty.l1 * self.t, margin
        if j < self.free_slots:
            return 0.0
        margin = sqrt(self.leader.cell(j)[SQUARES])
        return T + (margin if margin < MARGIN * T else MARGIN * T)

    cdef double ridge(self, Py_ssize_t j) noexcept nogil:
        """Return what l2 adds to D."""
        return self.t * self.penalty.l2 if j >= self.free_slots else 0.0

    cdef double weight_for(self, Py_ssize_t j, double D) noexcept nogil:
        """Return S(z, T) / (D + t l2), 0 where D is 0."""
        cdef double z = soft(self.cell(j)[Z], self.threshold(j))
        return -z / (D + self.ridge(j)) if z != 0.0 and D > 0.0 else 0.0


cdef class SizedComposite(Composite):
    """One that divides features by their sizes; a slot keeps the size when it was last touched."""

    fields = (*Composite.fields, PerSlot("size"))

    cdef double sized_score(self, Row* row) noexcept nogil:
        """Return the score of the row measured last, and keep its weights * sizes."""
        cdef double* weights = self.scratch_for(row.n)
        cdef Py_ssize_t i
        for i in range(row.n):
            weights[i] = self.weight(row.slot[i]) * self.cell(row.slot[i])[SIZE]
        return self.clip(products(weights, self.sizes.shown, row.n))

    def sized_weights(self):
        return self.weights() * self.slots()[:, SIZE]

    cdef double size_of(self, Py_ssize_t j) noexcept nogil:
        """Return the current size of a slot."""
        cdef double inverse = self.sizes.cell(j)[1]
        return 1.0 / inverse if inverse > 0.0 else 0.0


cdef class AdaptiveComposite(SizedComposite):
    """One with normalized adaptive steps: D = s E, E = sqrt(G) / pace, from its own gradients."""

    _names = ("rate", "update", "size")
    fields = (*SizedComposite.fields, PerSlot("scale"))
    scalars = (*SizedComposite.scalars, "norm")

    def __init__(self, rate, update, size):
        self.rate, self.update, self.size = rate, update, size
        self.explicit, self.implicit = update == "explicit", update == "implicit"

    cdef double slope_of_step(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        """Count an event, add to G, set the pace, and return the slope of the step."""
        cdef double gx, reach = 0.0
        cdef double* cell
        cdef Py_ssize_t i
        self.t += 1.0
        self.watch_label(loss, y)
        self.norm += self.sizes.length
        self.pace = self.rate * sqrt(self.t / self.norm) if self.norm > 0.0 else self.rate
        for i in range(row.n):
            cell, gx = self.cell(row.slot[i]), weight * slope * row.value[i]
            cell[SQUARES] += gx * gx
            if cell[SQUARES] > 0.0:
                reach += row.value[i] * self.sizes.unit[i] * self.pace / sqrt(cell[SQUARES])
        if self.explicit:
            return weight * slope
        return moving_slope(self.implicit, loss, p, y, slope, weight, reach)
