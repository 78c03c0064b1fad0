"""ROC area and ordinal regression: pairs in the wrong order ([Teo07] section 3.1).

The inner maximum over the y_ij in (-1, 1) separates by pair: the loss is the mean over pairs with
y_i > y_j of max(0, 1 - 2 (f_i - f_j)). Pairs are not enumerated: each row needs only the number of
its violated pairs. With two grades these counts come from one sort; with more, from the bits of
the grades, highest first, because the first bit in which a pair differs determines its order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.structured.multivariate.loss import Indices


class ROCArea(MultivariateLoss):
    """The fraction of pairs of a positive and a negative row that are in the wrong order.

    1 - AUC, bounded from above by max(0, 1 - 2 (f_i - f_j)); O(m log m). With groups, the mean
    over them, where a group of one class counts 0.

    >>> loss = ROCArea()
    >>> loss.value([0.75, 0.5, 0.0], [1, 0, 0]), loss.slope([0.75, 0.5, 0.0], [1, 0, 0])
    (0.25, array([-1.,  1.,  0.]))
    """

    kind: ClassVar[str] = "binary"

    def _bind(self, grades: Vector, groups: Indices) -> Pairs:
        return Pairs(grades, groups)


class OrdinalRegression(MultivariateLoss):
    """The fraction of pairs of rows of different grades that are in the wrong order.

    ROCArea for any number of grades; O(m log m).

    >>> OrdinalRegression().value([0.0, 1.0, 1.0], [1, 2, 3])
    0.3333333333333333
    """

    def _bind(self, grades: Vector, groups: Indices) -> Pairs:
        return Pairs(grades, groups)


class Pairs:
    """The pairs of rows of one group with different grades, counted but not enumerated."""

    def __init__(self, grades: Vector, groups: Indices) -> None:
        self.ranks = np.unique(grades, return_inverse=True)[1].astype(np.intp)
        self.groups = groups
        self.levels = int(self.ranks.max()).bit_length()
        sizes = np.bincount(groups).astype(float)
        cell = groups * (int(self.ranks.max()) + 1) + self.ranks
        same = np.unique(cell, return_inverse=True, return_counts=True)[1:]
        equal = np.bincount(groups, weights=same[1][same[0]].astype(float))
        pairs = 0.5 * (sizes * sizes - equal)
        # each group is a mean over its pairs; all groups have equal weight
        share = np.divide(1.0, pairs * len(sizes), out=np.zeros_like(pairs), where=pairs > 0.0)
        self.shares = share[groups]

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """Return the mean of max(0, 1 - 2 (f_i - f_j)), and a subgradient."""
        f = f - f.mean()  # only differences matter: smaller numbers, less rounding
        upper, lower = self.violations(f)
        slope = 2.0 * self.shares * (lower - upper)
        return max(0.0, float(self.shares @ upper + slope @ f)), slope

    def violations(self, f: Vector) -> tuple[Vector, Vector]:
        """Count the violated pairs in which each row has the higher grade, and the lower grade.

        Each row is sorted twice: by f - 1/2 as the higher row of a pair, and by f as the lower one.
        A pair is violated where its higher row comes first. A stable split by each bit in turn
        divides blocks of rows, at first the groups.
        """
        m = len(f)
        counts = np.zeros((2, m))
        order = np.lexsort((np.concatenate([f - 0.5, f]), np.tile(self.groups, 2)))
        row, higher = order % m, order < m
        group = self.groups[row]
        start = np.searchsorted(group, group)
        end = np.searchsorted(group, group, side="right")
        place = np.arange(2 * m)
        for level in reversed(range(self.levels)):
            one = (self.ranks[row] >> level & 1).astype(bool)
            before = _before(higher & one)
            lower = ~(higher | one)
            counts[1, row[lower]] += (before[:-1] - before[start])[lower]
            after = _before(lower)
            upper = higher & one
            counts[0, row[upper]] += (after[end] - after[:-1])[upper]
            zeros = _before(~one)
            zeros_before, zeros_inside = zeros[:-1] - zeros[start], zeros[end] - zeros[start]
            border = start + zeros_inside
            target = np.where(one, border + place - start - zeros_before, start + zeros_before)
            moved = np.empty((4, 2 * m), dtype=np.intp)
            moved[:, target] = row, higher, np.where(one, border, start), np.where(one, end, border)
            row, higher, start, end = moved[0], moved[1].astype(bool), moved[2], moved[3]
        return counts[0], counts[1]


def _before(marks: Vector) -> Vector:
    """Count the marks before each position, and before the end."""
    return np.concatenate([[0], np.cumsum(marks)])
