"""The problem of a linear model with a loss of all its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.executor import Threads
from streamlearn.hindsight.problem import LinearProblem, checked_matrix, row_shards
from streamlearn.hindsight.sharded_risk import LocalRowRisk, ShardedRisk
from streamlearn.hindsight.structured.multivariate.risk import MultivariateRisk
from streamlearn.losses import MultiSquared, Squared

if TYPE_CHECKING:
    from streamlearn.hindsight.scored_shard import ScoredShard
    from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss
    from streamlearn.penalties import Penalty


class MultivariateProblem(LinearProblem):
    """Rows, their labels, a loss of all scores and a penalty, validated once."""

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
        X = checked_matrix(X)
        if len(y) != X.shape[0]:
            raise ValueError(f"y must have one label for each of {X.shape[0]} rows, got {len(y)}")
        self.labeled_loss = loss.bind(y, groups, weights)
        rows = multivariate_rows(X, loss, fit_intercept=fit_intercept, threads=threads)
        shards: list[ScoredShard] = [MultivariateRisk(rows, self.labeled_loss)]
        super().__init__(
            ShardedRisk(Threads(shards), rows.size),
            loss,
            penalty,
            features=X.shape[1],
            outputs=loss.outputs,
            labels=loss.labels,
            fit_intercept=fit_intercept,
        )


def multivariate_rows(
    X: Any, loss: MultivariateLoss, *, fit_intercept: bool, threads: int = 1
) -> LocalRowRisk:
    """Return rows that compute the scores and the gradients of a loss of all scores."""
    m, outputs = X.shape[0], loss.outputs
    # a loss of single rows that is not used
    placeholder, y = (
        (MultiSquared(), np.zeros((m, outputs))) if outputs > 1 else (Squared(), np.zeros(m))
    )
    return LocalRowRisk(
        row_shards(
            X, y, placeholder, np.zeros(m), outputs, fit_intercept=fit_intercept, threads=threads
        )
    )
