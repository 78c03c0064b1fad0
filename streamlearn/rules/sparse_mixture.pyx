"""The default learner under l1 and l2: exact zeros without a step size to tune.

The members of `Mixture()` in forms where l1 is one soft threshold, and the average of one of them
(rules/sparse_slot.pxd). Each has its own score p_k, from which it learns; the mixture is one linear
model, w = sum pi_k w_k.

Members with a share below 0.05 are silent, so that zeros are exact. Those of adaptive, coin and
newton with a tenth of the best one's share vote: follower and average are 0 where all voters are.

The mixture charges each member its penalty: in place of g (p_k - p), a regret grows by
g (p_k - p) + Psi_k - Psi. Psi_k sums the penalties of the slots when they were last touched, which
keeps an event at O(its features).
"""

from libc.math cimport fabs, log, sqrt

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport (
    Pair, add, first, load, make_pair, multiply, second, store,
)
from streamlearn.core.row cimport Row
from streamlearn.rules.self_tuning cimport SelfTuning
from streamlearn.rules.shares cimport reweigh, silence
from streamlearn.rules.sparse_slot cimport (
    AVERAGE, COIN, FOLLOWER, IN_SLOTS, NEWTON, Feature, Slot, Strengths, both, larger,
    learn_moved, learn_steady, set_time, smaller, soft, threshold, weigh,
)

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.rules.requirements import l1_and_l2, scalar_loss
from streamlearn.rules.slot_state import PerSlot

DEF ADAPTIVE_RATE = 2.0
DEF FOLLOWER_RATE = 16.0
DEF VOTING = 0.1
DEF TINY = 1e-75  # features outside are ignored: sums of their squares could overflow
DEF HUGE = 1e75

NAMES = ("adaptive", "coin", "newton", "follower", "average", "base rate")
FIELDS = (  # of Slot
    *[PerSlot(f"{name} z", flips_sign=True) for name in NAMES[:4]],
    *[PerSlot(f"{name} penalty") for name in NAMES[:4]],
    *[PerSlot(name) for name in ("adaptive inverse", "coin inverse")],
    *[PerSlot(name) for name in ("adaptive norm", "follower norm", "adaptive D", "follower D")],
    *[PerSlot(name) for name in ("curvature", "absolute")],
    PerSlot("wealth", 1.0),
    *[PerSlot(name) for name in ("coin largest", "largest", "size", "roots", "count", "last")],
    PerSlot("average", flips_sign=True),
)


cdef inline double within(double g) noexcept nogil:
    """Clip a slope, so that sums of squares are finite."""
    return larger(-HUGE, smaller(g, HUGE))


cdef inline double step(double h, double slope, double weight) noexcept nogil:
    """Return the slope of a step; at a kink, where h is 0, the one before it."""
    return within(weight * (h if h != 0.0 else slope))


