"""Rankings of documents within queries: NDCG and expected rank utility ([Teo07] section 3.1).

    l(f, y) = max over rankings pi of sum_i c_i (f_pi(i) - f_i) + <a - a(pi), b(y)>

with documents in order of falling relevance, discounts a_i of the ranks, gains b(y) of the grades,
and c falling. ([Teo07] prints the first sum with the opposite sign, with which the best scores
would rank the worst documents first.) For c = a the maximum is a sort by f - b; for other c it is a
linear assignment. The c of documents of equal grade are averaged, so their order does not matter.
The loss is the mean over queries; a query with a single grade counts 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.structured.multivariate.loss import Indices


class RankingLoss(MultivariateLoss):
    """1 - sum_i a_i b_pi(i), scaled so that the best ranking has the sum 1.

    decay: None sets c to the discounts, O(m log m); a number sets c_i = i^-decay and uses linear
    assignment, cubic in the length of a query in the worst case.
    """

    decay: float | None

    def discounts(self, m: int) -> Vector:
        """Return a_1 .. a_m."""
        raise NotImplementedError

    def gains(self, grades: Vector) -> Vector:
        """Return b(y) up to a positive factor."""
        raise NotImplementedError

    def _bind(self, grades: Vector, groups: Indices) -> SortedRankings | AssignedRankings:
        if self.decay is None:
            return SortedRankings(self, grades, groups)
        return AssignedRankings(self, grades, groups, self.decay)


class NDCG(RankingLoss):
    """1 - normalized discounted cumulative gain: a_i = 1 / log2(1 + i), b = 2^y - 1, y >= 0.

    k: only the first k ranks count; None for all. decay: None sets c = a and sorts, O(m log m); a
    number sets c_i = i^-decay and uses linear assignment ([Teo07] section 3.1).

    >>> NDCG().value([1.0, 0.0], [1, 0]), NDCG().slope([0.0, 0.0], [1, 0])
    (0.0, array([-0.36907025,  0.36907025]))
    """

    _names = ("k", "decay")
    _examples = ((None, None), (2, None), (3, 0.25), (None, 0.5))

    def __init__(self, k: int | None = None, decay: float | None = None) -> None:
        self.k = None if k is None else int(number("NDCG", "k", k, low=1.0))
        self.decay = None if decay is None else number("NDCG", "decay", decay, above=0.0)

    def discounts(self, m: int) -> Vector:
        """Return 1 / log2(1 + i), and 0 beyond k."""
        ranks = np.arange(1, m + 1)
        return np.where(ranks <= (self.k or m), 1.0 / np.log2(1.0 + ranks), 0.0)

    def gains(self, grades: Vector) -> Vector:
        """Return 2^y - 1, divided by 2^max(y) so that large grades do not overflow."""
        if grades.min() < 0.0:
            raise ValueError(f"{self!r}: grades must be >= 0, y has {grades.min():g}")
        top = grades.max()
        return np.asarray(np.exp2(grades - top) - np.exp2(-top))


class ExpectedRankUtility(RankingLoss):
    """1 - expected rank utility: a_i = 2^((1 - i) / (half_life - 1)), b = max(y - neutral, 0).

    The utility halves every half_life - 1 ranks. decay: as for NDCG.

    >>> ExpectedRankUtility().value([1.0, 0.0], [5, 1])
    0.0
    """

    _names = ("half_life", "neutral", "decay")
    _examples = ((5.0, 0.0, None), (2.0, 1.0, None), (3.0, 0.5, 0.25))

    def __init__(
        self, half_life: float = 5.0, neutral: float = 0.0, decay: float | None = None
    ) -> None:
        self.half_life = number("ExpectedRankUtility", "half_life", half_life, above=1.0)
        self.neutral = number("ExpectedRankUtility", "neutral", neutral)
        owner = "ExpectedRankUtility"
        self.decay = None if decay is None else number(owner, "decay", decay, above=0.0)

    def discounts(self, m: int) -> Vector:
        """Return 2^((1 - i) / (half_life - 1))."""
        return np.exp2(-np.arange(m) / (self.half_life - 1.0))

    def gains(self, grades: Vector) -> Vector:
        """Return max(y - neutral, 0)."""
        return np.maximum(grades - self.neutral, 0.0)


class SortedRankings:
    """All queries together, for c = a: sorting by f - b maximizes."""

    def __init__(self, loss: RankingLoss, grades: Vector, groups: Indices) -> None:
        self.groups = groups
        sizes = np.bincount(groups)
        self.starts = np.cumsum(sizes) - sizes
        self.discounts = loss.discounts(int(sizes.max()))
        self.reference = averaged(self.discounts, grades, groups)
        self.gains = np.empty(len(grades))
        order = np.argsort(groups, kind="stable")
        for rows in np.split(order, self.starts[1:]):
            self.gains[rows] = normalized(loss, grades[rows], self.reference[rows])
        self.shares = differing(grades, groups) / len(sizes)

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """Return the mean over queries of sum_j (a_rank(j) - a_true(j)) (f_j - b_j), and slope."""
        worst = f - self.gains
        order = np.lexsort((-worst, self.groups))
        ranks = np.empty(len(f), dtype=np.intp)
        ranks[order] = np.arange(len(f)) - self.starts[self.groups[order]]
        slope = (self.discounts[ranks] - self.reference) * self.shares
        return max(0.0, float(slope @ worst)), slope


class AssignedRankings:
    """A linear assignment of documents to ranks for each query, for any c."""

    def __init__(self, loss: RankingLoss, grades: Vector, groups: Indices, decay: float) -> None:
        sizes = np.bincount(groups)
        self.discounts = loss.discounts(int(sizes.max()))
        self.c = np.arange(1.0, float(sizes.max()) + 1.0) ** -decay
        true_a = averaged(self.discounts, grades, groups)
        self.true_c = averaged(self.c, grades, groups)
        self.shares = differing(grades, groups) / len(sizes)
        self.gains = np.empty(len(grades))
        order = np.argsort(groups, kind="stable")
        self.queries = np.split(order, np.cumsum(sizes)[:-1])
        for rows in self.queries:
            self.gains[rows] = normalized(loss, grades[rows], true_a[rows])
        self.ideal = true_a

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """Return the mean over queries of the worst ranking's loss, and its slope."""
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - half a second to import

        c, a = np.empty(len(f)), np.empty(len(f))
        for rows in self.queries:
            n = len(rows)
            worth = np.outer(f[rows], self.c[:n]) - np.outer(self.gains[rows], self.discounts[:n])
            document, rank = linear_sum_assignment(worth, maximize=True)
            c[rows[document]] = self.c[rank]
            a[rows[document]] = self.discounts[rank]
        slope = (c - self.true_c) * self.shares
        value = float(slope @ f + ((self.ideal - a) * self.shares) @ self.gains)
        return max(0.0, value), slope


