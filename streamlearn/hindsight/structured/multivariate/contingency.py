"""F-beta and precision at k: losses of the contingency table ([Teo07] section 3.1).

    l(f, y) = max over labelings y' of Delta(y', y) + 1/m sum_i (y'_i - y_i) f_i

Delta depends only on how many positive rows (a) and how many negative rows (c) are labeled
positive; for given counts, the rows with the highest scores are the best choice. The mean over
rows, instead of the sum of [Teo07], keeps scores and penalty strengths comparable with other
losses: with the error rate for Delta it would be the mean of max(0, 1 - 2 y_i f_i).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.structured.multivariate.loss import Indices


class FBeta(MultivariateLoss):
    """1 - F_beta, with F_beta = (1 + beta^2) a / (a + c + beta^2 positives); O(m log m).

    Without positive rows, F_beta is 1 for the true labeling and 0 for all others.

    >>> FBeta().value([2.0, -1.0], [1, 0]), FBeta().value([0.0, 0.0], [1, 0])
    (0.0, 1.0)
    """

    kind: ClassVar[str] = "binary"
    takes_groups: ClassVar[bool] = False
    _names = ("beta",)
    _examples = ((1.0,), (0.5,), (2.0,))

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = number("FBeta", "beta", beta, above=0.0)

    def _bind(self, grades: Vector, groups: Indices) -> FBetaTable:  # noqa: ARG002 - one group
        return FBetaTable(grades, self.beta)


class PrecisionAtK(MultivariateLoss):
    """The fraction of negative rows among the k that are labeled positive; O(m log m).

    The maximum is over labelings with k positives, and the true one, whose loss is 0.

    >>> PrecisionAtK(1).value([2.0, -1.0], [1, 0]), PrecisionAtK(1).value([0.0, 0.0], [1, 0])
    (0.0, 1.0)
    """

    kind: ClassVar[str] = "binary"
    takes_groups: ClassVar[bool] = False
    _names = ("k",)
    _examples = ((1,), (3,))

    def __init__(self, k: int) -> None:
        self.k = int(number("PrecisionAtK", "k", k, low=1.0))
        if self.k != k:
            raise ValueError(f"PrecisionAtK: k must be an integer, got {k!r}")

    def _bind(self, grades: Vector, groups: Indices) -> PrecisionTable:  # noqa: ARG002 - one group
        if self.k > len(grades):
            raise ValueError(f"{self!r} needs at least {self.k} rows, y has {len(grades)}")
        return PrecisionTable(grades, self.k)


class ContingencyTable:
    """Rows by class; finds the best labeling for each a and c."""

    def __init__(self, grades: Vector) -> None:
        self.m = len(grades)
        self.positive = np.flatnonzero(grades == 1.0)
        self.negative = np.flatnonzero(grades != 1.0)

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """Return the maximum over all labelings, and the slope of its maximizer."""
        positive = self.positive[np.argsort(-f[self.positive])]
        negative = self.negative[np.argsort(-f[self.negative])]
        # what positive rows labeled negative, and negative rows labeled positive, add
        missed = 2.0 / self.m * np.concatenate([[0.0], np.cumsum(-f[positive][::-1])])[::-1]
        called = 2.0 / self.m * np.concatenate([[0.0], np.cumsum(f[negative])])
        a, c, delta = self.worst(2.0 / self.m * f[negative])
        values = delta + missed[a] + called[c]
        best = int(np.argmax(values))
        slope = np.zeros(self.m)
        if values[best] <= 0.0:
            return 0.0, slope
        slope[positive[a[best] :]] = -2.0 / self.m
        slope[negative[: c[best]]] = 2.0 / self.m
        return float(values[best]), slope

    def worst(self, gains: Vector) -> tuple[Indices, Indices, Vector]:
        """Return candidate counts a and c for the maximum, and their Delta.

        `gains` is what each further negative row labeled positive adds, in falling order.
        """
        raise NotImplementedError


class FBetaTable(ContingencyTable):
    """The best c for each a, found by bisection: the gain of a further row falls with c."""

    def __init__(self, grades: Vector, beta: float) -> None:
        super().__init__(grades)
        self.square = beta * beta

    def worst(self, gains: Vector) -> tuple[Indices, Indices, Vector]:
        """Return the best c for each a, and 1 - F_beta there."""
        a = np.arange(len(self.positive) + 1)
        if len(a) == 1:
            c = np.arange(len(gains) + 1)
            return np.zeros_like(c), c, (c > 0).astype(float)
        base = a + self.square * len(self.positive)
        low, high = np.zeros_like(a), np.full_like(a, len(gains))
        while np.any(low < high):
            c = np.minimum((low + high) // 2, max(len(gains) - 1, 0))
            fall = (1.0 + self.square) * a / ((base + c) * (base + c + 1.0))
            more = (low < high) & (gains[c] + fall > 0.0)
            high = np.where((low < high) & ~more, c, high)
            low = np.where(more, c + 1, low)
        return a, low, 1.0 - (1.0 + self.square) * a / (base + low)


class PrecisionTable(ContingencyTable):
    """All counts with a + c = k."""

    def __init__(self, grades: Vector, k: int) -> None:
        super().__init__(grades)
        self.k = k

    def worst(self, gains: Vector) -> tuple[Indices, Indices, Vector]:
        """Return every a with a feasible c = k - a, and c / k."""
        a = np.arange(max(0, self.k - len(gains)), min(self.k, len(self.positive)) + 1)
        return a, self.k - a, (self.k - a) / self.k
