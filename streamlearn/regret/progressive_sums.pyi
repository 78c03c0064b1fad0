from collections.abc import Callable
from typing import Any, final

from numpy.typing import ArrayLike

from streamlearn.engine.learner import RowLearner
from streamlearn.engine.watcher import Watcher
from streamlearn.losses.loss import Loss, VectorLoss
from streamlearn.regret.reservoir import Reservoir

@final
class ProgressiveSums(Watcher):
    def __init__(
        self,
        loss: Loss | VectorLoss,
        capacity: int,
        seed: int = 0,
        width: int = 1,
        penalized: bool = True,
    ) -> None: ...
    @property
    def reservoir(self) -> Reservoir: ...
    @property
    def loss(self) -> Loss | VectorLoss: ...
    @property
    def outputs(self) -> int: ...
    @property
    def events(self) -> float: ...
    @property
    def weight(self) -> float: ...
    @property
    def penalty(self) -> float: ...
    @property
    def next_penalty_read(self) -> float: ...
    learner: RowLearner | None
    read_penalty: Callable[[], float] | None
    wake: Callable[[], float] | None
    def wake_at(self, events: float) -> None: ...
    def record_penalty(self, penalty: float) -> None: ...
    @property
    def progressive_loss(self) -> float: ...
    def penalty_estimate(self) -> tuple[float, float, bool]: ...
    def observe(
        self,
        starts: ArrayLike,
        slots: ArrayLike,
        values: ArrayLike,
        labels: ArrayLike,
        weights: ArrayLike | None,
        scores: ArrayLike,
    ) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
