"""Slopes of rows moved so that their weighted sum is 0, as duals under a free intercept must be.

How far each slope moves depends only on a few sums over all rows, so shards need not know each
other's rows. The moved slopes are still slopes of the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from streamlearn.hindsight.inner import inner
from streamlearn.losses import Loss, VectorLoss

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector


class Balance(Protocol):
    """A change of slopes."""

    def apply(self, slopes: Vector, y: Vector) -> Vector:
        """Return the changed slopes of rows with these labels."""


@dataclass(frozen=True)
class Unchanged:
    """Slopes that need no balance: there is no free intercept, or they have it."""

    def apply(self, slopes: Vector, y: Vector) -> Vector:  # noqa: ARG002 - of an interface
        """Return the slopes."""
        return slopes


@dataclass(frozen=True)
class Scaling:
    """Scale the sign with the larger sum: 0 is a slope of every loss, or a limit of slopes."""

    positive: float
    negative: float

    def apply(self, slopes: Vector, y: Vector) -> Vector:  # noqa: ARG002 - of an interface
        """Return the scaled slopes."""
        return slopes * np.where(slopes > 0.0, self.positive, self.negative)


@dataclass(frozen=True)
class Centering:
    """Subtract the mean: every vector is a slope of a squared loss."""

    mean: Vector

    def apply(self, slopes: Vector, y: Vector) -> Vector:  # noqa: ARG002 - of an interface
        """Return the centered slopes."""
        centered: Vector = slopes - self.mean
        return centered


@dataclass(frozen=True)
class Mixing:
    """Mix slopes p - e_y of Softmax with r - e_y for one distribution r over the classes."""

    share: float
    toward: Vector

    def apply(self, slopes: Vector, y: Vector) -> Vector:
        """Return the mixed slopes."""
        result: Vector = (1.0 - self.share) * slopes + self.share * self.toward
        result[np.arange(len(y)), y.astype(int)] -= self.share
        return result


def slope_totals(loss: Loss | VectorLoss, shares: Vector, slopes: Vector, y: Vector) -> Vector:
    """Return the sums that `balance` needs; those of shards add up."""
    if isinstance(loss, Loss):
        up, down = np.maximum(slopes, 0.0), np.maximum(-slopes, 0.0)
        return np.array([inner(shares, up), inner(shares, down)])
    surplus: Vector = shares @ slopes
    if loss.kind == "multitarget":
        return surplus
    truth = np.bincount(y.astype(int), shares, minlength=len(surplus))
    return np.stack([surplus, truth])


def balance(loss: Loss | VectorLoss, totals: Vector) -> Balance:
    """Return how slopes with these sums must change."""
    if isinstance(loss, Loss):
        up, down = totals.tolist()
        if up == down:
            return Unchanged()
        return Scaling(down / up, 1.0) if up > down else Scaling(1.0, up / down)
    return Centering(totals) if loss.kind == "multitarget" else _mixing(*totals)


def _mixing(surplus: Vector, truth: Vector) -> Balance:
    mean = truth + surplus
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(mean > 0.0, 1.0 - truth / mean, 0.0)
    share = min(1.0, max(0.0, float(needed.max())))
    if share == 0.0:
        return Unchanged()
    toward = np.maximum(truth - (1.0 - share) * mean, 0.0) / share
    return Mixing(share, toward / toward.sum())


def conjugate_sum(loss: Loss | VectorLoss, shares: Vector, slopes: Vector, y: Vector) -> float:
    """Return the weighted sum of the conjugates: infinite if one is that is not weighted 0."""
    conjugates = np.asarray(loss.conjugate(slopes, y))
    used = shares > 0.0
    if not np.isfinite(conjugates[used]).all():
        return np.inf
    return inner(shares[used], conjugates[used])
