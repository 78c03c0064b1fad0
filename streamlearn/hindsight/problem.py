"""The problem a solver solves: min over w of J(w) = risk(w) + Psi(w) ([Teo07] (1)).

w is flat: the weight of feature j for output k is w[j K + k], as in the engine. The intercepts,
which are not penalized, come last.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse

from streamlearn.core.integers import integer
from streamlearn.engine.rows import as_floats, canonical, reject_nonfinite
from streamlearn.estimators import frames
from streamlearn.hindsight.bounds import minus_conjugate
from streamlearn.hindsight.executor import Threads
from streamlearn.hindsight.labels import encoded_labels
from streamlearn.hindsight.passes import RowMatrix
from streamlearn.hindsight.row_shard import RowShard
from streamlearn.hindsight.sharded_risk import LocalRowRisk, RowRisk, ShardedRisk
from streamlearn.losses import Loss, MulticlassHinge, VectorLoss
from streamlearn.penalties import Penalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.hindsight.risk import Risk, Vector


class Objective:
    """Any convex risk and a penalty: all that methods need that do not use rows.

    The last `intercepts` numbers of w are not penalized. The risk may have a linear part,
    <linear, w>. `lowest` is a lower bound on the rest of it, `known_bound` one on the objective.
    """

    def __init__(
        self, risk: Risk, penalty: Penalty, *, lowest: float = 0.0, intercepts: int = 0
    ) -> None:
        if not isinstance(penalty, Penalty):
            raise ValueError(f"{penalty!r} is not a penalty; use one of streamlearn.penalties")
        if not math.isfinite(lowest):
            raise ValueError(f"lowest is {lowest!r}; it must be a finite number")
        self.risk = risk
        self.penalty = penalty
        self.lowest = lowest
        self.linear: Vector = np.zeros(risk.size)
        self.known_bound = lowest  # Psi is >= 0
        self.size = risk.size
        self.intercepts = intercepts

    @property
    def fit_intercept(self) -> bool:
        """Whether there is an unpenalized intercept."""
        return self.intercepts > 0

    def penalized(self, w: Vector) -> Vector:
        """Return the penalized part of w, as a view."""
        return w[: self.size - self.intercepts]

    def objective(self, w: Vector) -> float:
        """Return J(w)."""
        return self.risk.value_and_gradient(w)[0] + self.penalty.value(self.penalized(w))

    def start(self, start: Any = None) -> Vector:
        """Return a new flat w to start from: zeros, or a copy of `start`."""
        if start is None:
            return np.zeros(self.size)
        w = np.array(start, dtype=float)
        if w.shape != (self.size,) or not np.isfinite(w).all():
            raise ValueError(f"start must be {self.size} finite numbers, got shape {w.shape}")
        return w

    def split(self, w: Vector) -> tuple[Array, Any]:
        """Return the weights and the intercept of a flat w, as users see them."""
        intercepts: Array = w[self.size - self.intercepts :].copy()
        return self.penalized(w).copy(), float(intercepts[0]) if len(intercepts) == 1 else 0.0


class LinearProblem(Objective):
    """A linear model's risk and penalty: a loss of the scores of rows, wherever they are.

    labels: those of the outputs, or of two classes, the positive one last. has_rows: whether they
    are in this process, so that a method can use them one by one.
    """

    has_rows: ClassVar[bool] = False
    risk: ShardedRisk[Any]

    def __init__(
        self,
        risk: ShardedRisk[Any],
        loss: AnyLoss,
        penalty: Penalty,
        *,
        features: int,
        outputs: int,
        labels: list[Any],
        lowest: float = 0.0,
        fit_intercept: bool = False,
    ) -> None:
        super().__init__(risk, penalty, lowest=lowest, intercepts=outputs if fit_intercept else 0)
        self.loss = loss
        self.features = features
        self.outputs = outputs
        self.labels = labels

    def start(self, start: Any = None) -> Vector:
        """Return a flat w from a Solution, from weights with or without intercepts, or zeros.

        Weights of fewer features or classes than the problem has are padded with zeros.
        """
        if start is None:
            return np.zeros(self.size)
        weights = np.asarray(getattr(start, "w", start), dtype=float)
        if self.intercepts and weights.shape == (self.size,) and not hasattr(start, "intercept"):
            return super().start(weights)
        wide = weights.T
        if weights.ndim == 1 and len(weights) % self.outputs == 0:
            wide = weights.reshape(-1, self.outputs)
        places = self._places(start, wide.shape[-1]) if wide.ndim == 2 else None
        if places is None or len(wide) > self.features:
            raise ValueError(
                f"start has weights of shape {weights.shape}; the problem has {self.features} "
                f"features and {self.outputs} outputs"
            )
        full = np.zeros((self.features + (self.intercepts > 0), self.outputs))
        full[: len(wide), places] = wide
        if self.intercepts:
            full[-1, places] = getattr(start, "intercept", 0.0)
        return super().start(full.ravel())

    def _places(self, start: Any, outputs: int) -> NDArray[np.intp] | None:
        """Return the outputs here that match those of `start`, or None if it has too many."""
        labels = getattr(start, "labels", [])
        if self.labels and len(labels) == outputs > 1 and set(labels) <= set(self.labels):
            return np.array([self.labels.index(label) for label in labels], dtype=np.intp)
        return np.arange(outputs) if outputs <= self.outputs else None

    def split(self, w: Vector) -> tuple[Array, Any]:
        """Return the weights (K x n with K outputs) and the intercept of a flat w."""
        if self.outputs == 1 and not isinstance(self.loss, VectorLoss):
            return super().split(w)
        weights = self.penalized(w).reshape(self.features, self.outputs).T
        intercepts = w[len(w) - self.intercepts :] if self.intercepts else np.zeros(self.outputs)
        return np.ascontiguousarray(weights), intercepts.copy()


class RowProblem(LinearProblem):
    """A linear model's weighted mean of a loss over rows, wherever they are."""

    risk: RowRisk
    loss: Loss | VectorLoss


