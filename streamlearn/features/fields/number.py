"""Numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from streamlearn.features.fields.field import CheckedField, real


@dataclass(frozen=True, repr=False)
class Number(CheckedField):
    """A number, which is the feature's value.

    `clip=(a, b)` moves it into these bounds, then `log1p` takes log(1 + x), which requires x > -1,
    and `center` is subtracted from the result. Numbers far from zero, such as years, are learned
    faster around their mean, and an event without the field then counts as an average one. With
    `indicator`, such an event has the feature `field=missing`.

    Text such as `"2.5"` is a number, and true is 1. With `invalid="category"` other text is a
    category, `field=text`.
    """

    kind: ClassVar[str] = "number"
    allowed: ClassVar[tuple[str, ...]] = ("refuse", "missing", "category")
    log1p: bool = False
    clip: tuple[float, ...] | None = None
    center: float = 0.0
    indicator: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        center = real("number", "center", self.center)
        if math.isinf(center):
            raise ValueError(f"number: center={self.center!r}: use a finite number")
        object.__setattr__(self, "center", center)
        if self.clip is None:
            return
        bounds: object = self.clip
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise ValueError(f"number: clip={self.clip!r}: give the two bounds, clip(0, 100)")
        low, high = (real("number", "clip", bound) for bound in bounds)
        if not low < high or (math.isinf(low) and math.isinf(high)):
            raise ValueError(
                f"number: clip({low:g}, {high:g}): the first bound must be below the second"
            )
        object.__setattr__(self, "clip", (low, high))
