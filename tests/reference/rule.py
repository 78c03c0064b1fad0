"""What every rule has in common: the mini-batch gradient ([Takac13] section 3) and the count t."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .losses import Loss
from .penalties import Penalty

Vector = NDArray[np.float64]


class Rule:
    """`w` predicts the next event; `step` learns from one mini-batch of k >= 1 rows.

    Rows of weight 0 are as if they had never come: they are not counted in k, and a batch
    without any other row does not advance t.
    """

    w: Vector
    batches = True  # whether it learns mini-batches

    def __init__(self, n: int, loss: Loss, penalty: Penalty) -> None:
        self.n = n
        self.loss = loss
        self.penalty = penalty
        self.t = 0
        self.w = penalty.start(n)

    @property
    def query(self) -> Vector:
        """The point at which the slopes of the next step are taken."""
        return self.w

    def step(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> None:
        rows = np.atleast_2d(np.asarray(X, dtype=float))
        labels = np.atleast_1d(np.asarray(y, dtype=float))
        given = 1.0 if weight is None else np.asarray(weight, dtype=float)
        weights = np.broadcast_to(given, labels.shape)
        keep = weights != 0
        if not keep.any():
            return
        self.t += 1
        self.move(rows[keep], labels[keep], weights[keep])

    def gradient(self, X: Vector, y: Vector, weight: Vector) -> Vector:
        """(1/k) sum weight_i l'(<w, x_i>, y_i) x_i, all slopes at the same point."""
        slopes = self.loss.slope(X @ self.query, y)
        return np.asarray((weight * slopes) @ X / len(y))

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        """One step of the algorithm; `t` already counts this step."""
        raise NotImplementedError


def norm(w: Vector) -> float:
    return float(np.sqrt(w @ w))


def project(w: Vector, radius: float) -> Vector:
    """The nearest point of the ball |w| <= radius."""
    length = norm(w)
    return w * (radius / length) if length > radius else w
