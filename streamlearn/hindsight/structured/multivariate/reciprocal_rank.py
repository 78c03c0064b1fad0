"""The reciprocal rank of the most relevant documents of a query ([Teo07] section 3.1).

A ranking loss with 1 - 1/r for the difference of utilities, where r is the rank of the first of
the most relevant documents. For a given r the worst ranking puts the other documents with the
highest scores before it, and all remaining documents, in order of score, from r on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss
from streamlearn.hindsight.structured.multivariate.ranking import averaged, differing

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.structured.multivariate.loss import Indices


class ReciprocalRank(MultivariateLoss):
    """1 - 1/r, and 1 if r > depth: the mean reciprocal rank of queries, as 1 - MRR.

    r is the best rank of a document of the query's highest grade, and c_i = 1/i up to `depth`.
    O(m log m + depth^2) for a query of m documents.

    >>> ReciprocalRank().value([2.0, 0.0], [1, 0]), ReciprocalRank().value([0.0, 0.0], [1, 0])
    (0.0, 0.5)
    """

    _names = ("depth",)
    _examples = ((10,), (2,))

    def __init__(self, depth: int = 10) -> None:
        self.depth = int(number("ReciprocalRank", "depth", depth, low=1.0))

    def _bind(self, grades: Vector, groups: Indices) -> FirstHits:
        return FirstHits(grades, groups, self.depth)


class FirstHits:
    """The most relevant documents, and the others, of each query."""

    def __init__(self, grades: Vector, groups: Indices, depth: int) -> None:
        self.depth = depth
        self.c = 1.0 / np.arange(1, depth + 1)
        sizes = np.bincount(groups)
        full = np.zeros(int(sizes.max()))
        full[:depth] = self.c[: len(full)]
        self.reference = averaged(full, grades, groups) * differing(grades, groups)
        self.share = 1.0 / len(sizes)
        order = np.argsort(groups, kind="stable")
        self.queries = []
        for rows in np.split(order, np.cumsum(sizes)[:-1]):
            top = grades[rows] == grades[rows].max()
            if not top.all():
                self.queries.append((rows[top], rows[~top]))

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """Return the mean over queries of the worst ranking's loss, and its slope."""
        slope = -self.reference
        value = float(slope @ f)
        for top, others in self.queries:
            delta, ranked = self._worst(f, top, others)
            c = self.c[: len(ranked)]
            slope[ranked] += c
            value += delta + float(c @ f[ranked])
        return max(0.0, value * self.share), slope * self.share

    def _worst(self, f: Vector, top: Indices, others: Indices) -> tuple[float, Indices]:
        """Return the loss and the first documents of the worst ranking."""
        top, others = _highest(f, top, self.depth), _highest(f, others, self.depth)
        best, result = -np.inf, (0.0, top)
        for before in range(len(others) + 1):
            rest = _highest(f, np.concatenate([top, others[before:]]), self.depth - before)
            ranked = np.concatenate([others[:before], rest])
            delta = 1.0 - 1.0 / (before + 1) if before < self.depth else 1.0
            value = delta + float(self.c[: len(ranked)] @ f[ranked])
            if value > best:
                best, result = value, (delta, ranked)
        return result


def _highest(f: Vector, rows: Indices, k: int) -> Indices:
    """Return the k rows with the highest scores, in order."""
    chosen: Indices = rows[np.argsort(-f[rows], kind="stable")[:k]]
    return chosen