def normalized(loss: RankingLoss, grades: Vector, reference: Vector) -> Vector:
    """Return the gains of a query, scaled so that its best ranking gains 1, or zeros."""
    gains = loss.gains(grades)
    best = float(reference @ gains)
    return gains / best if best > 0.0 else np.zeros(len(gains))


def averaged(c: Vector, grades: Vector, groups: Indices) -> Vector:
    """Assign the c_i in order of falling grade within each group, averaged over equal grades."""
    order = np.lexsort((-grades, groups))
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    ranked = c[np.arange(len(grades)) - starts[groups[order]]]
    new = np.ones(len(grades), dtype=bool)
    new[1:] = (np.diff(groups[order]) != 0) | (np.diff(grades[order]) != 0)
    block = np.cumsum(new) - 1
    result = np.empty(len(grades))
    result[order] = (np.bincount(block, weights=ranked) / np.bincount(block))[block]
    return result


def differing(grades: Vector, groups: Indices) -> Vector:
    """Return 1 for the documents of queries with several grades, 0 for the others."""
    high, low = np.full(groups.max() + 1, -np.inf), np.full(groups.max() + 1, np.inf)
    np.maximum.at(high, groups, grades)
    np.minimum.at(low, groups, grades)
    return np.asarray((high > low)[groups], dtype=float)
