"""What a loss of all scores at once is: bound to labels, a convex function of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamlearn.core.parameters import Parameterized

if TYPE_CHECKING:
    from streamlearn.hindsight.risk import Vector


Indices: TypeAlias = NDArray[np.intp]


class LabeledLoss(Protocol):
    """A loss with its labels: all that a risk asks for."""

    def value_and_slope(self, f: Vector) -> tuple[float, Vector]:
        """The loss of the scores `f`, and a subgradient there."""


class MultivariateLoss(Parameterized):
    """A loss l(f, y) of all scores f and all labels y, usable as the loss of `hindsight.solve`.

    kind: "binary", where the greater of two labels is the positive one, or "ordinal", where labels
    are grades. Some losses are means over query groups: rows of one query have equal `groups`.
    """

    kind: ClassVar[str] = "ordinal"
    takes_groups: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        """How many scores a row has."""
        return 1

    @property
    def labels(self) -> list[Any]:
        """What the outputs stand for, of several."""
        return []

    def bind(self, y: Any, groups: Any = None, weights: Any = None) -> LabeledLoss:
        """The loss of scores for these labels."""
        grades = checked_grades(self, y)
        if weights is not None:
            raise ValueError(f"{self!r} is no mean over rows and takes no weights; leave them out")
        if groups is None:
            return self._bind(grades, np.zeros(len(grades), dtype=np.intp))
        if not self.takes_groups:
            raise ValueError(f"{self!r} is of all rows together and takes no groups; leave it out")
        return self._bind(grades, group_codes(groups, len(grades)))

    def value(self, f: Any, y: Any, groups: Any = None) -> float:
        """The loss of the scores `f`."""
        return self.bind(y, groups).value_and_slope(checked_scores(f, y))[0]

    def slope(self, f: Any, y: Any, groups: Any = None) -> Vector:
        """A subgradient in `f`."""
        return self.bind(y, groups).value_and_slope(checked_scores(f, y))[1]

    def _bind(self, grades: Vector, groups: Indices) -> LabeledLoss:
        raise NotImplementedError


def checked_grades(loss: MultivariateLoss, y: Any) -> Vector:
    """Labels as finite numbers; binary ones as 0 and 1."""
    try:
        grades: Vector = np.array(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"the labels of {loss!r} must be numbers") from None
    if grades.ndim != 1 or not len(grades):
        raise ValueError(f"y must be one label for each row, got shape {grades.shape}")
    if not np.isfinite(grades).all():
        row = int(np.argmin(np.isfinite(grades)))
        raise ValueError(f"row {row}: {grades[row]} is no label; leave the row out")
    if loss.kind != "binary":
        return grades
    known = np.unique(grades)
    if len(known) > 2:
        raise ValueError(
            f"y has {len(known)} different labels and {loss!r} tells two apart; use "
            "OrdinalRegression, or y == label"
        )
    positive = known[1] if len(known) == 2 else 1.0
    return np.asarray(grades == positive, dtype=float)


def group_codes(groups: Any, m: int) -> Indices:
    """The query of each row as 0, 1, ..."""
    names = np.asarray(groups)
    if names.shape != (m,):
        raise ValueError(f"groups must be one for each of {m} rows, got shape {names.shape}")
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError("groups has a NaN or an infinity; give each row's query")
    codes: Indices = np.unique(names, return_inverse=True)[1]
    return codes


def checked_scores(f: Any, y: Any) -> Vector:
    """Scores as an array, one for each label."""
    scores: Vector = np.array(f, dtype=float)
    if scores.shape != np.shape(y):
        raise ValueError(f"{len(np.shape(f)) and len(f)} scores for {len(y)} labels")
    return scores
