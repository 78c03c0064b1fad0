"""A shard: loads its rows, surveys them, and computes its part of the risk as agreed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from streamlearn.hindsight.labels import distinct_labels, encoded
from streamlearn.hindsight.passes import RowMatrix
from streamlearn.hindsight.problem import checked_matrix, normalized_weights
from streamlearn.hindsight.row_shard import RowShard
from streamlearn.hindsight.sharded.agreement import Survey
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss
from streamlearn.hindsight.structured.multivariate.problem import multivariate_rows
from streamlearn.hindsight.structured.multivariate.risk import MultivariateRisk

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.hindsight.scored_shard import ScoredShard
    from streamlearn.hindsight.sharded.agreement import Agreement
    from streamlearn.hindsight.sharded.data import ShardData, ShardSource


class Shard:
    """A shard of a source, for one loss; loaded when it is first needed."""

    def __init__(self, source: ShardSource, loss: AnyLoss) -> None:
        self.source = source
        self.loss = loss
        self._loaded: ShardData | None = None

    def survey(self) -> Survey:
        """Load the rows, and return what is in them."""
        data = self._load()
        rows = data.X.shape[0]
        try:
            weight, labels, targets, groups = self._contents(data, rows)
        except ValueError as error:
            raise ValueError(f"{self.source.name}: {error}") from None
        return Survey(
            name=self.source.name,
            rows=rows,
            columns=data.X.shape[1],
            weight=weight,
            labels=labels,
            positive_seen=data.positive_seen,
            targets=targets,
            names=data.names,
            groups=groups,
            types=data.types,
            buckets=data.buckets,
            invalid=data.invalid,
            examples=data.examples,
            checksum=checksum(data),
        )

    def bind(self, agreement: Agreement) -> ScoredShard:
        """Return the shard's part of the risk; its source's data are released."""
        data = self._load()
        if checksum(data) != agreement.checksum:
            raise ValueError(
                f"{self.source.name} was read again and is not the same; data must not change "
                "while they are solved"
            )
        self._loaded = None
        X = placed(data.X, agreement)
        try:
            return self._bound(X, data, agreement)
        except ValueError as error:
            raise ValueError(f"{self.source.name}: {error}") from None

    def _load(self) -> ShardData:
        if self._loaded is None:
            self._loaded = self.source.load(self.loss)
        return self._loaded

    def _contents(
        self, data: ShardData, rows: int
    ) -> tuple[float, list[Any], int, frozenset[Any] | None]:
        if not rows:
            return 0.0, [], 0, None
        checked_matrix(data.X)
        weight = float(rows) if data.weights is None else float(np.sum(data.weights))
        if data.weights is not None:
            normalized_weights(data.weights, rows)
        if not isinstance(self.loss, MultivariateLoss):
            if data.groups is not None:
                raise ValueError(
                    f"groups: {self.loss!r} is a loss of single rows; leave groups out"
                )
            labels = distinct_labels(data.y, rows, self.loss)
            targets = np.shape(data.y)[1] if np.ndim(data.y) == 2 else 0
            return weight, labels, targets, None
        if len(data.y) != rows:
            raise ValueError(f"y must have one label for each of {rows} rows, got {len(data.y)}")
        self.loss.bind(data.y, data.groups, data.weights)
        groups = None if data.groups is None else frozenset(np.asarray(data.groups).tolist())
        if groups is not None:
            weight = float(len(groups))
        labels = np.unique(np.asarray(data.y)).tolist() if self.loss.kind == "binary" else []
        return weight, labels, 0, groups

    def _bound(self, X: Any, data: ShardData, agreement: Agreement) -> ScoredShard:
        loss = agreement.loss
        rows = X.shape[0]
        if not isinstance(loss, MultivariateLoss):
            return RowShard(
                RowMatrix(X),
                encoded(data.y, rows, loss, agreement.labels),
                loss,
                agreement.share * normalized_weights(data.weights, rows),
                agreement.outputs,
                fit_intercept=agreement.fit_intercept,
            )
        y = data.y
        if loss.kind == "binary":  # a shard may lack one of the labels
            if len(agreement.labels) > 2:
                raise ValueError(f"{loss!r} supports two labels, not {agreement.labels[:4]}...")
            positive = agreement.labels[-1] if len(agreement.labels) == 2 else 1.0
            y = np.asarray(y) == positive
        labeled = loss.bind(y, data.groups, data.weights)
        held = multivariate_rows(X, loss, fit_intercept=agreement.fit_intercept)
        return MultivariateRisk(held, labeled, agreement.share)


def placed(X: Any, agreement: Agreement) -> Any:
    """Return checked rows with the columns of all shards."""
    X = checked_matrix(X)
    if not hasattr(X, "indptr"):
        if X.shape[1] != agreement.columns:
            raise ValueError(
                f"a shard has {X.shape[1]} columns, but others have {agreement.columns}"
            )
        return X
    index = X.indices
    if agreement.places is not None and len(agreement.places):
        index = agreement.places[index]
    shape = (X.shape[0], agreement.columns)
    return scipy.sparse.csr_array((X.data, index, X.indptr), shape=shape)


def checksum(data: ShardData) -> int:
    """Return a checksum of features, labels and weights."""
    X = data.X
    parts: list[Any] = [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]
    parts += [] if data.weights is None else [data.weights]
    found = zlib.crc32(repr(np.shape(X)).encode())
    for part in parts:
        found = zlib.crc32(np.ascontiguousarray(part).data, found)
    y: Array = np.asarray(data.y)
    return zlib.crc32(repr(y.tolist()).encode() if y.dtype == object else y.tobytes(), found)
