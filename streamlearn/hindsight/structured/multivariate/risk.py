"""The risk of a linear model with a loss of all its scores: f = X w ([Teo07] section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.hindsight.scored_shard import ScoredShard

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.sharded_risk import LocalRowRisk
    from streamlearn.hindsight.structured.multivariate.loss import LabeledLoss


class MultivariateRisk(ScoredShard):
    """The loss of the scores of `rows`, as a function of w; `share` is its part of a mean."""

    def __init__(self, rows: LocalRowRisk, loss: LabeledLoss, share: float = 1.0) -> None:
        super().__init__(rows.size)
        self.rows = rows
        self.loss = loss
        self.share = share

    def scores(self, w: Vector) -> Vector:
        """Return the score of every row."""
        return self.rows.scores(w)

    def combine_rows(self, slopes: Vector) -> Vector:
        """Return the sum of slope_i x_i."""
        return self.rows.combine_rows(slopes)

    def value_and_slope(self, scores: Vector) -> tuple[float, Vector]:
        """Return the loss of the scores, and a subgradient in them."""
        value, slope = self.loss.value_and_slope(scores)
        return (value, slope) if self.share == 1.0 else (self.share * value, self.share * slope)
