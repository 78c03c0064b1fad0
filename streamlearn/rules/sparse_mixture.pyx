"""The default learner under l1 and l2: exact zeros without a step size to tune.

The members of `Mixture()` in forms where l1 is one soft threshold, S(z, T) = -sgn(z) (|z| - T)_+.
Each has its own score p_k and slope g_k, the sums z = sum g_k x and G = sum (g_k x)^2 per slot,
and the threshold

    T = l1 t + min(sqrt G, 30 l1 t),

whose second term keeps out a feature that was seen once. s is the typical size of a feature
(rules/feature_sizes.pyx), M the largest |x|, N the number of features so far, pace = sqrt(t / N).

    adaptive  w = S(z, T) / (D + t l2),  D = s sqrt(G) / (2 pace),  z += g x - (D_new - D) w
              normalized adaptive steps [Ross13] in FTRL-proximal form [McMahan11]
    newton    w = S(z, T) / (3 s^2 + C + t l2),  z += h x - b w,  C += b,  b = curvature x^2
              diagonal Newton steps; h is the slope at the end of the step
    coin      w = (1 + R) S(z, T) / (m (A + m) + (1 + R) t l2),  A = sum |g x|
              coin betting [Orabona17]; R = (R - g x w - l1 |w| (events since))_+
    follower  w = prox(w - h x / D, 1 / D),  D = s sqrt(G) / (16 pace), for drift
              composite mirror descent [Duchi10], with the slope h of infinitesimal steps; 0
              unless adaptive, newton or coin, with a tenth of the best one's share, is not 0
    average   of the follower, with polynomial decay [Shamir13]: w += 4 / (n + 3) (follower - w)

Members with a share below 0.05 are silent, so that zeros are exact. The mixture charges each of
them its penalty: in place of g (p_k - p), a regret grows by g (p_k - p) + Psi_k - Psi. Psi_k sums
the penalties of the slots when they were last touched, which keeps an event at O(its features).
"""

from libc.math cimport copysign, exp, fabs, fmin, log, sqrt
from libc.string cimport memset

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.self_tuning cimport SelfTuning

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.rules.requirements import l1_and_l2, scalar_loss
from streamlearn.rules.slot_state import Field

DEF MARGIN = 30.0
DEF NEWTON_PRIOR = 3.0
DEF ADAPTIVE_RATE = 2.0
DEF FOLLOWER_RATE = 16.0
DEF AUDIBLE = 0.05
DEF VOTING = 0.1
DEF DECAY = 3.0
DEF TINY = 1e-75  # features outside are ignored: sums of their squares could overflow
DEF HUGE = 1e75
DEF LEAST = 1e-200  # added to divisors: 0 / 0 is 0

cdef enum:
    ADAPTIVE, NEWTON, COIN, FOLLOWER, AVERAGE, MEMBERS

NAMES = ("adaptive", "newton", "coin", "follower", "average")
FIELDS = (  # of Slot
    *[Field(name) for name in ("largest", "root mean", "count", "last")],
    *[Field(f"{name} z", flips_sign=True) for name in NAMES[:4]],
    *[Field(f"{name} norm") for name in NAMES[:4]],
    *[Field(name) for name in ("adaptive scale", "follower scale", "curvature")],
    *[Field(name) for name in ("coin largest", "absolute", "reward")],
    Field("average", flips_sign=True),
    *[Field(f"{name} penalty") for name in NAMES],
)


cdef inline double larger(double x, double y) noexcept nogil:
    return x if x > y else y


cdef inline double smaller(double x, double y) noexcept nogil:
    return x if x < y else y


cdef inline double within(double g) noexcept nogil:
    """Clip a slope, so that sums of squares are finite."""
    return larger(-HUGE, smaller(g, HUGE))


