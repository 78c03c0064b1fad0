"""A learner in a comparison: what is known of it at the moment of a solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamlearn.core.arrays import Array


@dataclass(frozen=True)
class FixedModel:
    """Fixed weights, in the form that solvers accept as a start."""

    w: Array
    intercept: Any


@dataclass
class ComparedLearner:
    """A learner in a comparison, and what is known at the moment of a solve."""

    objective: float
    progressive_loss: float
    stderr: float  # of the objective
    exact: bool
    events: float
    weight: float
    positions: Array  # of sampled events
    cells: Array  # of the scores there
    slopes: Array  # of the losses there
    cell_weights: Array  # of all events
    gradient: Array | None  # see `ProgressiveSums.gradient_sum`
    candidate: FixedModel | None

    def places_of(self, positions: Array) -> NDArray[np.intp] | None:
        """Return where these positions are among those here; None if some are not."""
        at = np.searchsorted(self.positions, positions)
        if at.max(initial=0) >= len(self.positions):
            return None
        return at if np.array_equal(self.positions[at], positions) else None
