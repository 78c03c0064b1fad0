from typing import final

import numpy as np
from numpy.typing import NDArray

from streamlearn.engine.events import Events

CORRECTED: int
LEARNED: int
PREDICTED: int
TIMED_OUT: int

@final
class JoinedRows(Events):
    def make_room(self, n: int) -> None: ...
    def exchange(
        self,
        scores: NDArray[np.float64],
        start: int,
        stop: int,
        stored: NDArray[np.float64],
        timeout_scores: NDArray[np.float64] | None,
    ) -> None: ...
    def row_role(self, i: int) -> tuple[int, float, int]: ...
    @property
    def roles(self) -> NDArray[np.uint8]: ...
    @property
    def tickets(self) -> NDArray[np.int32]: ...
