"""The problem of shards, behind the interface of a problem of rows in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from streamlearn.hindsight.problem import LinearProblem, RowProblem, require_loss
from streamlearn.hindsight.row_shard import RowShard
from streamlearn.hindsight.sharded.agreement import agree
from streamlearn.hindsight.sharded_risk import RowRisk, ShardedRisk
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamlearn.hindsight.executor import Executor
    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.hindsight.sharded.agreement import Agreements, Survey
    from streamlearn.hindsight.sharded.data import ShardSource
    from streamlearn.hindsight.sharded.host import Host
    from streamlearn.penalties import Penalty


@dataclass(frozen=True)
class LoadedShards:
    """Shards that are loaded and agree: their problem, and the names of its columns, if any."""

    problem: LinearProblem
    names: list[Hashable] | None
    surveys: list[Survey]

    @property
    def rows(self) -> int:
        """The number of rows in all shards."""
        return sum(one.rows for one in self.surveys)


def load_shards(
    sources: Sequence[ShardSource],
    loss: AnyLoss,
    penalty: Penalty,
    host: Host,
    *,
    fit_intercept: bool = False,
) -> LoadedShards:
    """Load the shards, and build their problem."""
    if not sources:
        raise ValueError("shards is empty; give at least one")
    if not isinstance(loss, MultivariateLoss):
        require_loss(loss)
    surveys = host.load(sources, loss)
    found = agree(surveys, loss, fit_intercept=fit_intercept)
    problem = sharded_problem(host.bind(found), found, penalty)
    return LoadedShards(problem, found.names, surveys)


def sharded_problem(
    executor: Executor[Any], agreements: Agreements, penalty: Penalty
) -> LinearProblem:
    """Return the problem of shards that are ready to compute."""
    common = agreements.common
    size = (common.columns + common.fit_intercept) * common.outputs
    shape: dict[str, Any] = {
        "features": common.columns,
        "outputs": common.outputs,
        "fit_intercept": common.fit_intercept,
    }
    if isinstance(common.loss, MultivariateLoss):
        risk: ShardedRisk[Any] = ShardedRisk(executor, size)
        return LinearProblem(risk, common.loss, penalty, labels=common.loss.labels, **shape)
    rows = cast("Executor[RowShard]", executor)
    return RowProblem(
        RowRisk(rows, size),
        common.loss,
        penalty,
        labels=common.labels,
        lowest=sum(rows.each(RowShard.lowest)),
        **shape,
    )