cdef struct Slot:
    double largest, root_mean, count, last  # root_mean: of sqrt|x|, so s is its square
    double[4] z  # the follower's is its weight, at event `last`
    double[4] norm  # sqrt G
    double[2] scale  # D / s of adaptive and follower
    double curvature
    double coin_largest, absolute, reward
    double average
    double[5] penalty


cdef struct Feature:
    Slot* slot
    double x  # 0: ignored
    double size  # before the row
    double[5] w
    double newton, follower  # 1 / D with this row


cdef struct Strengths:
    double l1, l2


cdef inline double threshold(
    double z, double norm, double t, const Strengths* penalty
) noexcept nogil:
    """S(z, T), without a branch: which slots are 0 is unpredictable."""
    cdef double strength = penalty.l1 * t
    cdef double left = fabs(z) - strength - smaller(norm, MARGIN * strength)
    return -copysign(left if left > 0.0 else 0.0, z)


cdef inline double coin(
    const Slot* slot, double m, double t, const Strengths* penalty
) noexcept nogil:
    cdef double wealth = 1.0 + slot.reward
    cdef double kept = wealth * threshold(slot.z[COIN], slot.norm[COIN], t, penalty)
    return kept / (m * (slot.absolute + m) + wealth * t * penalty.l2 + LEAST)


cdef inline double shrunk(double w, double a, const Strengths* penalty) noexcept nogil:
    """The prox of a Psi, which after k steps of size 1 / D without a gradient is that of k / D."""
    cdef double left = fabs(w) - penalty.l1 * a
    if penalty.l2 > 0.0:
        left /= 1.0 + penalty.l2 * a
    return copysign(left if left > 0.0 else 0.0, w)


