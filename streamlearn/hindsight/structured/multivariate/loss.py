"""The interface of losses of all scores together: given labels, a convex function of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamlearn.core.parameters import Parameterized

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector


Indices: TypeAlias = NDArray[np.intp]


class LabeledLoss(Protocol):
    """A loss with its labels: the interface that a risk needs."""

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """Return the loss of the scores `f`, and a subgradient there."""


class MultivariateLoss(Parameterized):
    """A loss l(f, y) of all scores f and all labels y, usable as the loss of `hindsight.solve`.

    kind: "binary", where the greater of two labels is the positive one, or "ordinal", where labels
    are grades. Some losses are means over query groups: rows of one query have equal `groups`.
    Those that are a `row_mean` are means over rows.
    """

    row_mean: ClassVar[bool] = False
    kind: ClassVar[str] = "ordinal"
    takes_groups: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        """The number of scores per row."""
        return 1

    @property
    def labels(self) -> list[Any]:
        """The labels of the outputs, if there are several."""
        return []

    def bind(self, y: Any, groups: Any = None, weights: Any = None) -> LabeledLoss:
        """Bind the labels; the result is a loss of scores."""
        grades = checked_grades(self, y)
        if weights is not None:
            raise ValueError(f"weights: {self!r} is not a mean over rows; leave weights out")
        if groups is None:
            return self._bind(grades, np.zeros(len(grades), dtype=np.intp))
        if not self.takes_groups:
            raise ValueError(f"groups: {self!r} has no groups; leave groups out")
        return self._bind(grades, group_codes(groups, len(grades)))

    def value(self, f: Any, y: Any, groups: Any = None) -> float:
        """Return the loss of the scores `f`."""
        return self.bind(y, groups).value_and_slope(checked_scores(f, y))[0]

    def slope(self, f: Any, y: Any, groups: Any = None) -> Vector:
        """Return a subgradient with respect to `f`."""
        return self.bind(y, groups).value_and_slope(checked_scores(f, y))[1]

    def _bind(self, grades: Vector, groups: Indices) -> LabeledLoss:
        raise NotImplementedError


def checked_grades(loss: MultivariateLoss, y: Any) -> Vector:
    """Return labels as finite numbers; binary ones as 0 and 1."""
    try:
        grades: Vector = np.array(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"the labels of {loss!r} must be numbers") from None
    if grades.ndim != 1 or not len(grades):
        raise ValueError(f"y must be one label for each row, got shape {grades.shape}")
    if not np.isfinite(grades).all():
        row = int(np.argmin(np.isfinite(grades)))
        raise ValueError(f"row {row}: {grades[row]} is not a label; leave the row out")
    if loss.kind != "binary":
        return grades
    known = np.unique(grades)
    if len(known) > 2:
        raise ValueError(
            f"y has {len(known)} different labels, but {loss!r} supports two; use "
            "OrdinalRegression, or y == label"
        )
    positive = known[1] if len(known) == 2 else 1.0
    return np.asarray(grades == positive, dtype=float)


def group_codes(groups: Any, m: int) -> Indices:
    """Number the queries of the rows as 0, 1, ..."""
    names = np.asarray(groups)
    if names.shape != (m,):
        raise ValueError(f"groups must have one entry for each of {m} rows, got {names.shape}")
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError("groups has a NaN or an infinity; give the query of each row")
    codes: Indices = np.unique(names, return_inverse=True)[1]
    return codes


def checked_scores(f: Any, y: Any) -> Vector:
    """Return scores as an array, one for each label."""
    scores: Vector = np.array(f, dtype=float)
    if scores.shape != np.shape(y):
        raise ValueError(f"{len(np.shape(f)) and len(f)} scores for {len(y)} labels")
    return scores
