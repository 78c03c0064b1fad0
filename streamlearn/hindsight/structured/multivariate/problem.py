"""The problem of a linear model with a loss of all its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.problem import Objective, Problem
from streamlearn.hindsight.structured.multivariate.risk import MultivariateRisk
from streamlearn.losses import MultiSquared, Squared

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss
    from streamlearn.penalties import Penalty


class MultivariateProblem(Objective):
    """Rows, their labels, a loss of all scores and a penalty, validated once.

    `data`, an ordinary problem, holds the rows and computes scores and gradients.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: MultivariateLoss,
        penalty: Penalty,
        *,
        groups: Any = None,
        weights: Any = None,
        fit_intercept: bool = False,
        threads: int = 1,
    ) -> None:
        several = loss.outputs > 1
        zeros = np.zeros((len(y), loss.outputs) if several else len(y))
        self.data = Problem(
            X,
            zeros,
            MultiSquared() if several else Squared(),
            penalty,
            fit_intercept=fit_intercept,
            threads=threads,
        )
        self.loss = loss
        self.labels = loss.labels
        self.labeled_loss = loss.bind(y, groups, weights)
        risk = MultivariateRisk(self.data.row_risk, self.labeled_loss)
        super().__init__(risk, penalty, lowest=0.0, intercepts=self.data.intercepts)

    def start(self, start: Any = None) -> Vector:
        """Return a flat w from a Solution, from weights with or without intercepts, or zeros."""
        return self.data.start(start)

    def split(self, w: Vector) -> tuple[Array, Any]:
        """Return the weights (K x n with K outputs) and the intercept of a flat w."""
        return self.data.split(w)