cdef class SparseMixture(SelfTuning):
    """`Mixture()` for penalties with l1 or l2."""

    _names = ("share",)
    fields = FIELDS
    scalars = (*SelfTuning.scalars, "features", "variance", "shares", "regrets", "penalties",
               "base_rate")
    needs = (scalar_loss, l1_and_l2)
    intercept = "free"
    stays_finite = True

    def __init__(self, share=1e-3):
        self.share = number("SparseMixture", "share", share, low=0.0, high=1.0)

    @property
    def why_no_merge(self):
        return (
            "its members share penalties and silent members follow the order of events; use "
            "AdaGradDualAveraging or DualAveraging under l1, or the default without a penalty")

    def start(self):
        cdef int k
        SelfTuning.start(self)
        self.averages_lazily = False  # shares move all slots at every event
        self.prefetches = True
        self.set_l1(self.penalty.l1)
        for k in range(2):
            self.strengths[1].half_l2[k] = 0.5 * self.penalty.l2
        self.strengths[1].l2 = self.penalty.l2
        for k in range(MEMBERS):
            self.pi[k] = 1.0 / MEMBERS
        self.restored()

    def restored(self):
        self.share_out()
        self.set_strengths()

    cdef double base_score(self) noexcept nogil:
        """Return the score of the mean label, 0 without an intercept outside the penalty."""
        cdef double mean = self.labels / (1.0 + self.mass)
        return self.clip((<Loss>self.loss).constant_at(mean)) if self.free_slots > 0 else 0.0

    cdef void share_out(self) noexcept nogil:
        """Set what follows from the shares: who is silent, and who votes for the follower."""
        cdef double best = 0.0
        cdef int k
        silence(MEMBERS, self.pi, self.audible)
        for k in range(NEWTON + 1):
            best = larger(best, self.pi[k])
        self.voters = 0
        for k in range(NEWTON + 1):
            self.voters |= (self.pi[k] >= VOTING * best) << k

    cdef void set_l1(self, double l1) noexcept nogil:
        self.strengths[1].l1[0] = self.strengths[1].l1[1] = l1

    cdef void set_strengths(self) noexcept nogil:
        set_time(&self.strengths[0], self.t)
        set_time(&self.strengths[1], self.t)

    # -- the weights of a slot --------------------------------------------------------------------

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double[IN_SLOTS] w
        cdef double total = self.audible[BASE] * self.base_score() if j < self.free_slots else 0.0
        cdef int k
        weigh(<Slot*>self.cell(j), 0.0, self.voters, self.strengths_of(j), w)
        for k in range(IN_SLOTS):
            total += self.audible[k] * w[k]
        return total

    def scoring(self):
        """Return how `predict` computes a score."""
        cdef Py_ssize_t j
        cdef Slot* slot
        cdef const Strengths* strengths
        cdef double[IN_SLOTS] w
        cdef double[:, ::1] column = np.zeros((MEMBERS + 6, self.n))
        cdef int k
        for j in range(self.n):
            slot, strengths = <Slot*>self.cell(j), self.strengths_of(j)
            weigh(slot, 0.0, self.voters, strengths, w)
            for k in range(IN_SLOTS):
                column[k, j] = w[k]
            column[BASE, j] = self.base_score() if j < self.free_slots else 0.0
            column[MEMBERS, j] = slot.largest
            column[MEMBERS + 1, j] = slot.coin_largest
            column[MEMBERS + 2, j] = slot.absolute
            column[MEMBERS + 3, j] = slot.wealth
            column[MEMBERS + 4, j] = first(
                soft(both(slot.z[COIN]), both(threshold(slot.norm[0], strengths))))
            column[MEMBERS + 5, j] = strengths.ridge
        *weights, largest, coin_largest, absolutes, wealth, kept, ridge = np.asarray(column)
        limits = {"low": self.low, "high": self.high, "least": TINY, "most": HUGE}
        forms = [
            {"kind": "limited", **limits, "columns": {"weight": one, "largest": largest}}
            for one in weights
        ]
        forms[COIN] = {"kind": "coins", **limits, "beta": 1.0, "columns": {
            "weight": weights[COIN], "largest": coin_largest, "absolute": absolutes,
            "wealth": wealth, "kept": kept, "ridge": ridge,
        }}
        heard = [k for k in range(MEMBERS) if self.audible[k] > 0.0]
        return {
            "kind": "mixture",
            "shares": [self.audible[k] for k in heard],
            "members": [forms[k] for k in heard],
        }

    # -- one row ----------------------------------------------------------------------------------

    cdef double predict(self, Row* row) noexcept nogil:
        return self.score_for_learning(row)

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        """Score like the members of `Mixture`: an outlier counts as the largest |x| before."""
        cdef size_t size = sizeof(Feature) // sizeof(double)
        cdef Feature* features = <Feature*>self.scratch_for(row.n * size)
        cdef Feature* feature
        cdef Slot* slot
        cdef Pair steady = both(0.0), moved = both(0.0)
        cdef double x, m, average = 0.0, mixed = 0.0
        cdef double* p = self.scores
        cdef Py_ssize_t i, present = 0
        cdef int k
        for i in range(row.n):
            feature = features + i
            slot = feature.slot = <Slot*>self.cell(row.slot[i])
            x = row.value[i]
            m = fabs(x)
            feature.x = x if TINY < m < HUGE else 0.0
            if feature.x == 0.0:
                continue
            present += 1
            weigh(slot, m, self.voters, self.strengths_of(row.slot[i]), feature.w)
            m = larger(-slot.largest, smaller(x, slot.largest))
            steady = add(steady, multiply(load(feature.w), make_pair(m, x)))
            moved = add(moved, multiply(load(feature.w + NEWTON), both(m)))
            average += feature.w[AVERAGE] * m
        self.present = present
        store(p, steady)
        store(p + NEWTON, moved)
        p[AVERAGE] = average
        p[BASE] = self.base_score()
        self.coin_unclipped = p[COIN]
        for k in range(MEMBERS):
            p[k] = self.clip(p[k])
            mixed += self.audible[k] * p[k]
        return mixed

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef Feature* features = <Feature*>self.scratch
        cdef double[4] slopes, g
        cdef const Strengths* strengths
        cdef Pair pace, reach = both(0.0), h
        cdef Pair[3] charges
        cdef double bend
        cdef Py_ssize_t i
        cdef int k
        self.t += 1.0
        self.set_strengths()
        for k in range(4):
            slopes[k] = loss.slope_at(self.scores[k], y)
            g[k] = within(weight * slopes[k])
        if g[COIN] * (self.coin_unclipped - self.scores[COIN]) < 0.0:
            g[COIN] = 0.0  # beyond the clipped score there is nothing to win
        bend = within(weight * loss.curvature_at(self.scores[NEWTON], y))
        if bend == 0.0:
            # a piecewise linear loss: use the squared slope, as in online Newton steps
            bend = within(g[NEWTON] * g[NEWTON] / weight)
        self.features += self.present
        if self.features > 0.0:
            charges[0] = charges[1] = charges[2] = both(0.0)
            pace = multiply(make_pair(1.0 / ADAPTIVE_RATE, 1.0 / FOLLOWER_RATE),
                            both(1.0 / sqrt(self.t / self.features)))
            for i in range(row.n):
                if features[i].x != 0.0:
                    strengths = self.strengths_of(row.slot[i])
                    reach = add(reach, learn_steady(features + i, strengths, g, pace))
            reach = multiply(reach, both(weight))
            h = make_pair(
                loss.implicit_at(self.scores[NEWTON], y, first(reach), slopes[NEWTON]),
                loss.flow_at(self.scores[FOLLOWER], y, second(reach), slopes[FOLLOWER]),
            )
            h = make_pair(
                step(first(h), slopes[NEWTON], weight), step(second(h), slopes[FOLLOWER], weight)
            )
            for i in range(row.n):
                if features[i].x != 0.0:
                    strengths = self.strengths_of(row.slot[i])
                    learn_moved(features + i, strengths, self.voters, h, bend, charges)
            store(self.penalty_sum, add(load(self.penalty_sum), charges[0]))
            store(self.penalty_sum + NEWTON, add(load(self.penalty_sum + NEWTON), charges[1]))
            self.penalty_sum[AVERAGE] += first(charges[2]) - second(charges[2])
        self.charge(weight * slope, p)
        self.watch_label(loss, y)
        self.labels += weight * y
        self.mass += weight

    cdef void charge(self, double slope, double p) noexcept nogil:
        """Charge the members their scores and penalties, and update the shares."""
        cdef double[MEMBERS] excess
        cdef double psi = 0.0
        cdef int k
        for k in range(MEMBERS):
            psi += self.audible[k] * self.penalty_sum[k]
        for k in range(MEMBERS):
            excess[k] = slope * (self.scores[k] - p) + self.penalty_sum[k] - psi
        reweigh(
            MEMBERS, log(<double>MEMBERS), self.share, excess, self.pi, self.regret, &self.variance
        )
        self.share_out()

    # -- public interface and state ---------------------------------------------------------------

    @property
    def members(self):
        """The names of the members."""
        return NAMES

    @property
    def shares(self):
        """The share pi_k of each member."""
        return [self.pi[k] for k in range(MEMBERS)]

    @shares.setter
    def shares(self, values):
        for k in range(MEMBERS):
            self.pi[<int>k] = values[k]

    @property
    def regrets(self):
        """The regret of the mixture to each member, in the sense of the module's docstring."""
        return [self.regret[k] for k in range(MEMBERS)]

    @regrets.setter
    def regrets(self, values):
        for k in range(MEMBERS):
            self.regret[<int>k] = values[k]

    @property
    def penalties(self):
        """The sum Psi_k of each member."""
        return [self.penalty_sum[k] for k in range(MEMBERS)]

    @penalties.setter
    def penalties(self, values):
        for k in range(MEMBERS):
            self.penalty_sum[<int>k] = values[k]

    @property
    def base_rate(self):
        """The sums of labels and of weights."""
        return [self.labels, self.mass]

    @base_rate.setter
    def base_rate(self, sums):
        self.labels, self.mass = sums

    def swap_classes(self):
        self.labels = -self.labels
        SelfTuning.swap_classes(self)

    def bound(self, u):
        return None, (
            "no bound is proved for the default rule with a penalty; DualAveraging has one"
        )