cdef class SparseMixture(SelfTuning):
    """`Mixture()` for penalties with l1 or l2."""

    _names = ("share",)
    fields = FIELDS
    scalars = (*SelfTuning.scalars, "features", "variance", "shares", "regrets", "penalties")
    needs = (scalar_loss, l1_and_l2)
    intercept = "free"
    stays_finite = True
    cdef readonly double share
    cdef public double features, variance  # N and the sum of pi d^2
    cdef Strengths[2] penalties_of  # of slots outside and inside the penalty
    cdef double[MEMBERS] pi  # the shares
    cdef double[MEMBERS] audible  # the shares without those of silent members
    cdef bint[COIN + 1] votes
    cdef double[MEMBERS] regret
    cdef double[MEMBERS] penalty_sum
    cdef double[MEMBERS] scores
    cdef double coin_unclipped

    def __init__(self, share=1e-3):
        self.share = number("SparseMixture", "share", share, low=0.0, high=1.0)

    def start(self):
        cdef int k
        SelfTuning.start(self)
        self.averages_lazily = False  # shares move all slots at every event
        self.prefetches = True
        self.penalties_of[1].l1 = self.penalty.l1
        self.penalties_of[1].l2 = self.penalty.l2
        for k in range(MEMBERS):
            self.pi[k] = 1.0 / MEMBERS
        self.restored()

    def restored(self):
        self.share_out()

    cdef void share_out(self) noexcept nogil:
        """Set what follows from the shares: who is silent, and who votes for the follower."""
        cdef double total = 0.0, best = 0.0
        cdef int k
        for k in range(MEMBERS):
            self.audible[k] = self.pi[k] if self.pi[k] >= AUDIBLE else 0.0
            total += self.audible[k]
            if k <= COIN and self.pi[k] > best:
                best = self.pi[k]
        for k in range(MEMBERS):
            self.audible[k] /= total
            if k <= COIN:
                self.votes[k] = self.pi[k] >= VOTING * best

    # -- the weights of a slot --------------------------------------------------------------------

    cdef inline const Strengths* strengths(self, Py_ssize_t j) noexcept nogil:
        """Return the strengths of l1 and l2 for slot j; 0 outside the penalty."""
        return &self.penalties_of[0 if j < self.free_slots else 1]

    cdef inline double supported(self, const double* w, const Strengths* penalty) noexcept nogil:
        """Return 1 where the follower may be non-zero beside the weights w, else 0."""
        return (
            (penalty.l1 == 0.0)
            | (self.votes[ADAPTIVE] & (w[ADAPTIVE] != 0.0))
            | (self.votes[NEWTON] & (w[NEWTON] != 0.0))
            | (self.votes[COIN] & (w[COIN] != 0.0))
        )

    cdef inline void weigh(
        self, const Slot* slot, double t, const Strengths* penalty, double* w
    ) noexcept nogil:
        """Set the weights of all members after t events."""
        cdef double s = slot.root_mean * slot.root_mean, l2 = t * penalty.l2 + LEAST, D
        D = s * slot.scale[0] + l2
        w[ADAPTIVE] = threshold(slot.z[ADAPTIVE], slot.norm[ADAPTIVE], t, penalty) / D
        D = NEWTON_PRIOR * s * s + slot.curvature + l2
        w[NEWTON] = threshold(slot.z[NEWTON], slot.norm[NEWTON], t, penalty) / D
        w[COIN] = coin(slot, slot.coin_largest, t, penalty)
        D = s * slot.scale[1] + LEAST
        w[FOLLOWER] = shrunk(slot.z[FOLLOWER], (t - slot.last) / D, penalty)
        w[FOLLOWER] *= self.supported(w, penalty)
        w[AVERAGE] = (w[FOLLOWER] != 0.0) * slot.average

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double[MEMBERS] w
        cdef double total = 0.0
        cdef int k
        self.weigh(<Slot*>self.cell(j), self.t, self.strengths(j), w)
        for k in range(MEMBERS):
            total += self.audible[k] * w[k]
        return total

    def scoring(self):
        """Return how `predict` computes a score."""
        cdef Py_ssize_t j
        cdef Slot* slot
        cdef const Strengths* penalty
        cdef double[MEMBERS] w
        cdef double[:, ::1] column = np.zeros((MEMBERS + 5, self.n))
        cdef int k
        for j in range(self.n):
            slot, penalty = <Slot*>self.cell(j), self.strengths(j)
            self.weigh(slot, self.t, penalty, w)
            for k in range(MEMBERS):
                column[k, j] = w[k]
            wealth = 1.0 + slot.reward
            column[MEMBERS, j] = slot.largest
            column[MEMBERS + 1, j] = slot.coin_largest
            column[MEMBERS + 2, j] = slot.absolute
            column[MEMBERS + 3, j] = wealth * threshold(
                slot.z[COIN], slot.norm[COIN], self.t, penalty)
            column[MEMBERS + 4, j] = wealth * self.t * penalty.l2
        *weights, largest, coin_largest, absolute, kept, ridge = np.asarray(column)
        limits = {"low": self.low, "high": self.high, "least": TINY, "most": HUGE}
        forms = [
            {"kind": "limited", **limits, "columns": {"weight": one, "largest": largest}}
            for one in weights
        ]
        forms[COIN] = {"kind": "coins", **limits, "columns": {
            "weight": weights[COIN], "largest": coin_largest, "absolute": absolute,
            "wealth": kept, "ridge": ridge,
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
        cdef double x, m, mixed = 0.0
        cdef double* p = self.scores
        cdef Py_ssize_t i
        cdef int k
        cdef const Strengths* penalty
        memset(p, 0, MEMBERS * sizeof(double))
        for i in range(row.n):
            feature = features + i
            feature.slot = <Slot*>self.cell(row.slot[i])
            x = row.value[i]
            m = fabs(x)
            if not TINY < m < HUGE:
                feature.x = 0.0
                continue
            feature.x = x
            penalty = self.strengths(row.slot[i])
            self.weigh(feature.slot, self.t, penalty, feature.w)
            if m > feature.slot.coin_largest:
                feature.w[COIN] = coin(feature.slot, m, self.t, penalty)
            p[COIN] += feature.w[COIN] * x
            if m > feature.slot.largest:
                x = copysign(feature.slot.largest, x)
            p[ADAPTIVE] += feature.w[ADAPTIVE] * x
            p[NEWTON] += feature.w[NEWTON] * x
            p[FOLLOWER] += feature.w[FOLLOWER] * x
            p[AVERAGE] += feature.w[AVERAGE] * x
        self.coin_unclipped = p[COIN]
        for k in range(MEMBERS):
            p[k] = self.clip(p[k])
            mixed += self.audible[k] * p[k]
        return mixed

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef Feature* features = <Feature*>self.scratch
        cdef Feature* feature
        cdef Slot* slot
        cdef const Strengths* penalty
        cdef double[4] g
        cdef double[MEMBERS] w
        cdef double x, gx, m, s, v, bend, h_newton, h_follower, adaptive_pace, follower_pace
        cdef double reach_newton = 0.0, reach_follower = 0.0, t = self.t + 1.0
        cdef Py_ssize_t i
        cdef int k
        for k in range(4):
            g[k] = within(weight * loss.slope_at(self.scores[k], y))
        bend = within(weight * loss.curvature_at(self.scores[NEWTON], y))
        if g[COIN] * (self.coin_unclipped - self.scores[COIN]) < 0.0:
            g[COIN] = 0.0  # beyond the clipped score there is nothing to win
        for i in range(row.n):
            self.features += features[i].x != 0.0
        if self.features == 0.0:
            self.reweigh(loss, y, weight, p, slope)
            return
        adaptive_pace = 1.0 / (ADAPTIVE_RATE * sqrt(t / self.features))
        follower_pace = 1.0 / (FOLLOWER_RATE * sqrt(t / self.features))
        # the sizes, the norms, and how far steps of slope 1 move the scores
        for i in range(row.n):
            feature = features + i
            slot = feature.slot
            x = feature.x
            if x == 0.0:
                continue
            m = fabs(x)
            feature.size = slot.root_mean * slot.root_mean
            slot.largest = larger(slot.largest, m)
            slot.count += 1.0
            slot.root_mean += (sqrt(m) - slot.root_mean) / slot.count
            s = slot.root_mean * slot.root_mean
            for k in range(4):
                gx = g[k] * x
                slot.norm[k] = sqrt(slot.norm[k] * slot.norm[k] + gx * gx)
            slot.scale[1] = slot.norm[FOLLOWER] * follower_pace
            feature.newton = 1.0 / (NEWTON_PRIOR * s * s + slot.curvature)
            feature.follower = 0.0
            if slot.scale[1] > 0.0:
                feature.follower = 1.0 / (s * slot.scale[1])
            reach_newton += x * x * feature.newton
            feature.w[FOLLOWER] *= feature.size * slot.scale[1] * feature.follower
            reach_follower += x * x * feature.follower
        h_newton = implicit(loss, self.scores[NEWTON], y, weight, reach_newton)
        h_follower = flow(loss, self.scores[FOLLOWER], y, weight, reach_follower)
        if bend == 0.0:
            # a piecewise linear loss: use the squared slope, as in online Newton steps
            bend = within(g[NEWTON] * g[NEWTON] / weight)
        for i in range(row.n):
            feature = features + i
            slot = feature.slot
            x = feature.x
            if x == 0.0:
                continue
            penalty = self.strengths(row.slot[i])
            s = slot.root_mean * slot.root_mean
            # adaptive: the scale is D / s, and s w does not change with s
            v = slot.norm[ADAPTIVE] * adaptive_pace
            slot.z[ADAPTIVE] += g[ADAPTIVE] * x
            slot.z[ADAPTIVE] -= (v - slot.scale[0]) * feature.size * feature.w[ADAPTIVE]
            slot.scale[0] = v
            v = s * v + t * penalty.l2 + LEAST
            w[ADAPTIVE] = threshold(slot.z[ADAPTIVE], slot.norm[ADAPTIVE], t, penalty) / v
            # newton: b w makes up for the larger C, so w is the weight after the event too
            slot.z[NEWTON] += h_newton * x
            v = threshold(slot.z[NEWTON], slot.norm[NEWTON], t, penalty) * feature.newton
            if penalty.l2 > 0.0:
                v /= 1.0 + t * penalty.l2 * feature.newton
            w[NEWTON] = v
            slot.z[NEWTON] -= bend * x * x * v
            slot.curvature += bend * x * x
            # coin
            gx = g[COIN] * x
            v = slot.reward - gx * feature.w[COIN]
            v -= penalty.l1 * fabs(feature.w[COIN]) * (t - slot.last)
            slot.reward = v if v > 0.0 else 0.0
            slot.absolute += fabs(gx)
            slot.z[COIN] += gx
            slot.coin_largest = larger(slot.coin_largest, larger(fabs(x), fabs(gx)))
            w[COIN] = coin(slot, slot.coin_largest, t, penalty)
            # follower
            v = feature.w[FOLLOWER] - h_follower * x * feature.follower
            v = shrunk(v, feature.follower, penalty) * (feature.follower > 0.0)
            slot.z[FOLLOWER] = v
            slot.last = t
            w[FOLLOWER] = v * self.supported(w, penalty)
            # average: it starts at the follower, and again after every zero
            v = 1.0
            if slot.average != 0.0:
                v = smaller(1.0, (1.0 + DECAY) / (slot.count + DECAY))
            v = slot.average + v * (w[FOLLOWER] - slot.average)
            slot.average = v * (w[FOLLOWER] != 0.0)
            w[AVERAGE] = slot.average
            for k in range(MEMBERS):
                v = fabs(w[k])
                v *= penalty.l1 + 0.5 * penalty.l2 * v
                self.penalty_sum[k] += v - slot.penalty[k]
                slot.penalty[k] = v
        self.reweigh(loss, y, weight, p, slope)

    cdef void reweigh(
        self, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        """Update the shares by exponentiated gradient, and count the event."""
        cdef double d, psi = 0.0, spread = 0.0, least, rate, total = 0.0
        cdef int k
        for k in range(MEMBERS):
            psi += self.audible[k] * self.penalty_sum[k]
        for k in range(MEMBERS):
            d = weight * slope * (self.scores[k] - p) + self.penalty_sum[k] - psi
            self.regret[k] += d
            spread += self.pi[k] * d * d
        self.variance += spread
        if self.variance > 0.0:
            rate = sqrt(log(<double>MEMBERS) / self.variance)
            least = self.regret[0]
            for k in range(1, MEMBERS):
                least = fmin(least, self.regret[k])
            for k in range(MEMBERS):
                self.pi[k] = exp(rate * (least - self.regret[k]))
                total += self.pi[k]
            for k in range(MEMBERS):
                self.pi[k] = (1.0 - self.share) * self.pi[k] / total + self.share / MEMBERS
            self.share_out()
        self.t += 1.0
        self.watch_label(loss, y)

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

    def bound(self, u):
        return None, (
            "no bound is proved for the default rule with a penalty; DualAveraging has one"
        )


cdef inline double implicit(
    Loss loss, double p, double y, double weight, double reach
) noexcept nogil:
    """Return the slope at the end of a step; at a kink, where that is 0, the one before it."""
    cdef double slope = loss.slope_at(p, y)
    cdef double h = loss.implicit_at(p, y, weight * reach, slope)
    return within(weight * (h if h != 0.0 else slope))


cdef inline double flow(Loss loss, double p, double y, double weight, double reach) noexcept nogil:
    """Return the mean slope of infinitely many infinitesimal steps; at a kink, as `implicit`."""
    cdef double slope = loss.slope_at(p, y)
    cdef double h = loss.flow_at(p, y, weight * reach, slope)
    return within(weight * (h if h != 0.0 else slope))
