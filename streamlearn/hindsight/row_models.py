"""The quadratic models of the losses of rows, from which Newton's method builds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamlearn.hindsight.inner import inner
from streamlearn.hindsight.passes import derivatives
from streamlearn.losses import Loss, Softmax

if TYPE_CHECKING:
    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.risk import Vector

FLOOR = 1e-6  # smallest curvature of a row, relative to the mean
TINY = 1e-200  # excess of a loss that counts as none


@dataclass(frozen=True)
class NewtonPoint:
    """A w with the scores of the rows, the objective, and the slopes and curvatures of the rows."""

    w: Vector
    scores: Vector
    objective: float
    slopes: Vector
    curvatures: Vector


class RowModels(Protocol):
    """The losses of all rows, each of which is replaced by a parabola."""

    def at(self, w: Vector, scores: Vector) -> NewtonPoint:
        """Evaluate the losses at w, whose scores are known."""

    def bend(self, model: Any, at: NewtonPoint) -> None:
        """Set the curvatures of a model."""

    def changes(self, model: Any, rise: Vector) -> Vector:
        """Return how the slopes of the parabolas change with the scores."""


class ScalarRows:
    """Losses of one output."""

    def __init__(self, problem: Problem, loss: Loss) -> None:
        self.problem, self.loss = problem, loss
        self._lowest = loss.lowest(problem.y)
        self._reach = np.full(problem.rows, np.inf)

    def at(self, w: Vector, scores: Vector) -> NewtonPoint:
        """Evaluate the losses at w, whose scores are known."""
        problem = self.problem
        slopes, curvatures = np.empty(problem.rows), np.empty(problem.rows)
        total = derivatives(self.loss, scores, problem.y, problem.weights, slopes, curvatures)
        total += inner(problem.linear, w)
        total += problem.penalty.value(problem.penalized(w))
        return NewtonPoint(w, scores, total, slopes, curvatures)

    def bend(self, model: Any, at: NewtonPoint) -> None:
        """Set the curvatures of a model."""
        shares = self.problem.weights
        h = shares * self._curvatures(at)
        h += shares * (FLOOR * float(h.sum()) or 1.0)
        model.bend(h)

    def changes(self, model: Any, rise: Vector) -> Vector:
        """Return how the slopes of the parabolas change with the scores."""
        self._reach = np.abs(rise)
        shares = self.problem.weights
        used = np.divide(model.h, shares, out=np.zeros_like(rise), where=shares > 0.0)
        change: Vector = used * rise
        return change

    def _curvatures(self, at: NewtonPoint) -> Vector:
        """Return the curvatures of the parabolas: none falls below the lowest value of the loss.

        Where a loss is steep but hardly curved, its own model would, and a single row could stretch
        the step a thousand times. A parabola of slope a and curvature h falls by a^2 / 2h, a loss
        by at most its `excess`. Rows that moved little in the last model, compared with the
        distance at which their tangent reaches the lowest value, keep their own curvature.
        """
        excess = self.loss.value(at.scores, self.problem.y) - self._lowest
        curvatures, steep = at.curvatures.copy(), (excess > TINY) & (at.slopes != 0.0)
        slopes = np.abs(at.slopes[steep])
        ratio = slopes / excess[steep]
        least = 0.5 * slopes * ratio * np.minimum(self._reach[steep] * ratio, 1.0)
        curvatures[steep] = np.maximum(curvatures[steep], least)
        return curvatures


class SoftmaxRows:
    """Softmax: the curvature of a row follows from the probabilities of its classes.

    They are mixed with equal ones, so that no row is flat. Those of a row that is wrong are mixed
    with its label, for the same reason as other losses have a least curvature: halfway between the
    two the curvature is that of a row in doubt.
    """

    def __init__(self, problem: Problem, loss: Softmax) -> None:
        self.problem, self.loss = problem, loss
        self._rows, self._labels = np.arange(problem.rows), problem.y.astype(int)
        self._reach = np.full(problem.rows, np.inf)
        self._p: Vector = np.zeros((0, 0))

    def at(self, w: Vector, scores: Vector) -> NewtonPoint:
        """Evaluate the losses at w, whose scores are known."""
        problem, loss = self.problem, self.loss
        total = inner(problem.weights, loss.value(scores, problem.y)) + inner(problem.linear, w)
        total += problem.penalty.value(problem.penalized(w))
        p = np.asarray(loss.probability(scores))
        return NewtonPoint(w, scores, total, loss.slope(scores, problem.y), p)

    def bend(self, model: Any, at: NewtonPoint) -> None:
        """Set the probabilities of a model."""
        p = (1.0 - FLOOR) * at.curvatures + FLOOR / at.curvatures.shape[1]
        wrong = -at.slopes[self._rows, self._labels]
        excess = np.asarray(self.loss.value(at.scores, self.problem.y))
        ratio = np.divide(wrong, excess, out=np.ones_like(excess), where=excess > TINY)
        share = 0.5 * wrong * ratio * np.minimum(self._reach * ratio, 1.0)
        p *= 1.0 - share[:, None]
        p[self._rows, self._labels] += share
        self._p = p
        model.bend(p)

    def changes(self, model: Any, rise: Vector) -> Vector:  # noqa: ARG002 - of an interface
        """Return how the slopes of the parabolas change with the scores."""
        self._reach = np.ptp(rise, axis=1)
        mean = np.einsum("ik,ik->i", self._p, rise)
        change: Vector = self._p * (rise - mean[:, None])
        return change


def row_models(problem: Problem) -> RowModels:
    """Return the models for the loss of a problem."""
    loss = problem.loss
    if isinstance(loss, Loss):
        return ScalarRows(problem, loss)
    if isinstance(loss, Softmax):
        return SoftmaxRows(problem, loss)
    raise ValueError(f"newton supports losses of one output and Softmax, not {loss!r}")
