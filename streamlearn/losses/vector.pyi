from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from numpy.typing import ArrayLike
from typing_extensions import disjoint_base

from streamlearn.losses.loss import VectorLoss

_Rows: TypeAlias = tuple[tuple[float, ...], ...]

@disjoint_base
class MulticlassHinge(VectorLoss):
    def __new__(
        cls,
        cost: Mapping[Any, Mapping[Any, float]] | ArrayLike | None = None,
        rescale: float = 0.0,
    ) -> Self: ...
    @property
    def cost(self) -> dict[Hashable, dict[Hashable, float]] | _Rows | None: ...
    @property
    def rescale(self) -> float: ...
    def bound(self, labels: Sequence[Hashable]) -> Self: ...

class Softmax(VectorLoss): ...

@disjoint_base
class MultiSquared(VectorLoss):
    def __new__(cls, metric: ArrayLike | None = None) -> Self: ...
    @property
    def metric(self) -> _Rows | None: ...
