"""The cutting planes of a risk: R(w) >= <a_i, w> + b_i for all i ([Teo07] (6)).

w consists of the penalized coordinates and the unpenalized intercepts, which come last. The first
plane is <linear, w> + lowest: the linear part of the risk, and the mean of the losses' minima.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamlearn.hindsight.inner import inner

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector

# planes without weight in this many solutions are dropped, if there are more than KEPT
IDLE = 30
KEPT = 60


class Planes:
    """The slopes a_i (the rows of A), the slopes in the intercepts, the offsets b_i, and A A'."""

    def __init__(self, linear: Vector, intercepts: int, lowest: float) -> None:
        self.width = len(linear) - intercepts
        self.count = 0
        self._A = np.empty((16, self.width))
        self._C = np.empty((16, intercepts))
        self._b = np.empty(16)
        self._products = np.empty((16, 16))
        self._idle = np.zeros(16, dtype=np.intp)
        self._append(linear, lowest)

    @property
    def slopes(self) -> Vector:
        """The slopes in the penalized coordinates, one row per plane."""
        return self._A[: self.count]

    @property
    def free_slopes(self) -> Vector:
        """The slopes in the intercepts."""
        return self._C[: self.count]

    @property
    def offsets(self) -> Vector:
        """The offsets."""
        return self._b[: self.count]

    @property
    def products(self) -> Vector:
        """A A'."""
        return self._products[: self.count, : self.count]

    @property
    def intercept_unit(self) -> float:
        """The ratio of squared slopes in the intercepts to those in the other coordinates.

        Distances of intercepts are scaled by it; 1 where nothing is known.
        """
        own, others = float((self.free_slopes**2).sum()), float(np.diagonal(self.products).sum())
        ratio = own / others if own > 0.0 and others > 0.0 else 1.0
        return min(max(ratio, 1e-15), 1e15)

    def add(self, w: Vector, value: float, gradient: Vector) -> None:
        """Add the first-order Taylor expansion at w ([Teo07] (3))."""
        self._append(gradient, value - inner(gradient, w))

    def value_at(self, w: Vector) -> float:
        """Return R_i(w), the maximum of all planes ([Teo07] (7))."""
        return float(
            (
                self.slopes @ w[: self.width] + self.free_slopes @ w[self.width :] + self.offsets
            ).max()
        )

    def prune(self, *alphas: Vector) -> list[Vector]:
        """Drop planes long without weight, if there are many; return the `alphas` without them.

        The maximum of the dual, and so the lower bound, does not change: its alpha stays feasible.
        """
        idle = self._idle[: self.count]
        idle += 1
        for alpha in alphas:
            idle[alpha > 0.0] = 0
        if self.count <= KEPT or idle.max() <= IDLE:
            return list(alphas)
        stay = idle <= IDLE
        stay[0] = True  # the first plane makes every bound finite
        chosen = np.flatnonzero(stay)
        n = len(chosen)
        self._A[:n] = self._A[chosen]
        self._C[:n] = self._C[chosen]
        self._b[:n] = self._b[chosen]
        self._idle[:n] = self._idle[chosen]
        self._products[:n, :n] = self._products[np.ix_(chosen, chosen)]
        self.count = n
        return [alpha[chosen] for alpha in alphas]

    def _append(self, gradient: Vector, offset: float) -> None:
        n = self.count
        if n == len(self._b):
            self._grow()
        self._A[n], self._C[n] = gradient[: self.width], gradient[self.width :]
        self._b[n] = offset
        self._idle[n] = 0
        self.count = n + 1
        self._products[n, : n + 1] = self.slopes @ self._A[n]
        self._products[: n + 1, n] = self._products[n, : n + 1]

    def _grow(self) -> None:
        n = len(self._b)
        self._A = np.concatenate([self._A, np.empty_like(self._A)])
        self._C = np.concatenate([self._C, np.empty_like(self._C)])
        self._b = np.concatenate([self._b, np.empty(n)])
        self._idle = np.concatenate([self._idle, np.zeros(n, dtype=np.intp)])
        self._products = np.pad(self._products, (0, n))
