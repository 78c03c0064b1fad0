"""Numbers as one of several intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from streamlearn.features.fields.field import CheckedField, real, whole

MOST = 1000  # buckets
LONGEST = 100_000  # events of a warm-up


@dataclass(frozen=True, repr=False)
class Buckets(CheckedField):
    """The interval that a number is in: the feature `field=[a,b)` with value 1.

    `Buckets((1, 5, 10))` has these edges: below 1, from 1 to below 5, from 5 to below 10, and from
    10 on. `Buckets(10)` has 10 intervals, between the quantiles of the first `warmup` events with
    the field that are learned; then the edges are frozen. Until then the field is no feature.
    """

    kind: ClassVar[str] = "buckets"
    first: ClassVar[str | None] = "edges"
    edges: int | tuple[float, ...] = 10
    warmup: int = 1000

    def __init__(
        self,
        edges: float | tuple[float, ...] | list[float] = 10,
        warmup: int = 1000,
        invalid: str = "refuse",
    ) -> None:
        if isinstance(edges, float):
            edges = (edges,)
        if isinstance(edges, tuple | list):
            found = tuple(real("buckets", "edge", edge) for edge in edges)
            if not 1 <= len(found) < MOST or any(map(math.isinf, found)):
                raise ValueError(
                    f"buckets: give 1 to {MOST - 1} finite edges, as in buckets(0.0, 10.0)"
                )
            if any(a >= b for a, b in pairwise(found)):
                raise ValueError(f"buckets: the edges {found} must increase")
            edges = found
        else:
            whole("buckets", "number of buckets", edges, 2, MOST)
        whole("buckets", "warmup", warmup, 10, LONGEST)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "warmup", warmup)
        object.__setattr__(self, "invalid", invalid)
        self.__post_init__()
