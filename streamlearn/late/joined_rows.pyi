from typing import final

import numpy as np
from numpy.typing import NDArray

from streamlearn.core.arrays import Array
from streamlearn.engine.events import Events

CORRECTED: int
LEARNED: int
PREDICTED: int
TIMED_OUT: int

@final
class JoinedRows(Events):
    def make_room(self, n: int) -> None: ...
    def exchange(self, scores: Array, start: int, stored: Array) -> None: ...
    def row_role(self, i: int) -> tuple[int, float, int]: ...
    @property
    def roles(self) -> NDArray[np.uint8]: ...
    @property
    def tickets(self) -> NDArray[np.int32]: ...
