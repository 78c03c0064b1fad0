"""The spectral norm of the rows, and the speedup of mini-batches ([Takac13] (10), (11), Thm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.hindsight.passes import RowMatrix
from streamlearn.hindsight.problem import checked_matrix

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

MAX_ITERATIONS = 200
MIN_ITERATIONS = 10  # before a slow rise counts as convergence
SMALL = 256  # rows or columns up to which exact eigenvalues are cheap
TINY = 1e-150  # keeps the iterates > 0
SAFETY = 1.0 + 1e-9  # for rounding of the sums


@dataclass(frozen=True)
class SpectralBound:
    """sigma^2 = |X|^2 / (n r^2), with the spectral norm |X| and r = max |x_i| ([Takac13] (10)).

    `sigma2` is an upper bound, `sigma2_lower_bound` a lower bound; 1/n <= sigma^2 <= 1.
    """

    rows: int
    radius: float
    sigma2: float
    sigma2_lower_bound: float

    def beta(self, b: int) -> float:
        """Return beta_b, from 1 (b times fewer iterations) to b (no fewer): [Takac13] (11)."""
        return beta(b, self.rows, self.rows * self.sigma2)

    def speedup(self, b: int) -> float:
        """Return b / beta_b: how many times fewer iterations batches of b need."""
        return b / self.beta(b)


def spectral_bound(X: Any, *, tolerance: float = 1e-3, seed: int = 0) -> SpectralBound:
    """Compute how much mini-batches of the rows of X can speed up.

    Power iteration bounds sigma^2 from below. The upper bound comes from the eigenvalues if X has
    few rows or columns, otherwise from Collatz-Wielandt quotients on the absolute values (sharp if
    no value is negative) and from the sum of squares. It stops when the bounds are within
    `tolerance`, or when further passes over X are not worthwhile.

    >>> import numpy as np
    >>> bound = spectral_bound(np.eye(4))  # orthogonal rows
    >>> round(bound.sigma2, 6), round(bound.speedup(4), 6)
    (0.25, 4.0)
    >>> bound = spectral_bound(np.ones((4, 1)))  # equal rows
    >>> round(bound.sigma2, 6), round(bound.speedup(4), 6)
    (1.0, 1.0)
    """
    tolerance = number("spectral_bound", "tolerance", tolerance, above=0.0)
    X = checked_matrix(X)
    n = X.shape[0]
    matrix = RowMatrix(X)
    squares = matrix.squares()
    largest = float(squares.max())
    if not np.isfinite(largest):
        raise ValueError("X: the squared norms of the rows overflow; scale X down")
    if largest == 0.0:
        return SpectralBound(n, 0.0, 1.0 / n, 1.0 / n)
    scale = np.full(n, largest**-0.5)
    signed = bool(X.min() < 0.0)
    low, high = _power(matrix, scale, tolerance, seed, signed=signed)
    if min(X.shape) <= SMALL:
        high = _eigenvalue(X / largest**0.5)
    elif signed:
        high = _power(RowMatrix(checked_matrix(abs(X))), scale, tolerance, seed, signed=False)[1]
    high = max(min(high, float((squares / largest).sum())) * SAFETY, low)
    return SpectralBound(n, largest**0.5, min(high / n, 1.0), min(low / n, 1.0))


def beta(b: int, n: int, squared_norm: float) -> float:
    """Return beta_b for n rows of norm <= 1, where squared_norm is n sigma^2 ([Takac13] (11))."""
    if not 1 <= b <= n:
        raise ValueError(f"b must be from 1 to {n}, the number of rows, got {b}")
    excess = min(max(squared_norm, 1.0), float(n)) - 1.0
    return 1.0 + (b - 1) * excess / (n - 1) if b > 1 else 1.0


def unit_norm(matrix: RowMatrix) -> float:
    """Return the squared spectral norm of the rows divided by their norms, slightly from below."""
    squares = matrix.squares()
    scale = np.zeros(len(squares))
    live = squares > 0.0
    scale[live] = squares[live] ** -0.5
    return _power(matrix, scale, 1e-3, 0, signed=True)[0]


def _power(
    matrix: RowMatrix, scale: Array, tolerance: float, seed: int, *, signed: bool
) -> tuple[float, float]:
    """Bound the squared norm of the scaled rows; no upper bound if some values are negative."""
    n = len(scale)
    u = np.random.default_rng(seed).uniform(0.5, 1.5, size=matrix.columns)
    scores = np.empty(n)
    low, high = 0.0, math.inf
    for iteration in range(MAX_ITERATIONS):
        u /= np.linalg.norm(u)
        matrix.scores(u, 1, False, 0, n, scores)
        image = np.zeros(matrix.columns)
        matrix.combine_rows(scores * scale * scale, 1, False, 0, n, image)
        last, low = low, max(low, float(u @ image))
        if low == 0.0:
            break
        if signed:
            if iteration >= MIN_ITERATIONS and low <= last * (1.0 + 0.01 * tolerance):
                break
            u = image
        else:
            high = min(high, float((image / u).max()))
            if high <= low * (1.0 + tolerance):
                break
            u = np.maximum(image, TINY * image.max())
    return low, high


def _eigenvalue(X: Any) -> float:
    """Return the squared norm, from the smaller of the two Gram matrices."""
    gram = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
    dense = gram.toarray() if hasattr(gram, "toarray") else gram
    return float(np.linalg.eigvalsh(np.asarray(dense, dtype=float))[-1])
