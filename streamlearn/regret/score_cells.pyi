from collections.abc import Sequence
from typing import Any, final

from numpy.typing import NDArray

from streamlearn.losses.loss import Loss, VectorLoss
from streamlearn.regret.reservoir import Reservoir

@final
class ScoreCells:
    def __init__(self, loss: Loss | VectorLoss, reservoir: Reservoir) -> None: ...
    def begin(self) -> None: ...
    def restore(
        self,
        weights: NDArray[Any],
        places: NDArray[Any],
        cells: NDArray[Any],
        slopes: NDArray[Any],
    ) -> None: ...
    def current_samples(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
    def samples(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
    def weight_of_each(self) -> NDArray[Any]: ...
    def swap_classes(self) -> None: ...
    def join(
        self,
        weights: Sequence[NDArray[Any]],
        samples: Sequence[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
    ) -> None: ...
