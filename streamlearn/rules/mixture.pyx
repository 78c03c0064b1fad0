"""A mixture of rules by exponentiated gradient on the score.

    p = sum pi_k p_k,  d_k = slope(p) (p_k - p)

The shares pi_k follow from the d_k (rules/shares.pxd). The mixture is one linear model,
w = sum pi_k w_k. Every member learns from its own score.

Under l1 or l2, a member is also charged its penalty (rules/charges.pyx), d_k = slope(p) (p_k - p) +
Psi_k - Psi, and members whose share is nearly 0 are silent, so that zeros are exact. Members whose
zeros are those of FTRL-proximal share a threshold, and mirror descent follows their support
(rules/composite.pyx).
"""

from libc.math cimport INFINITY, fabs, log
from libc.stdlib cimport calloc, free

from streamlearn.losses.loss cimport MAX_PENDING, Loss
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.losses.loss_sum cimport LossSum, add_sum, add_pending, loss_sum
from streamlearn.core.row cimport Row
from streamlearn.rules.charges cimport Charges
from streamlearn.rules.composite cimport MAX_RULES, Composite, Support
from streamlearn.rules.self_tuning cimport SelfTuning, Sized
from streamlearn.rules.event_rule cimport EventRule
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.feature_sizes cimport FeatureSizes
from streamlearn.core.memory cimport reallocate
from streamlearn.rules.shares cimport reweigh, set_shares, silence
from streamlearn.rules.table cimport SlotTable, to_array, copy_from_array

import numpy as np

from streamlearn.errors import ModelFileError
from streamlearn.rules.base_rate import BaseRate
from streamlearn.rules.charges import Charges
from streamlearn.rules.coin_betting import CoinBetting
from streamlearn.rules.diagonal_newton import DiagonalNewton
from streamlearn.rules.normalized_adaptive import NormalizedAdaptive
from streamlearn.rules.feature_sizes import SIZE_KINDS
from streamlearn.rules.mirror_descent import MirrorDescent
from streamlearn.rules.polynomial_average import PolynomialAverage
from streamlearn.rules.requirements import chargeable
from streamlearn.rules.sparse_mixture import SparseMixture
from streamlearn.rules.targeted_mixture import TargetedMixture
from streamlearn.core.parameters import number

DEF MAX_SCORE = 1e100
DEF LINE = 8  # numbers in a cache line


def default_rules():
    """Return the default members: self-tuning rules with different step sizes."""
    return (
        NormalizedAdaptive(2.0, "explicit", "typical"),
        DiagonalNewton(3.0, "typical"),
        CoinBetting(),
        NormalizedAdaptive(16.0, "invariant", "typical"),
        BaseRate(),
    )


def sparse_rules():
    """Return the default members under l1 and l2, which rules/sparse_mixture.pyx learns at once."""
    return (
        NormalizedAdaptive(2.0, "explicit", "typical"),
        CoinBetting(),
        DiagonalNewton(3.0, "typical"),
        MirrorDescent(16.0),
        PolynomialAverage(MirrorDescent(16.0)),
        BaseRate(),
    )


