"""A learner in a comparison: what is known of it at the moment of a solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.regret.strata import Strata

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
    cells: Array  # of the scores there
    cell_weights: Array  # of all events
    candidate: FixedModel | None

    def strata_of(self, sample: Sample) -> Strata | None:
        """Return the strata of the rows of a sample; None if it was not given some of them."""
        at = np.searchsorted(self.positions, sample.positions)
        if at.max(initial=0) >= len(self.positions):
            return None
        if not np.array_equal(self.positions[at], sample.positions):
            return None
        return Strata(self.cells[at], sample.weights, self.cell_weights)
