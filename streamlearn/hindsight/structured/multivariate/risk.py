"""The risk of a linear model with a loss of all its scores: f = X w ([Teo07] section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import RowRisk, Vector
    from streamlearn.hindsight.structured.multivariate.loss import LabeledLoss


class MultivariateRisk:
    """The loss of the scores of `rows`, as a function of w."""

    def __init__(self, rows: RowRisk, loss: LabeledLoss) -> None:
        self.rows = rows
        self.loss = loss
        self.size = rows.size

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the loss at w, and a subgradient there."""
        value, slope = self.loss.value_and_slope(self.rows.scores(w))
        return value, self.rows.combine_rows(slope)
