"""The empirical risk as solvers see it ([Teo07] section 4 and Figure 2).

A solver passes w and gets (value, gradient); it never sees the data, which may be in shards that
threads or other machines hold.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]


class Risk(Protocol):
    """A convex function of w: the interface that solvers need."""

    @property
    def size(self) -> int:
        """The length of w."""

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the value at w and a subgradient there, in a new array."""
