"""The best fixed model of all events of a stream that are in shards, whatever memory they take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse

from streamlearn.hindsight.auto import auto
from streamlearn.hindsight.labels import codes_of
from streamlearn.hindsight.sharded.problem import load_shards
from streamlearn.regret.comparator import Budget, Minimum, minimum_of, scaled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.hindsight.sharded import Host, ShardData, ShardSource
    from streamlearn.losses import Loss, VectorLoss
    from streamlearn.regret.comparator import ComparatorTask

SAME = 1e-9  # relative difference of the sums of weights, from their order


@dataclass(frozen=True)
class LearnedShard:
    """The rows of a shard as a learner got them.

    labels: of a classifier, in the order of its codes. factors: its weights by label.
    has_intercept: whether column 0 is an intercept inside the penalty.
    """

    source: ShardSource
    labels: Sequence[Any]
    factors: Mapping[Any, float]
    has_intercept: bool

    @property
    def name(self) -> str:
        """The name of the shard."""
        return self.source.name

    def load(self, loss: AnyLoss) -> ShardData:
        """Read the rows."""
        data = self.source.load(loss)
        y, weights = data.y, np.ones(len(data.y)) if data.weights is None else data.weights
        X = scipy.sparse.csr_array(data.X)
        if self.factors:
            weights = weights * [self.factors.get(label, 1.0) for label in y.tolist()]
            used = weights > 0.0
            X, y, weights = X[used], y[used], weights[used]
        if self.has_intercept:
            X = with_intercept(X)
        if self.labels:
            y = self._codes(y.tolist(), cast("Loss | VectorLoss", loss))
        return replace(data, X=X, y=y, weights=weights, names=None)

    def _codes(self, y: list[Any], loss: Loss | VectorLoss) -> Array:
        known = codes_of(self.labels, loss)
        unknown = next((label for label in y if label not in known), None)
        if unknown is not None:
            raise ValueError(f"{self.name} has the label {unknown!r}, which was not learned")
        return np.array([known[label] for label in y])


def with_intercept(X: Any) -> Any:
    """Return CSR rows with a 1 in a new column 0.

    >>> with_intercept(scipy.sparse.csr_array([[0.0, 5.0], [0.0, 0.0]])).toarray().tolist()
    [[1.0, 0.0, 5.0], [1.0, 0.0, 0.0]]
    """
    rows, columns = X.shape
    first = X.indptr[:-1]
    index = np.insert(X.indices + 1, first, 0)
    values = np.insert(X.data, first, 1.0)
    return scipy.sparse.csr_array(
        (values, index, X.indptr + np.arange(rows + 1, dtype=X.indptr.dtype)),
        shape=(rows, columns + 1),
    )


def minimize_shards(
    shards: Sequence[ShardSource],
    task: ComparatorTask,
    start: Minimum | None,
    *,
    host: Host,
    events: float,
    weight: float,
    gap: float,
    seconds: float,
) -> Minimum:
    """Solve for the best fixed model of all events, so many with this sum of weights."""
    penalty = scaled(task.charge(events), events / weight)
    loaded = load_shards(shards, task.loss, penalty, host, fit_intercept=task.intercept == "free")
    found = sum(one.weight for one in loaded.surveys)
    if loaded.rows != events or not abs(found - weight) <= SAME * weight:
        raise ValueError(
            f"the shards have {loaded.rows:,} labeled events of weight {found:g}, but "
            f"{events:,.0f} of weight {weight:g} were learned; data must not change meanwhile"
        )
    budget = Budget(seconds)  # from now on: loading is not counted
    solution = auto(
        loaded.problem,
        gap=gap,
        start=None if start is None else start.solution,
        callback=lambda _: budget.spent(),
    )
    return minimum_of(solution, int(events), weight, budget)