cdef class Mixture(EventRule):
    """A mixture of rules on the same rows, weighted by how well they predict.

    `rules=None` means members that need no tuning. The members divide `share` equally whatever
    their losses, so a member that was bad can recover. `shares`, `members` and `losses` (the sum of
    each member's progressive losses) can be inspected.

    >>> Mixture([CoinBetting(), DiagonalNewton(3.0)]).rules
    (CoinBetting(alpha=1.0, beta=1.0), DiagonalNewton(prior=3.0, size='largest'))
    """

    _names = ("rules", "share")
    _examples = (
        (),
        ((CoinBetting(), NormalizedAdaptive(2.0)), 0.01),
        ((DiagonalNewton(), MirrorDescent(8.0), PolynomialAverage(MirrorDescent(16.0))),),
    )
    needs = (*EventRule.needs, chargeable)
    scalars = ("t", "variance")
    scalar_merges = {"t": "mean", "variance": "mean", "regret_sums": "mean", "loss_sums": "sum"}
    cdef readonly tuple rules
    cdef readonly double share
    cdef readonly tuple members
    cdef public double variance
    cdef int count
    # borrowed pointers to the members, for code without the GIL
    cdef void* each[MAX_RULES]
    cdef bint[MAX_RULES] learns_whole  # whether a member is an EventRule
    # feature sizes by kind, shared by the members that use them; and borrowed pointers to them
    cdef dict sizes
    cdef int kinds
    cdef void* measures[MAX_RULES]
    cdef int used_width  # numbers per slot, without padding
    cdef bint recording
    cdef double log_count  # log K
    cdef double[MAX_RULES] pi
    cdef double[MAX_RULES] audible  # the shares without those of silent members
    cdef const double* heard  # `audible` under l1 or l2, else `pi`
    cdef Charges charges  # None without l1 and l2
    cdef Support support  # of the members that select weights; None without l1
    cdef double[MAX_RULES] regrets
    cdef LossSum* totals
    # of the event scored last
    cdef double[MAX_RULES] scores
    cdef double[MAX_RULES] slopes
    # prefix sums of pi over past steps, for averages
    cdef double* history
    cdef Py_ssize_t steps, history_room
    cdef double base

    def __init__(self, rules=None, share=1e-3):
        self.rules = default_rules() if rules is None else tuple(rules)
        if not 1 <= len(self.rules) <= MAX_RULES:
            raise ValueError(f"Mixture: rules must hold 1 to {MAX_RULES}, got {len(self.rules)}")
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise ValueError(f"Mixture: rules must be Rule objects, got {rule!r}")
        self.share = number("Mixture", "share", share, low=0.0, high=1.0)

    def __dealloc__(self):
        free(self.history)
        free(self.totals)

    @property
    def stays_finite(self):
        """Whether the state of all members stays finite whatever the row."""
        return all(rule.stays_finite for rule in self.members or self.rules)

    @property
    def steers(self):
        """Whether it sets the strength of l1 for a number of weights, as the default rule does."""
        return self.rules == default_rules()

    @property
    def intercept(self):
        """Inside the row, but outside the penalty where members keep it so."""
        return "free" if any([isinstance(rule, SelfTuning) for rule in self.rules]) else "inside"

    def implementation(self, Penalty penalty):
        """Use the default members in the forms that take l1 and l2, if there is such a penalty."""
        if penalty.steered:
            return TargetedMixture(self.share)
        penalized = penalty.l1 + penalty.l2 > 0.0 and penalty.norm_limit == INFINITY
        if penalized and self.rules == default_rules():
            return SparseMixture(self.share)
        return Mixture(self.rules, self.share)

    def start(self):
        cdef int k
        self.members = tuple(rule.bind(self.penalty, self.loss) for rule in self.rules)
        self.count = len(self.members)
        self.prefetches = True
        self.log_count = log(<double>self.count)
        self.totals = <LossSum*>calloc(self.count, sizeof(LossSum))
        if self.totals == NULL:
            raise MemoryError
        sized = [member for member in self.members if is_sized(member)]
        kinds = sorted({member.size for member in sized})
        self.sizes = {kind: SIZE_KINDS[kind]() for kind in kinds}
        for k, sizes in enumerate(self.sizes.values()):
            self.measures[k] = <void*>sizes
        self.kinds = len(self.sizes)
        for member in sized:
            member.share(self.sizes)
        self.lay_table()
        self.start_penalty()
        self.averages_lazily = self.charges is None and all(
            m.learns_events and m.averages_lazily for m in self.members
        )
        self.observes_events = any((<Rule>m).observes_events for m in self.members)
        for k in range(self.count):
            self.pi[k] = 1.0 / self.count
            self.each[k] = <void*>self.members[k]
            self.learns_whole[k] = type(self.members[k]).learns_events
        self.share_out()

    def start_penalty(self):
        """Prepare the charges, thresholds and support of members under l1 and l2."""
        l1, l2 = self.penalty.l1, self.penalty.l2
        self.heard = self.pi
        if l1 + l2 == 0.0:
            return
        self.heard = self.audible
        self.charges = Charges(self.members, l1, l2)
        selecting = [isinstance(m, Composite) and m.selects for m in self.members]
        found = [member for member, selects in zip(self.members, selecting) if selects]
        for member in found[1:]:
            member.follow(found[0])
        if found and l1 > 0.0:
            self.support = Support(found, np.flatnonzero(selecting))
            for member in self.members:
                if isinstance(member, (Composite, PolynomialAverage)):
                    member.restrict(self.support)

    cdef void share_out(self) noexcept nogil:
        """Set what follows from the shares."""
        if self.charges is not None:
            silence(self.count, self.pi, self.audible)
        if self.support is not None:
            self.support.vote(self.pi)

    def lay_table(self):
        """Lay out one table for all that can share it, with slots aligned to cache lines."""
        attached = [*self.sizes.values(), *(m for m in self.members if m.can_share_table)]
        self.used_width = sum([one.width for one in attached])
        padded = (self.used_width + LINE - 1) // LINE * LINE
        self.table = SlotTable(padded if self.used_width > LINE // 2 else self.used_width)
        offset = 0
        for one in attached:
            one.attach(self.table, offset)
            offset += one.width

    cdef int grow(self, Py_ssize_t n) except -1:
        self.table.reserve(n)
        for sizes in self.sizes.values():
            (<FeatureSizes>sizes).grow(n)
        for member in self.members:
            (<Rule>member).free_slots = self.free_slots
            (<Rule>member).grow(n)
        if self.charges is not None:
            self.charges.grow(n)
        self.n = max(self.n, n)
        if self.recording:
            self.reserve(n)
        return 0

    # -- one row --------------------------------------------------------------------------------

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        cdef double w = 0.0
        cdef int k
        for k in range(self.count):
            if self.heard[k] > 0.0:
                w += self.heard[k] * (<Rule>self.each[k]).weight(j)
        return w

    cdef double predict(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef int k
        for k in range(self.kinds):
            (<FeatureSizes>self.measures[k]).measure(row)
        for k in range(self.count):
            p += self.heard[k] * (<Rule>self.each[k]).predict(row)
        return p

    def scoring(self):
        """Return how `predict` computes a score."""
        sizes = {kind: one.scoring() for kind, one in self.sizes.items()}
        members = [
            member.scoring(sizes[member.size]) if is_sized(member) else member.scoring()
            for member in self.members
        ]
        shares = [self.heard[k] for k in range(self.count)]
        return {"kind": "mixture", "shares": shares, "members": members}

    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        cdef int k
        for k in range(self.count):
            if (<Rule>self.each[k]).observes_events:
                (<Rule>self.each[k]).observe(row, loss_at_zero, weight)

    cdef double score_for_learning(self, Row* row) noexcept nogil:
        cdef double p = 0.0
        cdef int k
        for k in range(self.kinds):
            (<FeatureSizes>self.measures[k]).observe(row)
        for k in range(self.count):
            if self.learns_whole[k]:
                self.scores[k] = (<EventRule>self.each[k]).score_for_learning(row)
            else:
                self.scores[k] = (<Rule>self.each[k]).query(row)
        for k in range(self.count):
            if not fabs(self.scores[k]) <= MAX_SCORE:
                # a diverging member must not affect the others
                self.scores[k] = 0.0
            p += self.heard[k] * self.scores[k]
        return p

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double[MAX_RULES] excess
        cdef double psi = 0.0
        cdef int k
        # all slopes before all updates, so that their exponentials are computed in parallel
        for k in range(self.count):
            self.slopes[k] = loss.slope_at(self.scores[k], y)
        for k in range(self.count):
            if self.learns_whole[k]:
                (<EventRule>self.each[k]).apply(
                    row, loss, y, weight, self.scores[k], self.slopes[k]
                )
            else:
                (<Rule>self.each[k]).update(row, weight * self.slopes[k])
            if (<Rule>self.each[k]).needs_rebase:
                (<Rule>self.each[k]).rebase()
        for k in range(self.count):
            add_pending(&self.totals[k], self.scores[k], y, weight, self.slopes[k])
            if self.totals[k].last.n == MAX_PENDING:
                add_sum(&self.totals[k], loss.sum_pending(&self.totals[k].last))
        for k in range(self.count):
            excess[k] = weight * slope * (self.scores[k] - p)
        if self.charges is not None:
            self.charges.update(row, self.free_slots)
            for k in range(self.count):
                psi += self.heard[k] * self.charges.sums[k]
            for k in range(self.count):
                excess[k] += self.charges.sums[k] - psi
        reweigh(
            self.count, self.log_count, self.share, excess, self.pi, self.regrets, &self.variance
        )
        self.share_out()
        self.t += 1.0
        if self.recording:
            self.record()

    # -- several workers --------------------------------------------------------------------------

    @property
    def why_no_merge(self):
        if self.charges is not None:
            return "the penalties of its members follow the order of events; use one of its rules"
        reasons = [member.why_no_merge for member in self.members]
        return next((reason for reason in reasons if reason is not None), None)

    @property
    def slots_are_independent(self):
        """Whether those of all members are."""
        return all(member.slots_are_independent for member in self.members)

    def parts(self):
        inner = [part for member in self.members for part in member.parts()]
        return [*self.sizes.values(), *inner, self]

    @property
    def regret_sums(self):
        """The sums c_k of the members."""
        return to_array(self.regrets, self.count)

    @regret_sums.setter
    def regret_sums(self, sums):
        copy_from_array(self.regrets, sums)

    @property
    def loss_sums(self):
        """The sums of the members' progressive losses, as an array."""
        return np.array(self.losses)

    @loss_sums.setter
    def loss_sums(self, sums):
        cdef int k
        for k in range(self.count):
            self.totals[k].sum, self.totals[k].rest, self.totals[k].last.n = sums[k], 0.0, 0

    def derive(self):
        set_shares(
            self.count, self.log_count, self.share, self.pi, self.regrets, self.variance
        )
        self.share_out()

    # -- averages --------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t n) except -1:
        if n + 1 > self.history_room:
            self.history_room = n + 1
            self.history = <double*>reallocate(
                self.history, self.history_room * self.count * sizeof(double)
            )
        return 0

    cdef void record(self) noexcept nogil:
        cdef double* last = self.history + self.steps * self.count
        cdef int k
        for k in range(self.count):
            last[self.count + k] = last[k] + self.pi[k]
        self.steps += 1
        self.needs_rebase = self.steps >= self.history_room - 1

    cdef int record_steps(self) except -1:
        cdef int k
        self.recording = True
        self.reserve(max(1024, self.n))
        self.base = self.t
        self.steps = 0
        for k in range(self.count):
            self.history[k] = 0.0
        self.record()
        return 0

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        """Sum with constant member weights: only the shares change while a slot is untouched."""
        cdef double* first = self.history + <Py_ssize_t>(a - self.base) * self.count
        cdef double* last = self.history + <Py_ssize_t>(b - self.base) * self.count
        cdef double total = 0.0
        cdef int k
        if b <= a:
            return 0.0
        for k in range(self.count):
            total += (last[k] - first[k]) * (<Rule>self.each[k]).weight(j)
        return total

    cdef void rebase(self) noexcept nogil:
        cdef int k
        if self.recording:
            self.base = self.t
            self.steps = 0
            for k in range(self.count):
                self.history[k] = 0.0
            self.record()
        self.needs_rebase = False

    # -- public interface and state ----------------------------------------------------------------

    @property
    def shares(self):
        """The share pi_k of each member."""
        return [self.pi[k] for k in range(self.count)]

    @property
    def losses(self):
        """The sum of each member's progressive losses."""
        return [loss_sum(&self.totals[k], self.loss) for k in range(self.count)]

    def bound(self, u):
        return None, "no bound is proved for Mixture"

    def scalar_state(self):
        return {
            "t": self.t,
            "variance": self.variance,
            "pi": to_array(self.pi, self.count),
            "regrets": to_array(self.regrets, self.count),
            "totals": [self.total_state(k) for k in range(self.count)],
            "members": [member.scalar_state() for member in self.members],
        }

    def restore_scalars(self, state):
        self.t = state["t"]
        self.variance = state["variance"]
        copy_from_array(self.pi, state["pi"])
        copy_from_array(self.regrets, state["regrets"])
        for k, total in enumerate(state["totals"]):
            self.totals[k].sum, self.totals[k].rest, noted = total
            self.totals[k].last.n = 0
            for score, label, weight, slope in noted:
                add_pending(&self.totals[k], score, label, weight, slope)
        for member, saved in zip(self.members, state["members"], strict=True):
            member.restore_scalars(saved)
        self.share_out()

    def state(self):
        cdef Py_ssize_t size = (self.steps + 1) * self.count
        state = {
            **self.scalar_state(),
            "n": self.n,
            "cells": self.table.copy_columns(0, self.used_width, self.n),
            "members": [
                member.scalar_state() if member.can_share_table else member.state()
                for member in self.members
            ],
        }
        if self.charges is not None:
            state["charges"] = self.charges.state()
        if self.recording:
            state["base"] = self.base
            state["history"] = to_array(self.history, size)
        return state

    def total_state(self, int k):
        """Return the loss sum of member k, and the events whose losses are still pending."""
        cdef LossSum* total = self.totals + k
        last = total.last
        noted = [
            [last.score[i], last.label[i], last.weight[i], last.slope[i]] for i in range(last.n)
        ]
        return [total.sum, total.rest, noted]

    def restore(self, state):
        if any([len(state[name]) != self.count for name in ("pi", "regrets", "totals", "members")]):
            raise ModelFileError(f"the saved state is not that of a Mixture of {self.count} rules")
        if state["cells"].shape != (state["n"], self.used_width):
            raise ModelFileError(
                f"the saved state of shape {state['cells'].shape} does not fit this Mixture: load "
                "it into a Mixture of the same rules"
            )
        self.grow(state["n"])
        self.table.restore_columns(0, state["cells"])
        for member, saved in zip(self.members, state["members"], strict=True):
            if not member.can_share_table:
                member.restore(saved)
        self.restore_scalars(state)
        if self.charges is not None:
            self.charges.restore(state["charges"])
        self.share_out()
        if "history" in state:
            self.recording = True
            self.steps = len(state["history"]) // self.count - 1
            self.reserve(max(1024, self.n, self.steps + 1))
            copy_from_array(self.history, state["history"])
            self.base = state["base"]

    def swap_classes(self):
        for member in self.members:
            member.swap_classes()


def is_sized(rule):
    """Return whether a rule divides features by their sizes."""
    return isinstance(rule, Sized) and rule.size is not None
