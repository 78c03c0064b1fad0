from typing import final

import numpy as np
from numpy.typing import NDArray

from streamlearn.engine.events import Events

CORRECTED: int
LEARNT: int
PREDICTED: int
TIMED_OUT: int

@final
class Joined(Events):
    def make_room(self, n: int) -> None: ...
    def exchange(
        self,
        scores: NDArray[np.float64],
        start: int,
        stop: int,
        kept: NDArray[np.float64],
        timeout_scores: NDArray[np.float64] | None,
    ) -> None: ...
    def place(self, i: int) -> tuple[int, float, int]: ...
    @property
    def roles(self) -> NDArray[np.uint8]: ...
    @property
    def tickets(self) -> NDArray[np.int32]: ...
