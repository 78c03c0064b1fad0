"""The working set of Newton's method ([Johnson15], [Massias18]): the features that may move.

These are the features with non-zero weights, and those of the others with the largest slopes. The
set keeps more than is needed now, so that its columns need not be gathered in every iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from streamlearn.hindsight.extrapolation import POINTS, extrapolated
from streamlearn.hindsight.quadratic_model import ColumnModel, GramModel, selected_rows
from streamlearn.hindsight.softmax_model import SoftmaxModel
from streamlearn.losses import VectorLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.risk import Vector

Model: TypeAlias = ColumnModel | GramModel | SoftmaxModel

FEW = 200  # features added at a time, or as many as have non-zero weights
NEAR = 0.8  # slope of a feature that is added, relative to l1
WIDE = 2000  # features up to which the matrix of the model fits the cache
PASSES = 120  # over the columns of a model: the work that its matrix may cost
EPOCHS = 100  # at most
GRAM_EPOCHS = 5000  # of GramModel, which cost little
SHARE = 0.1  # of the largest slope at first; below it the model counts as minimized


class WorkingSet:
    """The weights that may move, and the model on them; with several outputs, those of w.

    coordinates: their places in w, and then those of the intercepts.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.coordinates: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._inside = np.zeros(problem.size - problem.intercepts, dtype=bool)
        self._counts = problem.matrix.column_counts()
        self._model: Model | None = None

    def model(self, w: Vector, g: Vector) -> Model:
        """Return the model on a set for w and the gradient g without l1."""
        w, g = self.problem.penalized(w), self.problem.penalized(g)
        must = (w != 0.0) | (np.abs(g) > self.problem.penalty.l1)
        if self._model is None or (must & ~self._inside).any():
            chosen = self._chosen(w, g)
            if self._model is None or not self._inside[chosen].all():
                self._model = self._build(chosen)
        return self._model

    def _chosen(self, w: Vector, g: Vector) -> NDArray[np.intp]:
        l1, held, slope = self.problem.penalty.l1, w != 0.0, np.abs(g)
        slope[held] = 0.0
        if l1 > 0.0:  # otherwise few weights stay at 0
            slope[slope < NEAR * l1] = 0.0
            room = max(FEW, int(held.sum()))
            if np.count_nonzero(slope) > room:
                slope[slope < np.partition(slope, -room)[-room]] = 0.0
        return np.flatnonzero(held | (slope > 0.0))

    def _build(self, chosen: NDArray[np.intp]) -> Model:
        problem, k, penalty = self.problem, len(chosen), self.problem.penalty
        self._inside[:] = False
        self._inside[chosen] = True
        free = np.arange(problem.size - problem.intercepts, problem.size)
        self.coordinates = np.concatenate([chosen, free])
        features, places = np.unique(chosen // problem.outputs, return_inverse=True)
        entries = int(self._counts[features].sum())
        rows = selected_rows(problem.matrix, features, entries)
        strengths = (penalty.l1, penalty.l2, problem.fit_intercept)
        if isinstance(problem.loss, VectorLoss):
            classes = chosen % problem.outputs
            return SoftmaxModel(rows, places, classes, problem.outputs, problem.weights, *strengths)
        lengths = np.diff(rows.first)
        build: type[ColumnModel | GramModel] = GramModel
        if k > WIDE or 0.5 * float((lengths**2).sum()) + 8 * k * k > PASSES * entries:
            build = ColumnModel
        return build(rows, *strengths)


def minimize(model: Model, enough: float) -> None:
    """Descend until no slope is above a share of the first, or `enough`.

    Between epochs over all coordinates, those with non-zero weights are visited alone. As the set
    is the same in these epochs, their limit can be extrapolated.
    """
    left = GRAM_EPOCHS if isinstance(model, GramModel) else EPOCHS
    every = np.arange(model.size)
    first = 0.0
    while left > 0:
        slope = model.descend(every)
        left -= 1
        first = max(first, slope)
        aim = max(SHARE * first, enough)
        if slope <= aim:
            return
        moving = np.flatnonzero((model.w + model.d)[: model.size])
        points, states = [model.d.copy()], [model.state.copy()]
        while left > 0 and slope > 0.5 * aim:
            slope = model.descend(moving)
            left -= 1
            points.append(model.d.copy())
            states.append(model.state.copy())
            if len(points) == POINTS:
                d, state = extrapolated(points, states)
                if model.value(d, state) < model.value(model.d, model.state):
                    model.d, model.state = d, state
                points, states = [model.d.copy()], [model.state.copy()]
