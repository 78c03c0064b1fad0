"""A learner in a comparison: what is known of it at the moment of a solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.regret.comparator import Sample


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
    losses: Array  # there, weighted
    candidate: FixedModel | None

    def losses_of(self, sample: Sample) -> Array | None:
        """Return the losses of the rows of a sample; None if some are unknown."""
        at = np.searchsorted(self.positions, sample.positions)
        if not len(self.positions) or at.max(initial=0) >= len(self.positions):
            return None
        losses = self.losses[at].astype(float)
        known = np.array_equal(self.positions[at], sample.positions) and np.isfinite(losses).all()
        return losses if known else None