class Problem(RowProblem):
    """The weighted mean of a loss over rows, and a penalty, validated once.

    X: the rows as scipy CSR or a C-order array. y: codes (-1 and +1, the index of a class, or
    numbers). labels: the labels of the codes. weights: each row's share of the mean.
    """

    has_rows: ClassVar[bool] = True
    risk: LocalRowRisk

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: Loss | VectorLoss,
        penalty: Penalty,
        *,
        weights: Any = None,
        fit_intercept: bool = False,
        threads: int = 1,
        outputs: int | None = None,
        linear: Vector | None = None,
    ) -> None:
        """`outputs`: set only if X and y are already validated CSR rows and codes.

        `linear`: the gradient of a linear part of the risk; 0 at intercepts.
        """
        require_loss(loss)
        self.X = checked_matrix(X) if outputs is None else X
        self.rows, features = self.X.shape
        self.y: Array = y
        labels: list[Any] = []
        if outputs is None:
            self.y, labels = encoded_labels(y, self.rows, loss)
            loss = bound_loss(loss, labels)
            outputs = outputs_of(loss, labels, self.y.shape[1] if self.y.ndim == 2 else 0)
        self.weights = normalized_weights(weights, self.rows)
        shards = row_shards(
            self.X,
            self.y,
            loss,
            self.weights,
            outputs,
            fit_intercept=fit_intercept,
            threads=threads,
        )
        self.matrix = shards.shards[0].matrix
        super().__init__(
            LocalRowRisk(shards, linear),
            loss,
            penalty,
            features=features,
            outputs=outputs,
            labels=labels,
            lowest=sum(shards.each(RowShard.lowest)),
            fit_intercept=fit_intercept,
        )
        if linear is not None:
            self.linear = linear
            self.known_bound += minus_conjugate(penalty, self.penalized(linear))


def row_shards(
    X: Any,
    y: Array,
    loss: Loss | VectorLoss,
    weights: Vector,
    outputs: int,
    *,
    fit_intercept: bool,
    threads: int,
) -> Threads[RowShard]:
    """Split validated rows among threads."""
    matrix = RowMatrix(X)
    return Threads(
        [
            RowShard(
                matrix,
                y,
                loss,
                weights,
                outputs,
                fit_intercept=bool(fit_intercept),
                start=start,
                stop=stop,
            )
            for start, stop in itertools.pairwise([0, *shard_ends(X, threads)])
        ]
    )


def require_loss(loss: object) -> None:
    """Raise ValueError if this is no loss of single rows."""
    if not isinstance(loss, Loss | VectorLoss):
        raise ValueError(f"{loss!r} is not a loss; use one of streamlearn.losses")


def bound_loss(loss: Loss | VectorLoss, labels: list[Any]) -> Loss | VectorLoss:
    """Return the loss with the costs of these labels, if it has costs."""
    return loss.bound(labels) if isinstance(loss, MulticlassHinge) else loss


def outputs_of(loss: Loss | VectorLoss, labels: list[Any], targets: int) -> int:
    """Return the number of scores that a row has."""
    return max(loss.outputs, targets or len(labels)) if isinstance(loss, VectorLoss) else 1


def checked_matrix(X: Any) -> Any:
    """Return X as canonical CSR or a C-order array of finite floats, without a copy if possible."""
    X = frames.matrix(X)
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(
            f"X has {X.shape[0]} rows and {X.shape[1]} columns; give at least one row and one "
            "column"
        )
    if not hasattr(X, "indptr") and not hasattr(X, "tocsr"):
        dense = np.ascontiguousarray(as_floats(X))
        reject_nonfinite(dense, dense)
        return dense
    X = canonical(X if X.format == "csr" else X.tocsr())
    data = np.ascontiguousarray(as_floats(X.data))
    index = X.indices if X.indices.dtype == np.int32 else X.indices.astype(np.int64, copy=False)
    reject_nonfinite(X, data)
    if data is X.data and index is X.indices:
        return X
    return scipy.sparse.csr_array((data, np.ascontiguousarray(index), X.indptr), shape=X.shape)


def normalized_weights(weights: Any, m: int) -> Vector:
    """Return the weights of m rows divided by their sum."""
    if weights is None:
        return np.full(m, 1.0 / m)
    w = np.array(weights, dtype=float)
    if w.shape != (m,):
        raise ValueError(f"weights must have one number for each of {m} rows, got {w.shape}")
    if not (np.isfinite(w).all() and (w >= 0.0).all()):
        raise ValueError("weights must be >= 0 and finite")
    top = float(w.max())
    if top == 0.0:
        raise ValueError("weights are all 0; give at least one row a weight > 0")
    w /= top  # their sum could overflow
    result: Vector = w / w.sum()
    return result


def shard_ends(X: Any, shards: Any) -> list[int]:
    """Return the end rows of shards with about the same number of entries."""
    m = X.shape[0]
    shards = integer("threads", shards, 1)
    before = getattr(X, "indptr", np.arange(m + 1) * X.shape[1])
    aims = np.arange(1, shards) * (int(before[-1]) / shards)
    inner = np.searchsorted(before, aims, side="left").tolist()
    return [*(end for end in sorted(set(inner)) if 0 < end < m), m]
