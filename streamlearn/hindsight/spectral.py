"""The spectral norm of the rows, and what it says of mini-batches: 002 (10), (11) and Theorem 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.hindsight.passes import RowMatrix
from streamlearn.hindsight.problem import checked_matrix

if TYPE_CHECKING:
    from streamlearn.estimators.frames import Array

MAX_ITERATIONS = 200
MIN_ITERATIONS = 10  # turns before a rise that slows down is believed
SMALL = 256  # up to so many columns the eigenvalues themselves are cheap
TINY = 1e-150  # keeps a weight of the iteration > 0
SAFETY = 1.0 + 1e-9  # for the rounding of the sums


@dataclass(frozen=True)
class SpectralBound:
    """002 (10): sigma^2 = |X|^2 / (n r^2), with the spectral norm |X| and r = max |x_i|.

    `sigma2` is certified from above, `sigma2_lower_bound` from below; 1/n <= sigma^2 <= 1.
    """

    rows: int
    radius: float
    sigma2: float
    sigma2_lower_bound: float

    def beta(self, b: int) -> float:
        """beta_b of 002 (11): from 1, when batches of b gain all they can, to b, when nothing."""
        return beta(b, self.rows, self.rows * self.sigma2)

    def speedup(self, b: int) -> float:
        """How many times fewer iterations batches of b need, by 002's theorems: b / beta_b."""
        return b / self.beta(b)


def spectral_bound(X: Any, *, tolerance: float = 1e-3, seed: int = 0) -> SpectralBound:
    """How much mini-batches of the rows of X can gain.

    Power iteration bounds sigma^2 from below. From above it is bounded by the eigenvalues, if X
    has few rows or columns; else by Collatz and Wielandt's quotients on the absolute values (sharp
    where no value is negative); and by the sum of squares. It ends when the two bounds are within
    `tolerance`, or no longer worth the passes over X.

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
        raise ValueError("the rows of X are so long that their squares overflow: scale X")
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
    """002 (11) for n rows of length <= 1; squared_norm is n sigma^2."""
    if not 1 <= b <= n:
        raise ValueError(f"a batch has 1 to {n} rows, not {b}")
    excess = min(max(squared_norm, 1.0), float(n)) - 1.0
    return 1.0 + (b - 1) * excess / (n - 1) if b > 1 else 1.0


def unit_norm(matrix: RowMatrix, *, tolerance: float = 1e-3, seed: int = 0) -> float:
    """The squared spectral norm of the rows divided by their lengths, nearly: from below."""
    squares = matrix.squares()
    scale = np.zeros(len(squares))
    live = squares > 0.0
    scale[live] = squares[live] ** -0.5
    return _power(matrix, scale, tolerance, seed, signed=True)[0]


def _power(
    matrix: RowMatrix, scale: Array, tolerance: float, seed: int, *, signed: bool
) -> tuple[float, float]:
    """Bounds of the squared norm of the scaled rows; no upper one if some values are negative."""
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
    """The squared norm, from the smaller of the two Gram matrices."""
    gram = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
    dense = gram.toarray() if hasattr(gram, "toarray") else gram
    return float(np.linalg.eigvalsh(np.asarray(dense, dtype=float))[-1])
